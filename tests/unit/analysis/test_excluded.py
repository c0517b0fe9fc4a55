"""Records that were excluded have rows of their own, are named, are drawn, and are in no number."""

from pathlib import Path

import pytest

from study.analysis.analysis import StudyResult
from study.analysis.caveats.runs import DisturbedRuns
from study.analysis.report.content import view
from study.analysis.step import charts_of
from study.analysis.table.tables import read_table
from study.artifacts.checked import read_records
from study.artifacts.machine import Observed
from study.artifacts.plan import Plan
from study.artifacts.record_store import free_aside, move_aside
from study.base.files import write_new
from tests.conftest import tiny_plan
from tests.timings import table
from tests.unit.analysis.planted import analysis_of, only
from tests.unit.artifacts.test_records import make_record

KIND = "others_cpu_percent"


@pytest.fixture
def plan() -> Plan:
    return tiny_plan(factors={"training.batch_size": [2, 4, 8]}, replicates=4)


@pytest.fixture
def folder(plan: Plan, tmp_path: Path) -> Path:
    """A record of each run; one run's first try was disturbed, another was disturbed twice, and a
    block broken off."""
    records = tmp_path / "records"
    for number, run in enumerate(plan.runs):
        seconds = 1.0 + 0.01 * (number % 5)
        record = make_record(plan, number, fit_seconds=seconds, session=2)
        noisy = record.model_copy(
            update={"disturbed": [KIND], "observed": Observed(others_cpu_percent=44.0)}
        )
        write_new(records / run.file, (noisy if number == 7 else record).model_dump_json())
        if number in (5, 7):
            slow = make_record(plan, number, fit_seconds=9.0, session=2)
            first = slow.model_copy(
                update={"disturbed": [KIND], "observed": Observed(others_cpu_percent=55.0)}
            )
            write_new(free_aside(records / run.file, "disturbed")[0], first.model_dump_json())
    for number in (0, 1):
        path = records / plan.runs[number].file
        whole = path.read_text()
        path.unlink()
        write_new(path, make_record(plan, number, fit_seconds=7.0, session=1).model_dump_json())
        move_aside(path, "broken")
        write_new(path, whole)
    old = make_record(plan, 0).model_copy(update={"key": "00000000"})
    write_new(records / "broken" / "old.json", old.model_dump_json())  # of another plan
    return records


def test_the_table_has_a_row_for_each_record_that_was_excluded_and_no_number_has_it(
    plan: Plan, folder: Path
) -> None:
    counts = table(plan, read_records(plan, folder).included)
    every = read_table(plan, folder, folder.parent / "telemetry")[0]
    extra = every[len(counts) :]
    assert every[: len(counts)]["excluded"].isna().all()
    assert extra["excluded"].tolist() == ["broken block", "broken block", "disturbed", "disturbed"]
    assert extra["fit_seconds"].tolist() == [7.0, 7.0, 9.0, 9.0]
    assert extra["others_cpu_percent"].dropna().tolist() == [55.0, 55.0]
    assert every["disturbed"].notna().sum() == 3
    with_them, without = analysis_of(plan.study, every), analysis_of(plan.study, counts)
    numbers = [
        found.model_dump(exclude={"warnings": True, "screen": {"other_notes"}})
        for found in (with_them, without)
    ]
    assert numbers[0] == numbers[1]
    rest = [caveat for caveat in with_them.warnings if not isinstance(caveat, DisturbedRuns)]
    assert rest == [caveat for caveat in without.warnings if not isinstance(caveat, DisturbedRuns)]


def test_the_marked_runs_are_named_with_the_kind_and_how_many_were_measured_again(
    plan: Plan, folder: Path
) -> None:
    every = read_table(plan, folder, folder.parent / "telemetry")[0]
    names = [plan.runs[number].name for number in (7, 5)]
    assert only(DisturbedRuns, analysis_of(plan.study, every).warnings) == [
        DisturbedRuns(kinds={KIND: 3}, runs=names, measured_again=2, disturbed_again=names[:1])
    ]


def test_the_figures_of_single_runs_draw_them_apart_and_the_page_marks_them(
    plan: Plan, folder: Path
) -> None:
    every = read_table(plan, folder, folder.parent / "telemetry")[0]
    analysis = analysis_of(plan.study, every)
    chart = charts_of(StudyResult(plan, every, analysis))["runs"]
    assert ("excluded", "excluded") in chart.key
    shown = view(plan, every, analysis, [])
    outcomes = [row["outcome"] for row in shown.runs]
    assert outcomes[7] == "ok, disturbed"
    assert outcomes[12:] == ["ok, excluded: broken block"] * 2 + ["ok, disturbed, excluded"] * 2
