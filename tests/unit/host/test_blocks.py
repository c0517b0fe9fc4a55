"""Whole blocks: one that was broken off is measured anew, and one that a time budget leaves is
begun by no run."""

import signal
import time
from pathlib import Path

import pytest

from study.artifacts.block import blocks_of
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.artifacts.record_store import Session, move_aside, next_session
from study.base.files import write_whole
from study.config.selection import Selection
from study.host.steps import block as step
from study.host.steps.attempt import Attempt, RunContext
from study.host.steps.block import measure_block
from tests.conftest import tiny_plan
from tests.unit.artifacts.test_records import make_record

SELECTION = Selection(warm_up_run=False, quiet_wait_seconds=0)


class Machine:
    """A machine whose runs take no time: each is a planted record, until it is told to stop."""

    def __init__(self, plan: Plan, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plan, self.files = plan, Results(folder)
        self.said: list[str] = []
        self.left = 1000
        self.seconds: dict[str, float] = {}
        self.outcome = "ok"
        self.disturbed, self.waits = list[str](), list[float]()
        monkeypatch.setattr(step, "attempt", self.attempt)
        monkeypatch.setattr(step, "start_fork_servers", lambda *_: None)
        self.begin()

    def begin(self, deadline: float | None = None, plan: Plan | None = None) -> None:
        """What a start does before its first block."""
        self.plan = plan or self.plan
        write_plans([self.plan], self.files.root)
        number = next_session(self.files.records("tiny"))
        session = Session(number=number, name=str(number), deadline=deadline, quiet_wait_seconds=60)
        write_whole(self.files.session("tiny"), session.model_dump_json())

    def attempt(self, context: RunContext) -> Attempt:
        """A run: the start ends in its place once none is left."""
        if not self.left:
            raise SystemExit(128 + signal.SIGTERM)
        self.left -= 1
        number = [run.name for run in self.plan.runs].index(context.run.name)
        record = make_record(self.plan, number, self.outcome, session=context.session.number)
        self.waits.append(min(context.wait_seconds, 0.25))
        seconds = self.seconds.get(context.run.key, 2.0)
        told: dict[str, object] = {"process_seconds": seconds, "disturbed": self.disturbed}
        told["waited_seconds"] = self.waits[-1]
        return Attempt(record.model_copy(update=told), {"seconds": []})  # type: ignore[dict-item]

    def start(
        self, runs: int = 1000, deadline: float | None = None, plan: Plan | None = None
    ) -> list[str]:
        """A start that ends after so many runs, and what it said."""
        self.begin(deadline, plan)
        self.left, self.said = runs, []
        try:
            for block in blocks_of(self.plan, self.files):
                if block.outdated or not self.files.block("tiny", block.name).exists():
                    measure_block("tiny", block.name, self.files.root, self.said.append)
        except SystemExit:
            pass
        return self.said

    def made(self) -> list[str]:
        """The runs that have a record."""
        return [run.name for run in self.plan.runs if self.files.record("tiny", run.file).exists()]

    def broken(self) -> list[str]:
        """The records of blocks that were broken off."""
        return sorted(path.name for path in self.files.records("tiny").glob("broken/*.json"))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Three settings in three blocks."""
    plan = tiny_plan(factors={"training.batch_size": [2, 4, 8]}, replicates=3)
    return Machine(plan, tmp_path, monkeypatch)


def test_a_block_that_was_broken_off_is_kept_aside_and_measured_whole_by_the_next_start(
    machine: Machine,
) -> None:
    machine.start(5)
    lost = [run.file for run in machine.plan.runs[3:5]]
    samples = machine.files.telemetry("tiny", lost[0])
    samples.parent.mkdir(exist_ok=True)
    samples.write_bytes(b"samples")
    said = machine.start()
    assert said[0] == (
        "block 2 of 3 of tiny was broken off: 2 records excluded and kept aside, and the "
        "block is measured anew"
    )
    assert machine.broken() == sorted(lost)
    assert (samples.parent / "broken" / samples.name).read_bytes() == b"samples"
    assert len(machine.made()) == 9
    assert len(list(machine.files.blocks("tiny").iterdir())) == 3
    assert machine.start() == []


@pytest.mark.parametrize("outcome", ["failed", "out_of_memory", "unavailable"])
def test_a_run_that_did_not_succeed_has_ended_all_the_same(machine: Machine, outcome: str) -> None:
    machine.outcome = outcome
    machine.start(3)
    assert len(machine.start(0)) == 0
    assert (len(machine.made()), machine.broken()) == (3, [])


def test_settings_that_are_added_later_break_no_block_but_can_be_broken_off_themselves(
    machine: Machine,
) -> None:
    machine.start()
    whole = machine.made()
    more = tiny_plan(factors={"training.batch_size": [2, 4, 8, 10, 12]}, replicates=3)
    machine.start(3, plan=more)  # one of the two new settings of the second block
    machine.start(0)
    assert (len(machine.broken()), len(machine.made())) == (1, 11)
    assert {*whole} < {*machine.made()}


def test_a_record_that_was_moved_or_deleted_breaks_no_block_and_is_made_again_alone(
    machine: Machine,
) -> None:
    machine.start()
    move_aside(machine.files.record("tiny", machine.plan.runs[0].file), "superseded")
    machine.files.record("tiny", machine.plan.runs[4].file).unlink()
    made = [line.partition(": ok")[0] for line in machine.start() if ": ok" in line]
    assert made == [
        f"block 1 of 3, run 1 of 1: {machine.plan.runs[0].name}",
        f"block 2 of 3, run 1 of 1: {machine.plan.runs[4].name}",
    ]
    assert (len(machine.made()), machine.broken()) == (9, [])


def test_a_process_killed_between_its_last_record_and_its_file_has_measured_its_block(
    machine: Machine,
) -> None:
    machine.start(3)
    (index,) = machine.files.blocks("tiny").iterdir()
    before = index.read_bytes()
    index.unlink()
    assert (
        machine.start(0)[0]
        == "tiny, block 1 of 3: its records are there and are kept; see `python -m study "
        "retry tiny --outcome ok`"
    )
    assert index.read_bytes() == before


def test_a_budget_begins_no_block_that_it_cannot_end_by_the_earlier_runs(machine: Machine) -> None:
    """Each run is said to take 100 s. Where nothing is known the first is begun."""
    machine.seconds = {run.key: 100.0 for run in machine.plan.runs}
    late = time.time() + 60
    said = machine.start(deadline=late)
    left = "of tiny is left for the next start"
    assert said[-2:] == [
        f"time budget: block 2 of 3 {left} (3 runs): it would take about 5 min",
        f"time budget: block 3 of 3 {left}, too",
    ]
    assert len(machine.made()) == 3
    # what was left is forgotten, and left again
    assert machine.start(0, deadline=late) == said[-2:]
    assert len(machine.start(deadline=time.time() + 3600)) == 6
    assert machine.broken() == []


def test_a_quarter_of_a_start_goes_on_waiting_and_on_measuring_anew(machine: Machine) -> None:
    """Nine disturbed runs of 2 s leave 6 s for both; nothing tells it before the second block."""
    machine.disturbed = ["steal_percent"]
    said = machine.start()
    aside = list((machine.files.records("tiny") / "disturbed").iterdir())
    assert (len(aside), len(machine.made())) == (2, 9)
    assert machine.waits[:4] == [0, 0, 0, 0.25]
    assert sum(machine.waits) + 2 * len(aside) <= 18 / 3
    assert sum("at most a quarter of a start goes on waiting" in line for line in said) == 7
