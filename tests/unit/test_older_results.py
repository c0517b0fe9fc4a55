"""A results folder of an older version is refused in one line that says what to do, and nothing in it is touched."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import study as public
from study.artifacts.layout import Results
from study.artifacts.plan import read_plan, write_plans
from study.base.errors import StudyError
from study.base.strict import OlderVersion
from study.cli import main
from study.host.plan.workflow import start
from tests.conftest import study_values, tiny_plan
from tests.unit.artifacts.test_records import write_records

LINE = "schema_version: 1 is not allowed: an older version of this software wrote it; move"


def as_before(content: dict[str, Any], version: dict[str, int]) -> dict[str, Any]:
    """A plan's run, or a record, as version 1 wrote it."""
    rest = {key: value for key, value in content.items() if key not in ("schema_version", "setting")}
    return version | rest | {"factors": content["setting"]["levels"]}


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A results folder of version 1, whose plans had no version."""
    plan, results = tiny_plan(), tmp_path / "results"
    files = Results(results)
    write_plans([plan], results)
    write_records(plan, files.records("tiny"))
    content = json.loads(files.plan("tiny").read_text())
    del content["schema_version"]
    content["runs"] = [as_before(run, {}) for run in content["runs"]]
    files.plan("tiny").write_text(json.dumps(content))
    for path in files.records("tiny").iterdir():
        path.write_text(json.dumps(as_before(json.loads(path.read_text()), {"schema_version": 1})))
    files.telemetry_folder("tiny").mkdir()
    return results


def contents(folder: Path) -> dict[Path, bytes]:
    """Every file of a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def begin(results: Path) -> None:
    """Start the tiny study in a results folder."""
    studies = results.parent / "studies"
    studies.mkdir()
    (studies / "tiny.yaml").write_text(json.dumps(study_values()))
    start({"studies": ["tiny"], "container": "none"}, [studies], results, read_only=False)


def test_a_start_refuses_it_and_touches_nothing(older: Path) -> None:
    before = contents(older)
    with pytest.raises(OlderVersion, match=f"tiny/plan.json: {LINE} {older}/tiny away, or start in another folder"):
        begin(older)
    assert contents(older) == before


def test_a_start_refuses_records_whose_plan_is_gone(older: Path) -> None:
    Results(older).plan("tiny").unlink()
    with pytest.raises(OlderVersion, match=f"json: {LINE} {older}/tiny away"):
        begin(older)


OF_RESULTS = [f"{verb} --results RESULTS" for verb in ("report", "retry tiny", "bundle", "analyse tiny")]


@pytest.mark.parametrize("command", [*OF_RESULTS, "compare RESULTS OTHER"])
def test_every_verb_that_reads_it_says_so_in_one_line(
    older: Path, command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = shutil.copytree(older, tmp_path / "other")
    before = contents(older)
    assert main(command.replace("RESULTS", str(older)).replace("OTHER", str(other)).split()) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert LINE in line
    assert contents(older) == before


def test_the_public_interface_says_so(older: Path) -> None:
    with pytest.raises(StudyError, match=LINE):
        public.open(older)["tiny"].timings()


def test_a_damaged_plan_is_of_no_version(tmp_path: Path) -> None:
    files = Results(tmp_path / "results")
    files.plan("tiny").parent.mkdir(parents=True)
    files.plan("tiny").write_text('{"name": "tiny"')
    begin(files.root)
    assert json.loads(files.plan("tiny").read_text())["schema_version"] == 2


def test_a_plan_that_named_its_published_figures_is_read_without_them(tmp_path: Path) -> None:
    plan, files = tiny_plan(), Results(tmp_path)
    write_plans([plan], tmp_path)
    content = json.loads(files.plan("tiny").read_text())
    content["study"] |= {"published": "gpu_blog", "claims_of": None}
    files.plan("tiny").write_text(json.dumps(content | {"published": {"gpu_blog": {}}}))
    assert read_plan(files.plan("tiny")) == plan
