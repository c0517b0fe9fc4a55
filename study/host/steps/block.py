"""A block from its order to its file: in time, alone on the machine, each run measured, and again
if it was disturbed.

A block is measured whole or not at all. One that was broken off has some of its records: they are
kept aside, and it is measured anew.
"""

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self

from study.artifacts import block as blocks
from study.artifacts.block import Block, expected_seconds, find_block, leave
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, read_earlier, selected
from study.artifacts.record import Record
from study.artifacts.record_store import (
    Session,
    free_aside,
    move_aside,
    read_record,
    read_session,
    session_of,
)
from study.artifacts.run import Run
from study.base.errors import StudyError, duration_words, quantity
from study.base.files import room_for
from study.base.processes import not_ended
from study.host.fork_servers import start_fork_servers
from study.host.plan.forecast import pending
from study.host.steps.attempt import Attempt, RunContext, attempt
from study.host.steps.warm_up import Say, WarmUp, seconds_of
from study.host.steps.watch import alone_on_this_machine
from study.host.supervise import new_log

AGAIN = "kept aside, and measured once more"
KEPT = "kept as such, for at most a quarter of a start goes on waiting and on measuring anew"
"""What becomes of a disturbed run, for the terminal."""


class BlockContext(NamedTuple):
    """A block that is to be measured: its plan, its place in the results, its start, and who is
    told of it."""

    plan: Plan
    block: Block
    files: Results
    session: Session
    say: Say

    @property
    def title(self) -> str:
        """The block for the terminal, e.g. ``block 2 of 5``."""
        return f"block {self.block.number} of {self.plan.blocks}"

    def run(self, place: int) -> str:
        """Return a run for the terminal, e.g. ``block 2 of 5, run 1 of 4: bs8-cpu-r2``."""
        return (
            f"{self.title}, run {place + 1} of {len(self.block.runs)}: "
            f"{self.block.runs[place].name}"
        )


@dataclass
class Patience:
    """The seconds that a start of a study may still spend on waiting for a quiet machine and on
    measuring anew: with them, a quarter of all that it takes."""

    seconds: float

    @classmethod
    def of(cls, context: BlockContext, foretold: Mapping[str, float]) -> Self:
        """Return what the records of this start, and the runs still to be made, leave; nothing
        where none tells how long a run takes."""
        plan, files, took = context.plan, context.files, dict(foretold)
        useful = spent = 0.0
        for path in files.records(plan.name).rglob("*.json"):
            with suppress(StudyError):  # a damaged one tells no time
                if session_of(path) == context.session.number:
                    record, folder = read_record(path), path.parent.name
                    spent += record.waited_seconds or 0.0
                    if folder == "disturbed":
                        spent += record.process_seconds
                    else:
                        useful += record.process_seconds
                        took[record.key] = record.process_seconds
        coming = seconds_of([run.key for run in pending(plan, files)], took)
        # A third of what is of use is a quarter of both together.
        return cls((useful + coming) / 3 - spent)

    def attempt(self, context: RunContext) -> Attempt:
        """Execute a run once, and wait before it for a quiet machine while there is time for
        that."""
        wait = max(0.0, min(context.session.quiet_wait_seconds, self.seconds))
        tried = attempt(replace(context, wait_seconds=wait))
        self.seconds -= tried.record.waited_seconds or 0.0
        return tried


def measure_block(study: str, name: str, results: Path, say: Say) -> None:
    """Measure the block called ``name`` of ``study``, and write its file. ``say`` gets the lines
    for the terminal.

    If each of its records is there, they are kept, and nothing is executed.
    """
    files = Results(results)
    plan = Plan.read(files.plan(study))
    block = find_block(plan, name, files)
    context = BlockContext(plan, block, files, read_session(files.session(study)), say)
    missing = block.missing(files)
    if not missing:
        say(
            f"{study}, {context.title}: its records are there and are kept; see "
            f"`{plan.start.retry(study, '--outcome', 'ok')}`"
        )
        return block.write(files)
    _set_aside([run for run in block.runs if run not in missing], context)
    known = expected_seconds(study, files)
    late = _too_late(context, known)
    with room_for(files.block(study, name)):
        if not late:
            start_fork_servers([plan], [(study, run.name) for run in block.runs], files)
            with alone_on_this_machine(f"{study}, {context.title}"):
                late = _measure(context, known)
        if late:
            say(late)
            return leave(block, context.session.name, files)
        block.write(files)


def _too_late(
    context: BlockContext, known: Mapping[str, float], surely: bool = False
) -> str | None:
    """Return a line if the time budget leaves the block for another start; None if it is to be
    measured.

    A setting of unknown time counts as the longest of all; as nothing, if the block is to be
    ``surely`` too long.
    """
    deadline, files = context.session.deadline, context.files
    keys = [run.key for run in context.block.runs]
    seconds, least = seconds_of(keys, known), sum(known.get(key, 0.0) for key in keys)
    if deadline is None or time.time() + (least if surely else seconds) <= deadline:
        return None
    told = f"time budget: {context.title} of {context.plan.name} is left for the next start"
    others = blocks.block_files(context.plan.name, files)
    if any(index and index.left_by == context.session.name for _, index in others):
        return f"{told}, too"
    told += f" ({quantity(len(keys), 'run')}): "
    if not seconds:
        return f"{told}no time is left"
    settings = set(keys)
    told += f"it would take about {duration_words(seconds)}"
    if unmet := settings - known.keys():
        told += f", by {len(settings) - len(unmet)} of {quantity(len(settings), 'setting')}"
    if blocks.begun(context.plan, files):
        return told
    # The budget began with the start: what came before this block is in it again.
    spent = time.time() - context.session.began
    return (
        f"{told}; time_budget_minutes={math.ceil((spent + seconds) / 60)} makes this block, "
        "and so do fewer settings (overrides) or size=reduced in less"
    )


def _set_aside(runs: Sequence[Run], context: BlockContext) -> None:
    """Move the records of a block that was broken off to ``broken``, and say so."""
    if not runs:
        return
    for run in runs:
        move_aside(context.files.record(context.plan.name, run.file), "broken")
    context.say(
        f"{context.title} of {context.plan.name} was broken off: {quantity(len(runs), 'record')} "
        "excluded and kept aside, and the block is measured anew"
    )


def _measure(context: BlockContext, known: Mapping[str, float]) -> str | None:
    """Measure each run of the block, write its record, and tell how it ended and how long the
    others will take.

    Return why nothing is measured, where the warm-up runs foretell more time than there is.
    """
    rest = _keys_of_other_blocks(context)
    warm_up = WarmUp(context.plan, context.files, context.session, context.say)
    warm = []
    for run in context.block.runs:
        # A further warm-up run takes some of the budget, and what is known may exceed it already.
        if context.session.deadline and not warm_up.path(run).exists():
            late = _too_late(context, {**warm_up.foretold(), **known}, surely=True)
            if late:
                return late
        warm.append(warm_up.made(run))
    foretold = warm_up.foretold()
    took = {**foretold, **known}
    if late := _too_late(context, took):
        return late
    if took and not known:
        block = [run.key for run in context.block.runs]
        words = f"a block takes about {duration_words(seconds_of(block, took))}"
        context.say(f"{context.plan.name}: {words}; {_time_left(block + rest, took)}")
    patience = Patience.of(context, foretold)
    for place, run in enumerate(context.block.runs):
        record = measure(context, run, context.run(place), patience, warm[place])
        if run.key not in known:
            took[run.key] = record.process_seconds
        left = [later.key for later in context.block.runs[place + 1 :]] + rest
        words = f"; {_time_left(left, took)}" if left else ""
        context.say(f"{context.run(place)}: {record.outcome}, {_told(record)}{words}")
    return None


def _keys_of_other_blocks(context: BlockContext) -> list[str]:
    """Return the keys of the runs that the start is still to make in other blocks, of other
    studies, too."""
    try:
        names = selected(context.files.root)
    except StudyError:  # a block by hand
        names = []
    plans = read_earlier([*names], context.files.root)
    own = {(context.plan.name, run.file) for run in context.block.runs}
    keys = []
    for plan in plans.values():
        runs = pending(plan, context.files)
        keys += [run.key for run in runs if (plan.name, run.file) not in own]
    return keys


def _time_left(keys: Sequence[str], took: Mapping[str, float]) -> str:
    """Return how long the runs with these keys will take, from the seconds of a run by known
    key."""
    if not took:
        return "time left not known until a block is done"
    return f"about {duration_words(seconds_of(keys, took))} left"


def _told(record: Record) -> str | None:
    """Return the time of a run with the accuracy that it reached, else why it has none."""
    measured = record.measurement
    if record.command:
        return f"{record.command.seconds:.2f} s" + "".join(
            f", {key} {numbers[-1]:g}"
            for key, numbers in record.command.printed.items()
            if key != "seconds"
        )
    if measured is None:
        return record.message
    accuracy = measured.epochs[-1].accuracy
    return f"{measured.fit_seconds:.2f} s" + (
        "" if accuracy is None else f", accuracy {accuracy:.0%}"
    )


def measure(
    context: BlockContext, run: Run, title: str, patience: Patience, warmed_up: bool = False
) -> Record:
    """Execute ``run`` in a fresh process, publish its record, and return it. Execute it once more
    if it was disturbed, and ``patience`` is left for that.

    The first record is then kept beside those that count. Raise :class:`StudyError` if the record
    exists already (it is then kept), or if nothing was started.
    """
    files, study = context.files, context.plan.name
    path = files.record(study, run.file)
    with new_log(files.log(study, run.file.removesuffix(".json"))) as file, room_for(path):
        one = RunContext(context.plan, run, files.root, context.session, title, file, warmed_up)
        tried = patience.attempt(one)
        if tried.record.disturbed:
            again = tried.record.process_seconds <= patience.seconds
            kinds = ", ".join(tried.record.disturbed)
            context.say(f"{title}: disturbed ({kinds}): {AGAIN if again else KEPT}")
            if again:
                patience.seconds -= tried.record.process_seconds
                tried.keep(*free_aside(path, "disturbed"))
                tried = patience.attempt(one)
    with not_ended():  # a signal waits until the record and its telemetry are there
        return tried.keep(path, files.telemetry(study, run.file))
