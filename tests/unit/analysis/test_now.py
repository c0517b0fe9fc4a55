"""A report at any time: what is there is shown, what is missing is said first, and nothing else is
written."""

from pathlib import Path

import pytest

from study.analysis.report.content import progress_of
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.base.files import write_new
from study.cli import main
from tests.conftest import tiny_plan
from tests.timings import table
from tests.unit.analysis.test_report import Page
from tests.unit.artifacts.test_records import make_record

FACTORS = {"device": ["cpu", "cuda"], "training.batch_size": [2, 4, 8]}


def begun(results: Path, made: int, name: str = "tiny") -> Plan:
    """Write the plan of a study on a machine without a GPU, and the records of its first runs
    there."""
    plan = tiny_plan(factors=FACTORS, replicates=3).model_copy(update={"name": name})
    write_plans([plan], results)
    for number in [at for at, run in enumerate(plan.runs) if not run.unavailable][:made]:
        write_new(
            Results(results).record(name, plan.runs[number].file),
            make_record(plan, number).model_dump_json(),
        )
    return plan


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_a_study_that_is_not_whole_is_rendered_and_says_first_how_far_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = begun(tmp_path, 4)
    before = files_in(tmp_path)
    assert main(["report", "--results", str(tmp_path)]) == 0
    first, gaps, last = capsys.readouterr().err.splitlines()
    assert first == "4 of 9 planned runs are there: this is no final report."
    assert gaps == "tiny: Missing: 5 runs, the first in block 2."
    assert last == f"the report: {tmp_path / 'report.html'}"
    page = Page(tmp_path / "report.html")
    assert page.text.index(first) < page.text.index("Every run")
    assert files_in(tmp_path) - before == {tmp_path / "report.html"}
    rows = {f"run-tiny/{run.name}" for run in plan.runs} & {
        str(tag.get("id")) for _, tag in page.tags
    }
    assert rows == {f"run-tiny/{run.name}" for run in plan.runs if not run.unavailable}


def test_a_whole_study_has_the_page_of_the_pipeline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(tmp_path, 9)
    assert main(["analyse", "tiny", "--results", str(tmp_path)]) == 0
    whole, now = tmp_path / "whole.html", tmp_path / "now.html"
    assert (
        main(
            ["report", "--from-tables", "tiny", "--results", str(tmp_path), "--output", str(whole)]
        )
        == 0
    )
    assert main(["report", "tiny", "--results", str(tmp_path), "--output", str(now)]) == 0
    assert whole.read_text(encoding="utf-8") == now.read_text(encoding="utf-8")
    assert "no final report" not in now.read_text(encoding="utf-8")
    assert "9 of 9 planned runs are there.\n" in capsys.readouterr().err


def test_a_study_without_a_plan_is_one_line_and_one_that_has_not_begun_is_rendered_beside_one_that_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(tmp_path, 0, "other")
    begun(tmp_path, 4)
    assert main(["report", "gone", "tiny", "other", "--results", str(tmp_path)]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "4 of 18 planned runs are there: this is no final report."
    assert "other: Missing: 9 runs, the first in block 1." in said
    (line,) = [line for line in said if line.startswith("gone is left out: ")]
    assert "gone/plan.json: cannot be read (No such file or directory)" in line
    page = Page(tmp_path / "report.html")
    assert {tag.get("id") for _, tag in page.tags} >= {"tiny", "other"}
    assert "0 of 9 planned runs are there: this is no final report." in page.text


def test_no_record_at_all_is_one_line_and_no_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(tmp_path, 0)
    assert main(["report", "--results", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert (
        error
        == "error: results: no run is there yet. tiny: Missing: 9 runs, the first in block 1.\n"
    )
    assert not (tmp_path / "report.html").exists()


def test_a_damaged_record_is_missing_and_the_rest_is_rendered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = begun(tmp_path, 4)
    damaged = next(
        Results(tmp_path).record("tiny", run.file) for run in plan.runs if not run.unavailable
    )
    damaged.write_text("{", encoding="utf-8")
    assert main(["report", "--results", str(tmp_path)]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("3 of 9 planned runs are there")
    assert said[1].endswith("1 of the missing has a record that cannot be used.")


def test_runs_that_this_machine_cannot_make_are_not_missing() -> None:
    plan = tiny_plan(factors=FACTORS, replicates=3)
    every = {run.name: make_record(plan, number) for number, run in enumerate(plan.runs)}
    made = {run.name: every[run.name] for run in plan.runs if not run.unavailable}
    assert progress_of(plan, table(plan, made)).whole
    absent = next(run.name for run in plan.runs if run.unavailable)
    more = progress_of(plan, table(plan, made | {absent: every[absent]}))
    assert more.planned == len(made) + 1  # its record came from another machine
