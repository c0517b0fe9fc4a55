"""A study that asks for a narrow interval: the first block that is not needed ends it, and a start keeps that."""

from pathlib import Path

import pytest

from study.artifacts.block import blocks_of
from study.artifacts.plan import Plan
from study.artifacts.record_store import move_aside
from study.host.plan.forecast import describe
from study.host.plan.workflow import Workflow
from tests.conftest import tiny_plan
from tests.unit.host.test_blocks import Machine

STOPPED = "tiny: stopped after 3 blocks: the interval is ±4% (asked: 5%)"


def until(asked: object = "5%", most: int = 6, sizes: tuple[int, ...] = (2, 4, 8)) -> Plan:
    """Three settings in at most six blocks."""
    return tiny_plan(factors={"training.batch_size": [*sizes]}, replicates={"until": asked, "most": most})


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A study that stopped after three blocks."""
    machine = Machine(until(), tmp_path, monkeypatch)
    said = machine.start()
    assert (said[-1], len(said), len(machine.made())) == (STOPPED, 10, 9)
    return machine


def pending(machine: Machine) -> list[int]:
    """The blocks that a start would make."""
    return [block.number for block in Workflow([machine.plan], machine.files).pending]


def test_later_blocks_and_the_next_start_measure_nothing_and_look_at_nothing(machine: Machine) -> None:
    assert len(list(machine.files.blocks("tiny").iterdir())) == 6
    assert machine.start() == []
    assert (machine.looks, pending(machine)) == (4, [])
    assert describe([machine.plan], None, machine.files) == [
        "tiny on cpu: no run pending, 9 done",
        STOPPED,
        "nothing is left to measure",
    ]


@pytest.mark.parametrize(
    ("plan", "made", "last"),
    [
        (until("3%"), 12, "tiny: stopped after 4 blocks: the interval is ±3% (asked: 3%)"),
        (until("1%", most=4), 12, "block 4 of at most 4, run 3 of 3: "),
        (until(most=9), 9, STOPPED),
        (tiny_plan(factors={"training.batch_size": [2, 4, 8]}, replicates=5), 15, "block 5 of 5, run 3 of 3: "),
    ],
)
def test_a_start_that_asks_for_something_else_decides_anew(machine: Machine, plan: Plan, made: int, last: str) -> None:
    said = machine.start(plan=plan)
    assert said[-1].startswith(last)
    assert len(machine.made()) == made
    assert machine.start() == []


def test_a_record_that_is_moved_away_is_measured_again_and_then_the_study_is_looked_at_anew(machine: Machine) -> None:
    move_aside(machine.files.record("tiny", machine.plan.runs[4].file), "superseded")
    machine.begin()
    assert pending(machine)[:2] == [2, 4]
    assert [line.partition(", run")[0] for line in machine.start()] == ["block 2 of at most 6", STOPPED]
    assert len(machine.made()) == 9


def test_a_setting_that_is_added_later_is_measured_in_every_block_that_was_begun(machine: Machine) -> None:
    machine.start(plan=until(sizes=(2, 4, 8, 10)))
    assert len(machine.made()) == 12
    assert [block.number for block in blocks_of(machine.plan, machine.files) if block.number > 3] == []


def test_a_block_that_was_broken_off_is_not_needed_where_the_whole_ones_are_enough(machine: Machine) -> None:
    machine.start(1, plan=until("3%"))
    said = machine.start(plan=until())
    assert (len(said), len(machine.made()), len(machine.broken())) == (1, 9, 1)


def test_a_start_says_that_its_blocks_are_the_most_that_there_may_be(machine: Machine) -> None:
    wanted = describe([until("1%")], None, machine.files)
    assert wanted[:2] == [
        "tiny on cpu: 9 runs pending in 3 blocks, 9 done",
        "tiny: blocks until the answer is within 1%, at most 6",
    ]
