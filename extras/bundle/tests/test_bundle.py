"""Results travel in one archive: the same report comes out of it, and nothing else than its files."""

import hashlib
import json
import os
import re
import shutil
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from study.artifacts.bundle import METADATA, unpack
from study.artifacts.layout import Results
from study.artifacts.plan import Command, Plan, write_plans
from study.artifacts.prepared import Image, ImageRequest
from study.artifacts.record import without_paths
from study.base.errors import StudyError
from study.cli import main
from study_bundle.write import write_bundle
from tests.conftest import ROOT, tiny_plan
from tests.examples import EXAMPLE, STUDIES
from tests.results import of_devices, result, slower
from tests.unit.artifacts.test_records import make_record

PAGE = ROOT / "docs" / "example" / "report.html"
LINK, PIPE = stat.S_IFLNK | 0o777, stat.S_IFIFO | 0o644
SCHEMA = (
    "about contentSize ComputerLanguage CreateAction CreativeWork Dataset datePublished description encodingFormat "
    "endTime hasPart identifier instrument license mainEntity mentions name object programmingLanguage result "
    "SoftwareSourceCode startTime url version"
)
TERMS = {term: f"http://schema.org/{term}" for term in SCHEMA.split()} | {
    "File": "http://schema.org/MediaObject",
    "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
    "conformsTo": "http://purl.org/dc/terms/conformsTo",
}
"""What https://w3id.org/ro/crate/1.1/context says of the terms that a bundle uses: no test asks a network."""
Document = dict[str, Any]


def quiet(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of the example with their page, as a start leaves them."""
    folder = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("example") / "results")
    shutil.copy(PAGE, folder)
    return folder


@pytest.fixture(scope="module")
def example(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle of the example."""
    target = tmp_path_factory.mktemp("bundle") / "example.crate.zip"
    write_bundle([], whole, ROOT, target, quiet)
    return target


def results(folder: Path, *studies: str, **changes: Any) -> Path:
    """A results folder with one record in each study of one plan."""
    plans = [tiny_plan(**changes).model_copy(update={"name": name}) for name in studies or ("tiny",)]
    write_plans(plans, folder)
    for plan in plans:
        path = Results(folder).record(plan.name, plan.runs[0].file)
        path.parent.mkdir(parents=True)
        record, run = make_record(plan), plan.runs[0]
        shared = {"settings": without_paths(run.settings)}
        path.write_text(record.model_copy(update=shared).model_dump_json(indent=1), encoding="utf-8")
    return folder


def packed(folder: Path, target: Path, *studies: str) -> list[str]:
    """Write the bundle of a folder, and return what is said."""
    said: list[str] = []
    write_bundle(studies, folder, ROOT, target, said.append)
    return said


def document(archive: Path) -> Document:
    with zipfile.ZipFile(archive) as zipped:
        found: Document = json.loads(zipped.read(METADATA))
    return found


def entities(archive: Path) -> dict[str, Document]:
    graph = document(archive)["@graph"]
    assert len({one["@id"] for one in graph}) == len(graph)
    return {one["@id"]: one for one in graph}


def files_below(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def references(value: object) -> set[str]:
    """What an entity names by ``@id``."""
    if isinstance(value, dict):
        return {value["@id"]} if set(value) == {"@id"} else set().union(*map(references, value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_the_same_results_give_the_same_bytes_wherever_and_whenever(example: Path, whole: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(whole, tmp_path / "copy")
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))
    packed(copy, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == example.read_bytes()


def test_a_bundle_is_described_file_by_file(example: Path) -> None:
    found = entities(example)
    root = found["./"]
    with zipfile.ZipFile(example) as zipped:
        names = set(zipped.namelist()) - {METADATA}
        for name in names:
            content = zipped.read(name)
            assert found[name]["contentSize"] == str(len(content))
            assert found[name]["sha256"] == hashlib.sha256(content).hexdigest()
    assert {part["@id"] for part in root["hasPart"]} == names
    assert {one for one, entity in found.items() if "File" in entity["@type"]} == names
    assert found[root["mainEntity"]["@id"]]["@type"] == ["File", "SoftwareSourceCode", "ComputationalWorkflow"]
    assert root["datePublished"] == "2026-11-27T16:37:13+00:00"
    # A profile names the crate's version and its language's address, and describes neither.
    outside = {"https://w3id.org/ro/crate/1.1", "https://snakemake.github.io"}
    assert references(list(found.values())) - outside <= found.keys()


def test_each_start_is_an_action_with_its_records_and_samples(example: Path) -> None:
    actions = [one for one in entities(example).values() if one["@type"] == "CreateAction"]
    assert [one["@id"] for one in actions] == [
        f"#{study}-start-{session}" for study in STUDIES for session in (1, 2, 3)
    ]
    made = [result["@id"] for action in actions for result in action["result"]]
    assert len([one for one in made if "/records/" in one]) == len([one for one in made if "/telemetry/" in one]) == 198
    assert len(set(made) - {"report.html"}) == len([one for one in made if one != "report.html"])
    for action in actions:
        assert action["startTime"] < action["endTime"]
        assert action["instrument"] == {"@id": "workflow/Snakefile"}
        assert ": version 0.2.0, commit " in action["description"]
    assert {f"{STUDIES[-1]}/timings.csv", f"{STUDIES[-1]}/fit.json", "report.html"} <= {
        one["@id"] for one in actions[-1]["result"]
    }


def test_the_metadata_uses_no_term_that_its_contexts_lack(example: Path) -> None:
    found = document(example)
    reference, own = found["@context"]
    assert reference == "https://w3id.org/ro/crate/1.1/context"
    used = {key for one in found["@graph"] for key in one}
    used |= {
        kind for one in found["@graph"] for kind in ([one["@type"]] if isinstance(one["@type"], str) else one["@type"])
    }
    assert used - {"@id", "@type"} == (TERMS | own).keys()


@pytest.mark.xdist_group("the example")
def test_the_report_of_an_unpacked_bundle_is_that_of_its_results(example: Path, tmp_path: Path) -> None:
    results = shutil.copytree(EXAMPLE, tmp_path / "results")
    packed(results, tmp_path / "travels.zip")
    assert main(["unbundle", str(tmp_path / "travels.zip"), str(tmp_path / "elsewhere")]) == 0
    for folder in ("results", "elsewhere"):
        assert main(["report", "photographs-speedup", "--results", str(tmp_path / folder)]) == 0
    before, after = (tmp_path / folder / "report.html" for folder in ("results", "elsewhere"))
    assert after.read_bytes() == before.read_bytes() != PAGE.read_bytes()
    packed(tmp_path / "elsewhere", tmp_path / "on.zip")
    packed(results, tmp_path / "travels.zip")
    assert (tmp_path / "on.zip").read_bytes() == (tmp_path / "travels.zip").read_bytes()


def test_a_report_of_a_bundle_links_to_where_the_bundle_unpacks(tmp_path: Path) -> None:
    packed(results(tmp_path / "results"), tmp_path / "a.crate.zip")
    assert main(["report", "--results", str(tmp_path / "a.crate.zip"), "--output", str(tmp_path / "page.html")]) == 0
    assert main(["unbundle", str(tmp_path / "a.crate.zip")]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    linked = re.findall(r'href="(a\.crate/[^"]+\.json)"', page)
    assert "a.crate/tiny/plan.json" in linked
    assert (tmp_path / "a.crate" / "tiny" / "plan.json").is_file()
    assert str(tmp_path) not in page


def test_a_report_of_a_bundle_needs_a_file_to_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed(results(tmp_path / "results"), tmp_path / "a.zip")
    assert main(["report", "--results", str(tmp_path / "a.zip")]) == 1
    assert capsys.readouterr().err.startswith("error: --output: missing: nothing is written into a bundle")


def test_bundles_are_compared_as_their_folders_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        shutil.copy(ROOT / "docs" / "example" / "host.zip", tmp_path / name / "results.zip")
        unpack(tmp_path / name / "results.zip", tmp_path / name / "folder", quiet)
    assert main(["compare", *(str(tmp_path / name / "folder") for name in ("one", "two"))]) == 0
    of_folders = capsys.readouterr().out
    assert of_folders.splitlines()[1].startswith("two/folder and one/folder are tied")
    assert main(["compare", *(str(tmp_path / name / "results.zip") for name in ("one", "two"))]) == 0
    assert capsys.readouterr().out.replace("results.zip", "folder") == of_folders
    assert main(["compare", str(tmp_path / "one/folder"), str(tmp_path / "two/results.zip")]) == 0
    assert "results.zip" in capsys.readouterr().out
    assert main(["gate", *(str(tmp_path / name / "results.zip") for name in ("one", "two"))]) == 0
    assert capsys.readouterr().out.startswith("ok: quickstart: 1.00 times the baseline")
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [("same", "b.zip and a.zip are equal within 5%"), ("slower", "b.zip takes 1.05 times as long as a.zip"),
     ("device", "b.zip is 6.7 times as fast as a.zip")],
)  # fmt: skip
def test_bundles_have_the_verdict_of_what_was_planted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, verdict: str
) -> None:
    """Of one machine, of one that is 5% slower, and of the example's CPU beside its H100."""
    if kind == "device":
        of_devices(tmp_path)
    else:
        plan = tiny_plan(replicates=4)
        result(tmp_path / "a", plan, slower(1.0))
        result(tmp_path / "b", plan, slower(1.05 if kind == "slower" else 1.0))
    for name in ("a", "b"):
        packed(tmp_path / name, tmp_path / f"{name}.zip")
        shutil.rmtree(tmp_path / name)
    assert main(["compare", *(str(tmp_path / f"{name}.zip") for name in ("a", "b"))]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith(verdict)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "HERE", "HERE"], "compare: HERE is given twice"),
        (["compare", "HERE", "HERE", "--study", "other"], "--study: HERE holds no study 'other'; allowed: tiny"),
        (
            ["compare", "HERE", "text"],
            "text: not a bundle: not a zip archive, or a damaged one (File is not a zip file)",
        ),
        (["unbundle", "gone"], "gone: not a bundle: no such file"),
        (["unbundle", "HERE", "results"], "results: it exists already, and nothing is replaced: name another folder"),
        (["bundle", "other", "--results", "results"], "results: no study 'other'; allowed: tiny"),
        (["bundle", "--results", "empty"], "empty/plan.json: cannot be read"),
        (["bundle", "--results", "planned"], "planned: no run is there yet; a bundle holds the records of one or more"),
    ],
)
def test_what_is_wrong_with_a_bundle_is_one_line(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    packed(results(Path("results")), Path("a.zip"))
    write_plans([tiny_plan()], Path("planned"))
    Path("empty").mkdir()
    Path("text").write_text("hello")
    before = files_below(tmp_path)
    here = str(tmp_path / "a.zip")
    assert main([word.replace("HERE", here) for word in arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {words.replace('HERE', here)}")
    assert error.count("\n") == 1
    assert files_below(tmp_path) == before


def test_a_bundle_says_in_one_line_what_is_not_in_it(tmp_path: Path) -> None:
    folder = results(tmp_path / "results")
    assert packed(folder, tmp_path / "a.zip") == [
        "not in the bundle, because it is not there or is not what was planned: report.html, "
        + f"data/{tiny_plan().runs[0].dataset}/manifest.json, tiny/weights/{tiny_plan().runs[0].weights}.json, "
        "tiny/timings.csv, tiny/fit.json, config/studies/tiny.yaml, tiny/telemetry/, tiny/figures/"
    ]


def test_a_bundle_of_one_study_holds_nothing_of_the_others(tmp_path: Path) -> None:
    folder = results(tmp_path / "results", "tiny", "other")
    (folder / "report.html").write_text("about both")
    packed(folder, tmp_path / "one.zip", "tiny")
    packed(folder, tmp_path / "both.zip")
    unpack(tmp_path / "one.zip", tmp_path / "one", quiet)
    unpack(tmp_path / "both.zip", tmp_path / "both", quiet)
    assert json.loads((tmp_path / "one" / "plan.json").read_text()) == {"studies": ["tiny"]}
    assert not (tmp_path / "one" / "report.html").exists()
    assert not (tmp_path / "one" / "other").exists()
    assert (tmp_path / "both" / "report.html").read_text() == "about both"


def test_records_that_were_excluded_and_warm_up_runs_travel_and_pictures_and_logs_do_not(tmp_path: Path) -> None:
    folder = results(tmp_path / "results")
    record = tiny_plan().runs[0].file
    data = f"data/{tiny_plan().runs[0].dataset}"
    with_them = [f"tiny/records/{aside}/{record}" for aside in ("superseded", "disturbed", "broken")]
    with_them += [
        "warm_up_runs/now.cpu.json",
        "warm_up_runs/now.cpu.parquet",
        f"{data}/manifest.json",
        "tiny/figures/law.svg",
    ]
    without = [
        f"{data}/a/0.jpg",
        "logs/x.log",
        "weights/hub.pth",
        "tiny/session.json",
        "tiny/blocks/x",
        "tiny/records/.x.json",
    ]
    for name in (*with_them, *without):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    said = packed(folder, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as zipped:
        names = set(zipped.namelist())
    assert set(with_them) <= names
    assert not set(without) & names
    assert said[-1] == "left out, because a bundle cannot hold a file of that name or size: tiny/records/.x.json"


def test_the_file_of_a_study_travels_if_it_is_what_was_planned(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "config" / "studies").mkdir(parents=True)
    (checkout / "workflow").mkdir()
    shutil.copy(ROOT / "workflow" / "Snakefile", checkout / "workflow")
    declared = checkout / "config" / "studies" / "tiny.yaml"
    folder = results(tmp_path / "results")
    values = json.loads(json.dumps(tiny_plan().study.model_dump(mode="json", exclude_unset=True, exclude={"full"})))
    for changed in (False, True):
        declared.write_text(json.dumps(values | ({"title": "Other"} if changed else {})), encoding="utf-8")
        write_bundle([], folder, checkout, tmp_path / "a.zip", quiet)
        with zipfile.ZipFile(tmp_path / "a.zip") as zipped:
            assert ("config/studies/tiny.yaml" in zipped.namelist()) is not changed


def test_the_file_of_a_study_travels_where_a_start_chose_its_devices(tmp_path: Path) -> None:
    folder = results(tmp_path / "own" / "results")
    path = Results(folder).plan("tiny")
    plan = Plan.read(path)
    values = plan.study.model_dump(mode="json", exclude_unset=True, exclude={"full"})
    declared = tmp_path / "own" / "config" / "studies" / "tiny.yaml"
    declared.parent.mkdir(parents=True)
    declared.write_text(json.dumps(values | {"factors": values["factors"] | {"device": ["cpu", "cuda"]}}))
    for config in ({"devices": ["cpu"]}, {}):
        path.write_text(plan.model_copy(update={"start": Command(config=config)}).model_dump_json(indent=1))
        write_bundle([], folder, ROOT, tmp_path / "a.zip", quiet)
        with zipfile.ZipFile(tmp_path / "a.zip") as zipped:
            assert ("config/studies/tiny.yaml" in zipped.namelist()) is bool(config)


def test_the_file_of_a_study_beside_the_results_comes_before_that_of_the_checkout(tmp_path: Path) -> None:
    """In a folder that uses the workflow as a module, the studies are that folder's."""
    folder = results(tmp_path / "own" / "results")
    values = tiny_plan().study.model_dump(mode="json", exclude_unset=True, exclude={"full"})
    declared = tmp_path / "own" / "config" / "studies" / "tiny.yaml"
    declared.parent.mkdir(parents=True)
    declared.write_text(json.dumps(values), encoding="utf-8")
    write_bundle([], folder, ROOT, tmp_path / "a.zip", quiet)
    with zipfile.ZipFile(tmp_path / "a.zip") as zipped:
        assert zipped.read("config/studies/tiny.yaml") == declared.read_bytes()


def test_a_bundle_holds_no_absolute_path(photos: Path, tmp_path: Path) -> None:
    """The path of a folder of photographs stands in the plan, and that of an archive in an image's description."""
    data = {"source": "folder", "path": str(photos), "image_size": 32, "valid_fraction": 0.2}
    folder = results(tmp_path / "results", dataset=data)
    request = ImageRequest(
        device="cpu", kind="archive", reference=str(tmp_path / "image.tar"), base_image=None, identity="0a1b2c3d"
    )
    image = Image(
        request=request, engine="apptainer", engine_version="1", id="x", digest=None, run_as=str(tmp_path / "x.sif"),
        created=None, lock_sha256=None, python="3.11", libraries={}, gpu_seen=False,
    )  # fmt: skip
    (folder / "images").mkdir()
    (folder / "images" / "cpu.json").write_text(image.model_dump_json(indent=1))
    packed(folder, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as zipped:
        texts = {name: zipped.read(name).decode() for name in zipped.namelist()}
    assert photos.name in json.loads(texts["tiny/plan.json"])["study"]["dataset"]["path"]
    for name, text in texts.items():
        assert str(tmp_path) not in text, name
        assert str(ROOT) not in text, name
    unpack(tmp_path / "a.zip", tmp_path / "b", quiet)
    assert main(["report", "--results", str(tmp_path / "b")]) == 0
    assert main(["compare", str(tmp_path / "results"), str(tmp_path / "b")]) == 0


def test_levels_that_differ_in_their_folders_alone_are_refused(tmp_path: Path, photos: Path) -> None:
    other = shutil.copytree(photos, tmp_path / "other" / photos.name)
    data = {"source": "folder", "path": str(photos), "image_size": 32, "valid_fraction": 0.2}
    factors = {"device": ["cpu"], "dataset.path": [str(photos), str(other)]}
    folder = results(tmp_path / "results", dataset=data, factors=factors, curve=None)
    with pytest.raises(StudyError, match=r"tiny: factors: dataset\.path: two levels have one name"):
        packed(folder, tmp_path / "a.zip")
