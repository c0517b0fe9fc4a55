"""A search in a plan: what a run's key holds of it, what a record tells, and its step in a container."""

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TextIO

import pytest

from study.artifacts.plan import Plan, write_plans
from study.artifacts.prepared import Image, ImageRequest, read_manifest
from study.artifacts.record import without_paths
from study.base.errors import StudyError
from study.cli import main
from study.data.search import fetch as search_fetch
from study.data.search.find import Answer
from study.host.engine import lifetime
from study.host.engine.base import Engine
from study.host.engine.container import SCRATCH, Mount
from study.host.engine.lifetime import End
from study.host.engine.mounts import settings_inside
from study.host.engine.place import Place
from study.host.steps import in_image
from tests.conftest import ROOT, plan_at, tiny_plan
from tests.site import TERMS, listing, serving


def addresses(count: int = 10) -> dict[str, list[str]]:
    return {label: [f"https://a.example/{label}/{number}.jpg" for number in range(count)] for label in TERMS}


def plan(place: Place | None = None, **dataset: Any) -> Plan:
    values = {"source": "search", "image_size": 32} | dataset
    return plan_at(place or Place("none", "asked for"), dataset=values, factors={"training.batch_size": [4]})


def key(**dataset: Any) -> str:
    return plan(**dataset).runs[0].key


def test_the_key_of_a_run_holds_what_is_searched_for_or_what_the_manifest_lists(tmp_path: Path) -> None:
    searched = key(terms=TERMS, images=20)
    others = [
        key(terms=TERMS | {"bird": "a bird"}, images=20),
        key(terms=TERMS, images=22),
        key(terms=TERMS, images=20, max_size=300),
        key(terms=TERMS, images=20, seed=7),
        key(manifest=str(listing(tmp_path / "a", addresses()))),
        key(manifest=str(listing(tmp_path / "b", addresses(11)))),
    ]
    assert len({searched, *others}) == len(others) + 1
    assert key(terms=TERMS, images=20, private_addresses=True, path="/unused", classes=7) == searched


def test_the_same_manifest_is_the_same_data_wherever_and_whenever_it_lies(tmp_path: Path) -> None:
    first, second = listing(tmp_path / "a", addresses()), listing(tmp_path / "b", addresses())
    os.utime(second, ns=(1, 1))
    assert key(manifest=str(first)) == key(manifest=str(second)) == key(manifest=str(first), terms=TERMS, images=77)


def test_an_edit_of_the_search_keeps_what_was_found(package: Path) -> None:
    """Another search would find something else: only another key of the study asks for one."""
    before = plan(terms=TERMS, images=20).runs[0].dataset
    modules = list((package / "data" / "search").glob("*.py"))
    assert len(modules) > 5
    for module in modules:
        module.write_bytes(module.read_bytes() + b"# edited\n")
    assert plan(terms=TERMS, images=20).runs[0].dataset == before


def test_the_pictures_that_a_manifest_lists_decide_which_batch_size_is_too_large(tmp_path: Path) -> None:
    path = str(listing(tmp_path, addresses(3)))
    with pytest.raises(StudyError, match=r"training\.batch_size: 8 .* the training set has 4 images"):
        tiny_plan(
            dataset={"source": "search", "manifest": path, "image_size": 32}, factors={"training.batch_size": [8]}
        )


@pytest.mark.parametrize(
    ("changes", "dataset", "words"),
    [
        ({"source": "folder"}, {}, ["its source is 'folder'"]),
        ({"items": []}, {}, ["it holds no image"]),
        ({"max_size": 300}, {}, ["dataset.max_size: 400", "allowed: 300"]),
        ({}, {"terms": {"cat": "cat photo", "dog": "dog photo"}}, ["bird photo", "dog photo"]),
    ],
)
def test_a_manifest_that_does_not_fit_is_one_clear_error(
    tmp_path: Path, changes: dict[str, Any], dataset: dict[str, Any], words: list[str]
) -> None:
    path = listing(tmp_path / "alice", addresses(), **changes)
    with pytest.raises(StudyError) as caught:
        plan(manifest=str(path), **dataset)
    assert "\n" not in str(caught.value)
    assert "birds.json" in str(caught.value)
    assert "alice" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("label", ["..", "../../x", "/etc", "", "a\\b", ".hidden"])
def test_a_manifest_of_another_hand_writes_nothing_outside_its_folder(tmp_path: Path, label: str) -> None:
    path = listing(tmp_path, {label: addresses()["bird"], "forest": addresses()["forest"]})
    with pytest.raises(StudyError, match="cannot be a folder's name"):
        plan(manifest=str(path))


def test_a_manifest_of_one_class_or_with_one_picture_in_a_class_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"dataset\.manifest: 'birds\.json' .* it holds one class \('bird'\)"):
        plan(manifest=str(listing(tmp_path, {"bird": addresses()["bird"]})))
    with pytest.raises(StudyError, match=r"class 'forest' has 1 image"):
        plan(manifest=str(listing(tmp_path, addresses() | {"forest": ["https://a.example/x.jpg"]})))


def test_a_record_names_a_manifest_by_its_base_name_and_a_container_sees_it(tmp_path: Path) -> None:
    path = listing(tmp_path, addresses())
    settings = plan(manifest=str(path)).runs[0].settings
    cut = without_paths(settings)
    assert (cut.dataset.manifest, cut.dataset.source) == ("birds.json", "search")
    inside, mounts = settings_inside(settings)
    assert inside.dataset.manifest == "/manifest/birds.json"
    assert mounts == [Mount(path, "/manifest/birds.json")]


def test_two_steps_at_once_search_one_after_the_other_for_the_same_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snakemake makes data side by side where it has the cores: two splits must not be of two searches."""
    asked: list[str] = []
    with serving() as site:
        urls = {term: site.pictures(label, 10) for label, term in TERMS.items()}

        def find(term: str, wanted: int, known: Sequence[str]) -> Answer:
            asked.append(term)
            time.sleep(0.5)
            return Answer(urls[term])

        monkeypatch.setattr(search_fetch, "find", find)
        dataset = {"source": "search", "terms": TERMS, "images": 20, "image_size": 32, "private_addresses": True}
        planned = tiny_plan(dataset=dataset, factors={"dataset.seed": [1, 2], "training.batch_size": [4]})
        write_plans([planned], tmp_path)
        names = sorted({run.dataset for run in planned.runs})
        plan_file = str(tmp_path / "tiny" / "plan.json")
        with ThreadPoolExecutor(2) as pool:
            lines = [["dataset", plan_file, name, "--results", str(tmp_path)] for name in names]
            assert list(pool.map(main, lines)) == [0, 0]
    assert sorted(asked) == sorted(TERMS.values())
    first, second = (read_manifest(tmp_path / "data" / name / "manifest.json") for name in names)
    assert {item.name for item in first.items} == {item.name for item in second.items}
    assert first.sha256 != second.sha256  # another split
    assert max(site.requests.values()) == 1


class TestTheStepInAContainer:
    """With an engine that is none: it executes the step's own command on the host, with the container's paths."""

    @pytest.fixture(autouse=True)
    def _no_engine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def enter(
            engine: Engine, image: str, command: Sequence[str], scratch: Path, mounts: Sequence[Mount], log: TextIO,
            title: str, *, network: bool = False, **_: Any,
        ) -> tuple[End, list[str]]:  # fmt: skip
            assert network
            places = {mount.target: str(mount.source) for mount in mounts} | {SCRATCH: str(scratch)}
            plan_file = Path(command[4].replace(SCRATCH, str(scratch)))
            plan_file.write_text(self.outside(plan_file.read_text(encoding="utf-8"), places), encoding="utf-8")
            line = [sys.executable, *(self.outside(word, {SCRATCH: str(scratch)}) for word in command[1:])]
            done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
            return End(done.returncode, False), done.stderr.splitlines()

        monkeypatch.setattr(lifetime, "enter", enter)

    def outside(self, text: str, places: dict[str, str]) -> str:
        for target, source in places.items():
            text = text.replace(target, source)
        return text

    def planned(self, results: Path, path: Path) -> Plan:
        """A plan for docker, and the image that its preparation runs in."""
        request = ImageRequest(device="cpu", kind="reference", reference="x", base_image=None, identity="x")
        image = Image(
            request=request, engine="docker", engine_version="1", id="x", digest=None, run_as="x", created=None,
            lock_sha256=None, python="3", libraries={}, gpu_seen=False,
        )  # fmt: skip
        (results / "images").mkdir(parents=True)
        (results / "images" / "cpu.json").write_text(image.model_dump_json(), encoding="utf-8")
        place = Place("docker", "asked for", {"cpu": request})
        return plan(place, manifest=str(path), private_addresses=True)

    def test_brings_the_pictures_and_keeps_what_it_brought_where_it_fails(self, tmp_path: Path) -> None:
        results = tmp_path / "results"
        with serving() as site:
            urls = {label: site.pictures(label, 3) for label in TERMS}
            lost = site.pages.pop("/bird/0.jpg")
            assert isinstance(lost, bytes)
            path = listing(tmp_path, urls, site.contents() | {urls["bird"][0]: lost})
            planned = self.planned(results, path)
            run = planned.runs[0]
            with pytest.raises(StudyError, match=r"1 of 6 pictures are gone .*; results/data/search\.\w+/rem"):
                in_image.in_a_container(in_image.dataset_task(run.dataset, True), planned, run, results, io.StringIO())
            remaining = json.loads((results / "data" / run.dataset / "remaining.json").read_text(encoding="utf-8"))
            assert len(remaining["items"]) == 5
            assert not (results / "data" / run.dataset / "manifest.json").exists()

            site.pages["/bird/0.jpg"] = lost
            site.requests.clear()
            in_image.in_a_container(in_image.dataset_task(run.dataset, True), planned, run, results, io.StringIO())
            assert site.requests == {"/bird/0.jpg": 1}
        made = read_manifest(results / "data" / run.dataset / "manifest.json")
        folder = results / "data" / run.dataset
        assert all((folder / item.name).stat().st_size == item.bytes for item in made.items)
        assert len(made.items) == 6
