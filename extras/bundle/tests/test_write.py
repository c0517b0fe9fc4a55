"""Results travel in one archive: the same report comes out of it, and nothing else than its
files."""

import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from study.artifacts.bundle import CHECKSUMS, is_held, unpack
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, StartCommand, write_plans
from study.artifacts.record import without_paths
from study.base.errors import StudyError
from study.base.files import write_new
from study.cli import main
from study_bundle.write import write_bundle
from tests.conftest import ROOT, tiny_plan, write_photos
from tests.examples import EXAMPLE, STUDIES
from tests.unit.artifacts.test_records import make_record
from tests.unit.host.test_engines import ARCHIVE, described

OWN = {"full", "rung"}


def quiet(_: str) -> None:
    pass


def results(folder: Path, *studies: str, **changes: Any) -> Path:
    """A results folder with one record in each study of one plan."""
    plans = [
        tiny_plan(**changes).model_copy(update={"name": name}) for name in studies or ("tiny",)
    ]
    write_plans(plans, folder)
    for plan in plans:
        run = plan.runs[0]
        record = make_record(plan).model_copy(update={"settings": without_paths(run.settings)})
        write_new(Results(folder).record(plan.name, run.file), record.model_dump_json(indent=1))
    return folder


def packed(folder: Path, target: Path, *studies: str) -> list[str]:
    """Write the bundle of a folder, and return what is said."""
    said: list[str] = []
    write_bundle(studies, folder, ROOT, target, said.append)
    return said


def names_in(bundle: Path) -> set[str]:
    with zipfile.ZipFile(bundle) as zipped:
        return set(zipped.namelist())


def declared_in(folder: Path, plan: Plan, **changes: Any) -> Path:
    """Write the file of the study of a plan, as somebody else may have it."""
    values = plan.study.model_dump(mode="json", exclude_unset=True, exclude=OWN)
    declared = folder / "config" / "studies" / "tiny.yaml"
    declared.parent.mkdir(parents=True, exist_ok=True)
    declared.write_text(json.dumps(values | changes), encoding="utf-8")
    return declared


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_same_results_give_the_same_bytes_wherever_and_whenever(tmp_path: Path) -> None:
    packed(EXAMPLE, tmp_path / "a.zip", *STUDIES)
    copy = shutil.copytree(EXAMPLE, tmp_path / "copy")
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))
    packed(copy, tmp_path / "again.zip", *STUDIES)
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "a.zip").read_bytes()


def test_a_bundle_holds_what_was_measured_and_its_checksums_and_no_analysis(tmp_path: Path) -> None:
    packed(EXAMPLE, tmp_path / "a.zip", *STUDIES)
    with zipfile.ZipFile(tmp_path / "a.zip") as zipped:
        names, sums = set(zipped.namelist()), zipped.read(CHECKSUMS).decode()
        zipped.extractall(tmp_path / "plain")
    assert all(map(is_held, names))
    records = {name for name in names if "/records/" in name}
    assert len(records) == len([name for name in names if "/telemetry/" in name]) == 198
    assert {line.partition("  ")[2] for line in sums.splitlines()} == names - {CHECKSUMS}
    command = ["sha256sum", "-c", "--quiet", CHECKSUMS]
    subprocess.run(command, cwd=tmp_path / "plain", check=True)


def test_the_report_of_a_bundle_is_that_of_its_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And so is its answer: both are made from the records."""
    results = shutil.copytree(EXAMPLE, tmp_path / "results")
    packed(results, tmp_path / "travels.zip")
    assert main(["unbundle", str(tmp_path / "travels.zip"), str(tmp_path / "elsewhere")]) == 0
    for folder in ("results", "elsewhere"):
        assert main(["report", "photographs-speedup", "--results", str(tmp_path / folder)]) == 0
    before, after = (tmp_path / folder / "report.html" for folder in ("results", "elsewhere"))
    assert after.read_bytes() == before.read_bytes()
    packed(tmp_path / "elsewhere", tmp_path / "on.zip")
    assert (tmp_path / "on.zip").read_bytes() == (tmp_path / "travels.zip").read_bytes()
    capsys.readouterr()
    answers = []
    for given in ("elsewhere", "travels.zip"):
        assert main(["answer", "photographs-speedup", "--results", str(tmp_path / given)]) == 0
        answers.append(capsys.readouterr().out.splitlines())
    assert answers[1] == [line for line in answers[0] if not line.startswith("report ")] != []


def test_a_report_of_a_bundle_links_to_where_the_bundle_unpacks(tmp_path: Path) -> None:
    packed(results(tmp_path / "results"), tmp_path / "a.bundle.zip")
    bundle, output = str(tmp_path / "a.bundle.zip"), str(tmp_path / "page.html")
    assert main(["report", "--results", bundle, "--output", output]) == 0
    assert main(["unbundle", bundle]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    linked = re.findall(r'href="(a\.bundle/[^"]+\.json)"', page)
    assert "a.bundle/tiny/plan.json" in linked
    assert (tmp_path / "a.bundle" / "tiny" / "plan.json").is_file()
    assert str(tmp_path) not in page


def test_a_report_of_a_bundle_needs_a_file_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed(results(tmp_path / "results"), tmp_path / "a.zip")
    assert main(["report", "--results", str(tmp_path / "a.zip")]) == 1
    said = "error: --output: missing: nothing is written into a bundle"
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["unbundle", "gone"], "gone: not a bundle: no such file"),
        (
            ["unbundle", "a.zip", "results"],
            "results: it exists already, and nothing is replaced: name another folder",
        ),
        (["bundle", "other", "--results", "results"], "results: no study 'other'; allowed: tiny"),
        (["bundle", "--results", "empty"], "empty/plan.json: cannot be read"),
        (
            ["bundle", "--results", "planned"],
            "planned: no run is there yet; a bundle holds the records of one or more",
        ),
    ],
)
def test_what_is_wrong_with_a_bundle_is_one_line(
    arguments: list[str], words: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed(results(Path("results")), Path("a.zip"))
    write_plans([tiny_plan()], Path("planned"))
    Path("empty").mkdir()
    before = files_below(here)
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {words}")
    assert error.count("\n") == 1
    assert files_below(here) == before


def test_a_bundle_says_in_one_line_what_is_not_in_it(tmp_path: Path) -> None:
    folder = results(tmp_path / "results")
    assert packed(folder, tmp_path / "a.zip") == [
        "not in the bundle, because it is not there or is not what was planned: "
        + f"data/{tiny_plan().runs[0].dataset}/manifest.json, "
        f"tiny/weights/{tiny_plan().runs[0].weights}.json, "
        "config/studies/tiny.yaml, tiny/telemetry/"
    ]


def test_a_bundle_of_one_study_holds_nothing_of_the_others(tmp_path: Path) -> None:
    folder = results(tmp_path / "results", "tiny", "other")
    packed(folder, tmp_path / "one.zip", "tiny")
    packed(folder, tmp_path / "both.zip")
    for name in ("one", "both"):
        unpack(tmp_path / f"{name}.zip", tmp_path / name)
    assert json.loads((tmp_path / "one" / "plan.json").read_text()) == {"studies": ["tiny"]}
    assert not (tmp_path / "one" / "other").exists()
    assert (tmp_path / "both" / "other").exists()


def test_records_that_were_excluded_and_warm_up_runs_travel_and_pictures_and_logs_do_not(
    tmp_path: Path,
) -> None:
    folder = results(tmp_path / "results")
    record = tiny_plan().runs[0].file
    data = f"data/{tiny_plan().runs[0].dataset}"
    asides = ("superseded", "disturbed", "broken")
    with_them = {f"tiny/records/{aside}/{record}" for aside in asides} | {f"{data}/manifest.json"}
    with_them |= {"warm_up_runs/now.cpu.json", "warm_up_runs/now.cpu.parquet"}
    without = {
        f"tiny/{name}" for name in ("session.json", "blocks/x", "fit.json", "records/.x.json")
    }
    without |= {f"{data}/a/0.jpg", "logs/x.log", "weights/hub.pth"}
    for name in with_them | without:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    said = packed(folder, tmp_path / "a.zip")
    names = names_in(tmp_path / "a.zip")
    assert with_them <= names
    assert not without & names
    why = "left out, because a bundle cannot hold a file of that name or size"
    assert said[-1] == f"{why}: tiny/records/.x.json"


def test_the_file_of_a_study_travels_if_it_is_what_was_planned(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "workflow").mkdir(parents=True)
    shutil.copy(ROOT / "workflow" / "Snakefile", checkout / "workflow")
    folder = results(tmp_path / "results")
    for changes in ({}, {"title": "Other"}):
        declared_in(checkout, tiny_plan(), **changes)
        write_bundle([], folder, checkout, tmp_path / "a.zip", quiet)
        travels = "config/studies/tiny.yaml" in names_in(tmp_path / "a.zip")
        assert travels is not bool(changes)


def test_the_file_of_a_study_travels_where_a_start_chose_devices_and_length(tmp_path: Path) -> None:
    folder = results(tmp_path / "own" / "results")
    path = Results(folder).plan("tiny")
    plan = Plan.read(path)
    both = {**plan.study.factors, "device": ["cpu", "cuda"]}
    declared_in(tmp_path / "own", plan, factors=both)
    rung = plan.study.model_copy(update={"rung": {"replicates": plan.study.replicates}})
    for config in ({"devices": ["cpu"]}, {}):
        made = plan.model_copy(update={"study": rung, "start": StartCommand(config=config)})
        path.write_text(made.model_dump_json(indent=1))
        packed(folder, tmp_path / "a.zip")
        assert ("config/studies/tiny.yaml" in names_in(tmp_path / "a.zip")) is bool(config)


def test_the_file_of_a_study_beside_the_results_comes_before_that_of_the_checkout(
    tmp_path: Path,
) -> None:
    """In a folder that uses the workflow as a module, the studies are that folder's."""
    folder = results(tmp_path / "own" / "results")
    declared = declared_in(tmp_path / "own", tiny_plan())
    packed(folder, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as zipped:
        assert zipped.read("config/studies/tiny.yaml") == declared.read_bytes()


def test_a_bundle_holds_no_absolute_path(tmp_path: Path) -> None:
    """The path of a folder of photographs stands in the plan, and that of an archive in an image's
    description."""
    photos = write_photos(tmp_path / "my photos", {"a": 10, "b": 10})
    data = {"source": "folder", "path": str(photos), "image_size": 32, "valid_fraction": 0.2}
    folder = results(tmp_path / "results", dataset=data)
    request = ARCHIVE.model_copy(update={"reference": str(tmp_path / "image.tar")})
    image = described(request, "docker", "x")
    (folder / "images").mkdir()
    (folder / "images" / "cpu.json").write_text(image.model_dump_json(indent=1))
    packed(folder, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as zipped:
        texts = {name: zipped.read(name).decode() for name in zipped.namelist()}
    assert photos.name in json.loads(texts["tiny/plan.json"])["study"]["dataset"]["path"]
    for name, text in texts.items():
        assert str(tmp_path) not in text, name
        assert str(ROOT) not in text, name
    unpack(tmp_path / "a.zip", tmp_path / "b")
    assert main(["report", "--results", str(tmp_path / "b")]) == 0


def test_levels_that_differ_in_their_folders_alone_are_refused(tmp_path: Path) -> None:
    photos = write_photos(tmp_path / "my photos", {"a": 10, "b": 10})
    other = shutil.copytree(photos, tmp_path / "other" / photos.name)
    data = {"source": "folder", "path": str(photos), "image_size": 32, "valid_fraction": 0.2}
    factors = {"device": ["cpu"], "dataset.path": [str(photos), str(other)]}
    folder = results(tmp_path / "results", dataset=data, factors=factors, curve=None)
    with pytest.raises(StudyError, match=r"tiny: factors: dataset\.path: two levels have one name"):
        packed(folder, tmp_path / "a.zip")
