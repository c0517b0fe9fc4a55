"""What a start says before its runs and at each run."""

from pathlib import Path

import pytest

from study.artifacts.durations import expected_seconds
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.artifacts.prepared import ImageRequest
from study.artifacts.session import Session, SessionBlock, read_session, write_session
from study.base.files import write_new
from study.base.quantities import duration_words
from study.host.plan import forecast
from study.host.steps import budget, launch
from tests.conftest import tiny_plan
from tests.unit.artifacts.test_records import make_record, write_records

PAUSE = 58.0
"""Seconds between two planted runs: each takes 2 s, and they begin a minute apart."""


def planned(**changes: object) -> Plan:
    """Two settings in three blocks."""
    return tiny_plan(**({"replicates": 3} | changes))


def started(plan: Plan, files: Results, name: str = "now", expected: dict[str, float] | None = None) -> Session:
    """A start that means to make every run of a plan."""
    blocks = [
        SessionBlock(block=block, records={run.file: run.key for run in plan.runs if run.block == block})
        for block in dict.fromkeys(run.block for run in plan.runs)
    ]
    session = Session(name=name, blocks=blocks, expected=expected or {})
    write_session(session, files.session(plan.name))
    return session


def make(plan: Plan, files: Results, count: int) -> None:
    """The records of the next ``count`` runs."""
    pending = [run for run in plan.runs if not files.record(plan.name, run.file).exists()]
    for run in pending[:count]:
        record = make_record(plan, plan.runs.index(run))
        write_new(files.record(plan.name, run.file), record.model_dump_json(indent=1))
        launch.note_end(plan.name, run, files)


def test_the_expected_time_of_a_run_is_its_process_and_the_pause_after_it(tmp_path: Path) -> None:
    plan, files = planned(), Results(tmp_path)
    write_records(plan, files.records("tiny"))
    damaged, first = files.record("tiny", "damaged-r1.0123abcd.json"), plan.runs[0]
    damaged.write_text("{}")
    found = expected_seconds({files.record("tiny", run.file): run.key for run in plan.runs} | {damaged: "0123abcd"})
    assert found == {run.key: 2.0 + PAUSE for run in plan.runs}
    assert len(found) == 2
    assert expected_seconds({files.record("tiny", first.file): first.key}) == {first.key: 2.0}


def test_a_start_says_what_it_will_do_by_study_and_device_and_counts_a_reason_once(tmp_path: Path) -> None:
    factors = {"device": ["cpu", "cuda"], "training.batch_size": [4, 8]}
    plan, files = planned(factors=factors, curve=None), Results(tmp_path)
    runs = forecast.pending(plan, files)
    assert forecast.describe([plan], {"tiny": runs}, {"tiny": {}}, None, files) == [
        "tiny on cpu: 6 runs pending in 3 blocks, 0 done",
        "tiny on cuda: 6 runs left out: no GPU in this test",
        "runs execute on the host (asked for)",
        "expected time: not known until the first block is done",
    ]
    for run in [run for run in plan.runs if run.settings.device == "cpu"][:2]:
        write_new(files.record("tiny", run.file), make_record(plan, plan.runs.index(run)).model_dump_json(indent=1))
    runs, known = forecast.pending(plan, files), forecast.known_seconds(plan, files)
    told = forecast.describe([plan], {"tiny": runs}, {"tiny": known}, 30, files)
    assert told[0] == "tiny on cpu: 4 runs pending in 2 blocks, 2 done"
    assert told[-1].startswith("expected time: about ")
    assert told[-1].endswith(", from earlier runs with the same settings (time budget: 30 min)")


def test_a_dry_run_names_each_run_with_its_block_its_setting_and_its_image() -> None:
    plan = planned(replicates=1)
    image = ImageRequest(device="cpu", kind="built", reference="study:cpu-1", base_image="base", identity="00000000")
    contained = plan.model_copy(update={"engine": "docker", "images": {"cpu": image}})
    first, *_ = plan.runs
    line = f"tiny, block 1: {first.name} ({first.setting.label})"
    assert forecast.listed(plan, [first.name]) == [line]
    assert forecast.listed(contained, [first.name]) == [f"{line}, in study:cpu-1"]


def test_a_start_without_a_run_says_that_nothing_is_left(tmp_path: Path) -> None:
    plan, files = planned(), Results(tmp_path)
    write_records(plan, files.records("tiny"))
    told = forecast.describe([plan], {"tiny": []}, {"tiny": {}}, None, files)
    assert told == ["tiny on cpu: no run pending, 6 done", "nothing is left to measure"]


def test_settings_that_were_never_measured_are_counted_apart() -> None:
    keys = [run.key for run in planned().runs]
    words = forecast.expected_words(keys, {keys[0]: 60.0})
    assert words == "about 3 min, from earlier runs with the same settings; 3 runs of other settings not counted"


def test_the_time_left_is_known_from_the_first_block_on_and_not_of_a_run_by_hand(tmp_path: Path) -> None:
    plan, files = planned(), Results(tmp_path)
    assert budget.time_left("tiny", files) is None
    started(plan, files)
    told = []
    for _ in plan.runs:
        make(plan, files, 1)
        told.append(budget.time_left("tiny", files))
    unknown = "time left not known until a block is done"
    assert told == [unknown, "about 4 min left", "about 3 min left", "about 2 min left", "about 60 s left", None]


@pytest.mark.parametrize("studies", [None, "[" * 100_000, '{"studies": ["../x"]}', "\xff"])
def test_earlier_records_tell_the_time_left_from_the_first_run_on_beside_a_damaged_list_of_studies(
    tmp_path: Path, studies: str | None
) -> None:
    plan, files = planned(), Results(tmp_path)
    started(plan, files, expected={run.key: 600.0 for run in plan.runs})
    make(plan, files, 1)
    if studies is not None:
        files.selection.write_text(studies, encoding="latin-1")
    assert budget.time_left("tiny", files) == "about 50 min left"


def test_the_time_left_holds_the_other_studies_of_the_start_and_no_earlier_ones(tmp_path: Path) -> None:
    plan, files = planned(), Results(tmp_path)
    other, past = (plan.model_copy(update={"name": name}) for name in ("other", "past"))
    write_plans([plan, other, past], tmp_path)
    started(plan, files)
    started(other, files)
    started(past, files, name="before")
    make(plan, files, 2)
    assert budget.time_left("tiny", files) == "about 4 min left, and 6 runs of other settings"


def test_blocks_that_a_budget_leaves_are_no_time_left(tmp_path: Path) -> None:
    plan, files = planned(), Results(tmp_path)
    session = started(plan, files)
    write_session(session.with_blocks(session.blocks[2].model_copy(update={"deferred": True})), files.session("tiny"))
    make(plan, files, 4)
    assert budget.time_left("tiny", files) is None
    assert [block.ended for block in (read_session(files.session("tiny")) or Session()).blocks] == [True, True, False]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (40, "40 s"), (89.9, "90 s"), (100, "2 min"), (3600, "60 min"), (9000, "2.5 h")],
)
def test_durations_are_said_in_two_digits_or_so(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words
