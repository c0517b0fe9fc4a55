"""Whole blocks: what a start leaves half made is measured anew, and what a time budget leaves is begun by no run."""

import time
from pathlib import Path

import pytest

from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.artifacts.record_store import move_aside
from study.artifacts.session import Session, read_session, remove_deferred_stamps, restamp, write_session
from study.base.errors import StudyError
from study.base.files import write_new
from study.config.selection import Selection
from study.host.plan import forecast
from study.host.steps import attempt, budget, launch
from tests.conftest import tiny_plan
from tests.unit.artifacts.test_records import make_record

SELECTION = Selection(warm_up_run=False, quiet_wait_seconds=0)


def planned(**changes: object) -> Plan:
    """Three settings in three blocks."""
    return tiny_plan(factors={"training.batch_size": [2, 4, 8]}, **({"replicates": 3} | changes))


def begin(plan: Plan, files: Results, **changes: object) -> Session:
    """What a start does before its first run."""
    remove_deferred_stamps(plan.name, files)
    forecast.exclude_broken_blocks(plan.name, files)
    pending = [run for run in plan.runs if not files.record(plan.name, run.file).exists()]
    forecast.note(
        plan, pending, SELECTION.model_copy(update=changes), time.time(), files, forecast.known_seconds(plan, files)
    )
    session = read_session(files.session(plan.name))
    assert session
    return session


def make(plan: Plan, files: Results, session: Session, count: int, outcome: str = "ok", seconds: float = 2.0) -> None:
    """The records of the next ``count`` runs of a start."""
    pending = [run for run in plan.runs if not files.record(plan.name, run.file).exists()]
    for run in pending[:count]:
        record = make_record(plan, plan.runs.index(run), outcome, session=session.number)
        path = files.record(plan.name, run.file)
        write_new(path, record.model_copy(update={"process_seconds": seconds}).model_dump_json(indent=1))
        launch.note_end(plan.name, run, files)


def made(plan: Plan, files: Results) -> list[str]:
    return [run.file for run in plan.runs if files.record(plan.name, run.file).exists()]


def broken(files: Results) -> list[str]:
    return sorted(path.name for path in files.records("tiny").glob("broken/*.json"))


def test_a_block_that_was_broken_off_is_excluded_and_whole_ones_stay(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plan, files = planned(), Results(tmp_path)
    make(plan, files, begin(plan, files), 5)
    samples = files.telemetry("tiny", plan.runs[3].file)
    samples.parent.mkdir()
    samples.write_bytes(b"samples")
    again = begin(plan, files)
    assert made(plan, files) == [run.file for run in plan.runs[:3]]
    assert broken(files) == sorted(run.file for run in plan.runs[3:5])
    assert (samples.parent / "broken" / samples.name).read_bytes() == b"samples"
    assert "block 2 of tiny was broken off in session 1: 2 record(s) are excluded" in capfd.readouterr().err
    assert [len(block.records) for block in again.blocks] == [3, 3]
    assert again.number == 2
    make(plan, files, again, 6)
    assert begin(plan, files) == read_session(files.session("tiny"))
    assert len(made(plan, files)) == 9


@pytest.mark.parametrize("outcome", ["failed", "out_of_memory", "unavailable"])
def test_a_run_that_did_not_succeed_has_ended_all_the_same(tmp_path: Path, outcome: str) -> None:
    plan, files = planned(), Results(tmp_path)
    session = begin(plan, files)
    make(plan, files, session, 2)
    make(plan, files, session, 1, outcome)
    begin(plan, files)
    assert (len(made(plan, files)), broken(files)) == (3, [])


def test_settings_that_are_added_later_break_no_block_but_can_be_broken_off_themselves(tmp_path: Path) -> None:
    plan, files = planned(), Results(tmp_path)
    make(plan, files, begin(plan, files), 9)
    whole = made(plan, files)
    more = tiny_plan(factors={"training.batch_size": [2, 4, 8, 10, 12]}, replicates=3)
    session = begin(more, files)
    assert [len(block.records) for block in session.blocks] == [2, 2, 2]
    make(more, files, session, 3)  # one of the two new settings of the second block
    begin(more, files)
    assert made(plan, files) == whole
    assert len(broken(files)) == 1
    assert len(made(more, files)) == 11


def test_a_record_moved_or_deleted_after_its_block_ended_breaks_no_block(tmp_path: Path) -> None:
    plan, files = planned(), Results(tmp_path)
    make(plan, files, begin(plan, files), 9)
    move_aside(files.record("tiny", plan.runs[0].file), "superseded")
    files.record("tiny", plan.runs[4].file).unlink()
    begin(plan, files)
    assert (len(made(plan, files)), broken(files)) == (7, [])


def test_a_start_killed_between_the_last_record_and_its_note_has_ended_its_block(tmp_path: Path) -> None:
    plan, files = planned(replicates=1), Results(tmp_path)
    session = begin(plan, files)
    make(plan, files, session, 3)
    write_session(session, files.session("tiny"))  # without the note
    begin(plan, files)
    assert len(made(plan, files)) == 3


def test_a_budget_begins_no_block_that_it_cannot_end_by_the_earlier_runs(tmp_path: Path) -> None:
    plan, files = planned(), Results(tmp_path)
    session = begin(plan, files, time_budget_minutes=1.0)
    assert budget.is_deferred(plan, plan.runs[0], session, files) == (
        False,
        None,
    )  # nothing is known: the first is begun
    make(plan, files, session, 1, seconds=15.0)
    make(plan, files, session, 2, seconds=25.0)
    session = read_session(files.session("tiny")) or Session()
    left, told = budget.is_deferred(plan, plan.runs[3], session, files)
    assert left
    assert told == (
        "time budget: block 2 would take about 185 s: 6 run(s) of tiny in 2 block(s) are left for the next start"
    )
    session = read_session(files.session("tiny")) or Session()
    assert [budget.is_deferred(plan, run, session, files) for run in plan.runs[4:]] == [(True, None)] * 5
    restamp("tiny", [run.file for run in plan.runs], files)  # a dry run beside it
    assert all(files.stamp("tiny", run.file).exists() for run in plan.runs)
    assert len(made(plan, files)) == 3
    again = begin(plan, files, time_budget_minutes=4.0)
    assert [len(block.records) for block in again.blocks] == [3, 3]
    assert broken(files) == []
    assert budget.is_deferred(plan, plan.runs[3], again, files) == (False, None)
    assert not files.stamp("tiny", plan.runs[3].file).exists()


def test_a_block_that_was_begun_is_ended_whatever_the_time(tmp_path: Path) -> None:
    plan, files = planned(), Results(tmp_path)
    session = begin(plan, files, time_budget_minutes=1.0)
    make(plan, files, session, 1, seconds=1000.0)
    late = session.model_copy(update={"deadline": time.time() - 1})
    assert budget.is_deferred(plan, plan.runs[1], late, files) == (False, None)
    assert budget.is_deferred(plan, plan.runs[3], late, files)[0] is True


def test_a_run_that_the_budget_leaves_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "host_command", lambda *arguments: pytest.fail("a process was started"))
    plan, files = planned(), Results(tmp_path)
    write_plans([plan], tmp_path)
    session = begin(plan, files)
    write_session(session.model_copy(update={"deadline": time.time() - 1}), files.session("tiny"))
    told = launch.measure(files.plan("tiny"), plan.runs[0].name, tmp_path, None, "run 1 of 9")
    assert told == "time budget: no time is left: 9 run(s) of tiny in 3 block(s) are left for the next start"
    assert launch.measure(files.plan("tiny"), plan.runs[1].name, tmp_path, None, "run 2 of 9") is None


def test_a_damaged_record_tells_a_budget_no_time_and_stops_no_start(tmp_path: Path) -> None:
    plan, files = planned(), Results(tmp_path)
    session = begin(plan, files, time_budget_minutes=1.0)
    make(plan, files, session, 1, seconds=15.0)
    make(plan, files, session, 2, seconds=25.0)
    files.record("tiny", plan.runs[0].file).write_text("{")
    session = begin(plan, files, time_budget_minutes=1.0)
    left, told = budget.is_deferred(plan, plan.runs[3], session, files)
    assert left and told and "block 2 would take about" in told


def test_a_start_that_names_a_file_elsewhere_is_refused_and_moves_nothing(tmp_path: Path) -> None:
    plan, files = planned(), Results(tmp_path / "results")
    precious = tmp_path / "precious.json"
    precious.write_text('{"session": 1}')
    begin(plan, files)
    path = files.session("tiny")
    path.write_text(path.read_text().replace(plan.runs[0].file, "../../../precious.json"))
    with pytest.raises(StudyError, match=r"session.json: not a valid session: blocks.*precious.json' is not allowed"):
        forecast.exclude_broken_blocks(plan.name, files)
    assert precious.exists()
