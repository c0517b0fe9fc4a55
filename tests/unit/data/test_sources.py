"""The protocol of a source: one class is all that a new source needs, and the pipeline knows no
source by name."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, get_args

import numpy as np
import pytest
from PIL import Image

from study.artifacts.layout import Results
from study.artifacts.plan import write_plans
from study.artifacts.prepared import Manifest
from study.base.errors import StudyError
from study.base.files import PACKAGE, file_sha256, write_whole
from study.cli import main
from study.config.sections import Dataset
from study.data.decode import decode
from study.data.sources import (
    SOURCES,
    DatasetInfo,
    Download,
    Source,
    inspect,
    name_of,
    open_set,
    source_of,
    with_effect,
)
from study.data.splits import item_of
from study.data.torchvision_sets import Mnist
from study.host.engine.container import run_mounts
from study.host.steps import prepare
from tests.conftest import tiny_plan, write_mnist
from tests.errors import refused

SHADES = {"dark": 60, "light": 190}


class Toy(Source):
    """A source of ten plain images, dark or light; an image's number is the seed plus its place."""

    def keys(self, dataset: Dataset) -> tuple[str, ...]:
        return ("seed",)

    def inspect(self, dataset: Dataset) -> DatasetInfo:
        if dataset.seed == 13:
            raise StudyError(key="dataset.seed", value=13, why="this toy fears it")
        return DatasetInfo(len(SHADES), 8, 4)

    def make(self, dataset: Dataset, folder: Path, results: Path) -> Manifest:
        base = self.base(dataset, folder, results)
        base.mkdir(parents=True)
        items = []
        for place in range(10):
            label = sorted(SHADES)[place % 2]
            pixels = np.full((9, 7, 3), SHADES[label] + dataset.seed + place, np.uint8)
            Image.fromarray(pixels).save(base / f"{place}.png")
            items.append(item_of(base, f"{place}.png", label, "valid" if place > 7 else "train"))
        return Manifest(
            source=dataset.source,
            generated=False,
            seed=dataset.seed,
            valid_fraction=0.2,
            classes=sorted(SHADES),
            train_images=8,
            valid_images=2,
            items=items,
        )


class Away(Toy):
    """The same, but from elsewhere, and unpacked once for every dataset."""

    downloads = (Download("toys.zip", "http://127.0.0.1:9/toys.zip", "md5", "1679091c5a880faf"),)

    def base(self, dataset: Dataset, folder: Path, results: Path) -> Path:
        return results / "data" / "unpacked" / "toys"


class Brought(Toy):
    """The same, but in a package that only the image has."""

    in_the_image = True


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The keys of a dataset that comes from the toy, which takes the place of a source by its line
    in the table."""
    monkeypatch.setitem(SOURCES, "mnist", f"{__name__}:{Toy.__name__}")
    return {"source": "mnist", "seed": 1, "image_size": 32}


def test_the_table_holds_every_source_that_a_study_may_name() -> None:
    assert tuple(SOURCES) == get_args(Dataset.model_fields["source"].annotation)
    for name in SOURCES:
        source = source_of(Dataset.model_validate({"source": name}))
        assert set(source.keys(Dataset())) <= set(Dataset.model_fields)
        assert all(any(PACKAGE.glob(pattern)) for pattern in source.code)


def test_one_class_is_planned_made_and_decoded(toy: dict[str, Any], tmp_path: Path) -> None:
    plan = tiny_plan(dataset=toy, factors={"training.batch_size": [4, 8]})
    write_plans([plan], tmp_path)
    (name,) = {run.dataset for run in plan.runs}
    assert (
        main(["dataset", str(tmp_path / "tiny" / "plan.json"), name, "--results", str(tmp_path)])
        == 0
    )

    folder, dataset = tmp_path / "data" / name, plan.runs[0].settings.dataset
    images = open_set(Manifest.read(folder / "manifest.json"), dataset, folder, tmp_path)
    assert (images.classes, images.labels) == (["dark", "light"], [0, 1] * 5)
    assert (len(images.train), images.valid) == (8, [8, 9])
    means = [round(decode(image, 3, 32).mean()) for image in images.stored]
    assert means == [
        SHADES[images.classes[label]] + 1 + place for place, label in enumerate(images.labels)
    ]


def test_its_checks_and_its_counts_are_those_of_the_plan(toy: dict[str, Any]) -> None:
    with refused("dataset.seed", 13):
        tiny_plan(dataset=toy | {"seed": 13})
    with refused("training.batch_size", 16):
        tiny_plan(dataset=toy, factors={"training.batch_size": [16]})


def test_only_the_keys_that_it_uses_make_other_data(toy: dict[str, Any]) -> None:
    def name(**changes: Any) -> str:
        dataset = Dataset.model_validate(toy | changes)
        return name_of(dataset, inspect(dataset).files)

    assert name() == name(images=20, classes=5, valid_fraction=0.5, path="/unused")
    assert name() != name(seed=2)


def test_a_reduced_key_without_an_effect_on_any_data_is_not_told() -> None:
    full = {"dataset.images": 9, "dataset.classes": 3, "dataset.image_size": 64, "replicates": 5}
    drawn, listed = (Dataset.model_validate(values) for values in ({}, {"source": "cifar10"}))
    assert with_effect(full, [listed]) == {"dataset.image_size": 64, "replicates": 5}
    assert with_effect(full, [listed, drawn]) == full


def test_a_container_sees_what_the_source_keeps_below_the_results(
    toy: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SOURCES, "mnist", f"{__name__}:{Away.__name__}")
    run = tiny_plan(dataset=toy).runs[0]
    kept = tmp_path / "data" / "unpacked" / "toys"
    assert kept not in {mount.source for mount in run_mounts(run, "tiny", tmp_path)}
    kept.mkdir(parents=True)
    assert kept in {mount.source for mount in run_mounts(run, "tiny", tmp_path)}


@pytest.mark.parametrize("source", [Toy, Brought])
def test_a_source_is_made_in_the_image_if_it_needs_what_is_installed_there(
    toy: dict[str, Any], source: type[Source], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SOURCES, "mnist", f"{__name__}:{source.__name__}")
    entered: list[str] = []

    def enter(task: prepare.Task, plan: Any, run: Any, results: Path, log: Any) -> None:
        entered.append(task.name)
        folder = results / "data" / task.name
        manifest = source_of(run.settings.dataset).make(run.settings.dataset, folder, results)
        folder.mkdir(exist_ok=True)
        (folder / "manifest.json").write_text(manifest.model_dump_json(), encoding="utf-8")

    monkeypatch.setattr(prepare, "in_a_container", enter)
    plan = tiny_plan(dataset=toy).model_copy(update={"engine": "docker"})
    write_plans([plan], tmp_path)
    name = plan.runs[0].dataset
    assert (
        main(["dataset", str(tmp_path / "tiny" / "plan.json"), name, "--results", str(tmp_path)])
        == 0
    )
    assert entered == ([] if source is Toy else [name])


def test_two_steps_at_once_download_one_after_the_other(
    toy: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snakemake makes data side by side where it has the cores, and both would unpack the same
    files."""
    at_work, most = 0, 0

    def make(self: Toy, dataset: Dataset, folder: Path, results: Path) -> Manifest:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        time.sleep(0.3)
        at_work -= 1
        return Toy().make(dataset, folder, results)

    monkeypatch.setitem(SOURCES, "mnist", f"{__name__}:{Away.__name__}")
    monkeypatch.setattr(Away, "make", make)
    write_whole(Results(tmp_path).downloads / "toys.zip", "6")
    plan, other = (
        tiny_plan(dataset=toy | {"seed": seed}, factors={"training.batch_size": [4]})
        for seed in (1, 2)
    )
    plan = plan.model_copy(update={"runs": [*plan.runs, *other.runs]})
    write_plans([plan], tmp_path)
    names = sorted({run.dataset for run in plan.runs})
    line = ["dataset", str(tmp_path / "tiny" / "plan.json")]
    with ThreadPoolExecutor(2) as pool:
        assert list(
            pool.map(main, [[*line, name, "--results", str(tmp_path)] for name in names])
        ) == [0, 0]
    assert (len(names), most) == (2, 1)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """A folder, and the address of a server of its files."""
    monkeypatch.setenv("no_proxy", "*")
    folder = tmp_path / "served"
    folder.mkdir()
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        Thread(target=serving.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{serving.server_port}/"
        serving.shutdown()


def test_a_file_is_downloaded_once_and_another_one_is_none(
    server: tuple[Path, str], tmp_path: Path
) -> None:
    folder, address = server
    (folder / "file").write_bytes(b"right")
    checksum = file_sha256(folder / "file")[:8]
    wanted = Download("a/b", f"{address}file", "sha256", checksum)
    found = wanted.bring(tmp_path / "here")
    assert found.read_bytes() == b"right"
    (folder / "file").write_bytes(b"wrong")
    assert wanted.bring(tmp_path / "here") == found
    with pytest.raises(StudyError, match=f"/file: its sha256 is not {checksum}"):
        wanted.bring(tmp_path / "there")
    (folder / "file").unlink()
    with pytest.raises(StudyError, match="/file: 404 "):
        wanted.bring(tmp_path / "there")
    assert [path.name for path in (tmp_path / "there").rglob("*")] == ["a"]


def test_a_set_that_is_downloaded_is_unpacked_beside_its_archives(
    server: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, address = server
    raw = write_mnist(folder, packed=True)
    files = {path.name: file_sha256(path) for path in raw.iterdir()}
    brought = [
        Download(f"MNIST/raw/{name}", f"{address}MNIST/raw/{name}", "sha256", checksum)
        for name, checksum in files.items()
    ]
    monkeypatch.setattr(Mnist, "downloads", brought)
    values = {"source": "mnist", "channels": 1, "image_size": 28}
    plan = tiny_plan(dataset=values, factors={"training.batch_size": [4]})
    write_plans([plan], tmp_path)
    (name,) = {run.dataset for run in plan.runs}
    line = ["dataset", str(tmp_path / "tiny" / "plan.json"), name, "--results", str(tmp_path)]
    assert main(line) == 0
    made, results = Manifest.read(Results(tmp_path).manifest(name)), Results(tmp_path)
    assert {path.name for path in (results.downloads / "MNIST/raw").iterdir()} == set(files)
    assert len(open_set(made, plan.runs[0].settings.dataset, tmp_path, tmp_path).labels) == 40


def test_imagenet_weights_come_from_torchs_cache_or_their_server_and_the_reason_is_kept(
    server: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, address = server
    (folder / "file").write_bytes(b"weights")
    name = f"resnet18-{file_sha256(folder / 'file')[:8]}.pth"
    (tmp_path / "table.yaml").write_text(f"resnet18: {name}\n")
    monkeypatch.setattr(prepare, "IMAGENET", tmp_path / "table.yaml")
    monkeypatch.setattr(prepare, "IMAGENET_SERVER", address)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    with pytest.raises(StudyError, match=f"{name}: 404"):
        prepare.bring_imagenet("resnet18", tmp_path / "hub")
    with pytest.raises(StudyError, match="none for 'resnt18'"):
        prepare.bring_imagenet("resnt18", tmp_path / "hub")
    for place in (tmp_path / "torch/hub/checkpoints", folder):
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(b"weights")
        prepare.bring_imagenet("resnet18", tmp_path / "hub")
        (tmp_path / "hub" / "checkpoints" / name).unlink()
        (place / name).unlink()
