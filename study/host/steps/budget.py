"""The time of a start: it begins no block that its budget does not let it end, and tells how long it will take."""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from study.artifacts.duration import expected_seconds
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, Selected
from study.artifacts.run import Run
from study.artifacts.shelf import read_record
from study.artifacts.start import Start, StartedBlock, read_start, stamp_as_left, write_start
from study.base.durations import counted, duration_words
from study.base.errors import StudyError


def leaves(plan: Plan, run: Run, start: Start, files: Results) -> tuple[bool, str | None]:
    """Return whether the budget leaves ``run`` for another start, and what to say of it.

    Its stamp is then there without a record: to Snakemake every stamp is an output, and the report is to be made
    without the runs that are left. The end of the start, or the next start, removes it.
    """
    block = start.block(run.file)
    if start.deadline is None or block is None or _begun(block, plan.name, files):
        return False, None
    told = None
    if not block.left:
        seconds = _seconds(plan, block, _longest(files.records(plan.name)))
        if time.time() + seconds <= start.deadline:
            return False, None
        told = _leave(plan, block, seconds, start, files)
    stamp_as_left(plan.name, run.file, files)
    return True, told


def _begun(block: StartedBlock, study: str, files: Results) -> bool:
    return any(files.record(study, name).exists() for name in block.records)


def _leave(plan: Plan, block: StartedBlock, seconds: float, start: Start, files: Results) -> str:
    """Note that this block and those after it are left, and return a line about them."""
    rest = start.blocks[start.blocks.index(block) :]
    rest = [other for other in rest if not _begun(other, plan.name, files)]
    write_start(start.with_blocks(*(other.model_copy(update={"left": True}) for other in rest)), files.start(plan.name))
    runs = sum(len(other.records) for other in rest)
    needs = f"block {block.block} would take about {seconds:.0f} s" if seconds else "no time is left"
    return f"time budget: {needs}: {runs} run(s) of {plan.name} in {len(rest)} block(s) are left for the next start"


def _seconds(plan: Plan, block: StartedBlock, longest: Mapping[str, float]) -> float:
    """Return the seconds that a block is expected to take: the longest earlier run of each setting.

    A setting that was never measured counts as the longest of all. Where nothing was measured it is 0: the first block
    is begun, and the others are judged by it.
    """
    names = [run.setting.short for run in plan.runs if run.file in block.records]
    return sum(longest.get(name, max(longest.values())) for name in names) if longest else 0.0


def _longest(records: Path) -> dict[str, float]:
    """Return the longest process of each setting among the records in a folder, in seconds."""
    found: dict[str, float] = {}
    for path in records.glob("*.json"):
        with suppress(StudyError):  # a damaged record tells no time, and stops no start
            record = read_record(path)
            name = record.setting.short
            found[name] = max(record.process_seconds, found.get(name, 0.0))
    return found


def with_block_ended(start: Start, block: StartedBlock, study: str, files: Results) -> Start:
    """Return the start with ``block`` marked as ended, and with what its records tell of the time of each setting."""
    took = expected_seconds({files.record(study, name): key for name, key in block.records.items()})
    ended = start.with_blocks(block.model_copy(update={"ended": True}))
    return ended.model_copy(update={"expected": start.expected | took})


def time_left(study: str, files: Results) -> str | None:
    """Return how long the other runs of the start that measures ``study`` will take; None if there is none."""
    start = read_start(files.start(study))
    seconds, runs, unknown = 0.0, 0, 0
    for name, other in _starts(study, start, files) if start else ():
        left = _left(name, other, files)
        known = [other.expected[key] for key in left if key in other.expected]
        seconds, runs, unknown = seconds + sum(known), runs + len(left), unknown + len(left) - len(known)
    if not runs:
        return None
    if unknown == runs:
        return "time left not known until a block is done"
    told = f"about {duration_words(seconds)} left"
    return f"{told}, and {counted(unknown, 'run')} of other settings" if unknown else told


def _starts(study: str, start: Start, files: Results) -> Iterator[tuple[str, Start]]:
    """Yield each study of a start with what the start means to do in it."""
    names = {study}
    with suppress(OSError, StudyError):  # a run by hand
        names.update(Selected.of_file(files.selection).studies)
    for name in names:
        with suppress(StudyError):  # the step of that study will say so
            other = read_start(files.start(name))
            if other and other.name == start.name:
                yield name, other


def _left(study: str, start: Start, files: Results) -> list[str]:
    """Return the keys of the runs that a start is still to make in a study. Its blocks follow each other."""
    open_blocks = (block for block in start.blocks if not (block.ended or block.left))
    runs = (run for block in open_blocks for run in block.records.items())
    return [key for name, key in runs if not files.record(study, name).exists()]
