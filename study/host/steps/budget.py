"""The time of a start: it begins no block that its budget does not let it end, and tells how long it will take."""

import time
from collections.abc import Iterator
from contextlib import suppress

from study.artifacts.durations import expected_seconds
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, Selected
from study.artifacts.run import Run
from study.artifacts.session import Session, SessionBlock, read_session, stamp_as_deferred, write_session
from study.base.errors import StudyError
from study.base.quantities import duration_words, quantity


def is_deferred(plan: Plan, run: Run, session: Session, files: Results) -> tuple[bool, str | None]:
    """Return whether the budget leaves ``run`` for another start, and what to say of it.

    Its stamp is then there without a record: to Snakemake every stamp is an output, and the report is to be made
    without the runs that are left. The end of the start, or the next start, removes it.
    """
    block = session.block(run.file)
    if session.deadline is None or block is None or _begun(block, plan.name, files):
        return False, None
    text = None
    if not block.deferred:
        seconds = _seconds(block, session)
        if time.time() + seconds <= session.deadline:
            return False, None
        text = _defer(plan, block, seconds, session, files)
    stamp_as_deferred(plan.name, run.file, files)
    return True, text


def _begun(block: SessionBlock, study: str, files: Results) -> bool:
    return any(files.record(study, name).exists() for name in block.records)


def _defer(plan: Plan, block: SessionBlock, seconds: float, session: Session, files: Results) -> str:
    """Note that this block and those after it are left, and return a line about them."""
    rest = session.blocks[session.blocks.index(block) :]
    rest = [other for other in rest if not _begun(other, plan.name, files)]
    write_session(
        session.with_blocks(*(other.model_copy(update={"deferred": True}) for other in rest)), files.session(plan.name)
    )
    runs = sum(len(other.records) for other in rest)
    needs = f"block {block.block} would take about {seconds:.0f} s" if seconds else "no time is left"
    return f"time budget: {needs}: {runs} run(s) of {plan.name} in {len(rest)} block(s) are left for the next start"


def _seconds(block: SessionBlock, session: Session) -> float:
    """Return the seconds that a block is expected to take.

    A setting that was never measured counts as the longest of all. Where nothing was measured it is 0: the first block
    is begun, and the others are judged by it.
    """
    known = session.expected
    return sum(known.get(key, max(known.values())) for key in block.records.values()) if known else 0.0


def with_block_ended(session: Session, block: SessionBlock, study: str, files: Results) -> Session:
    """Return the start with ``block`` marked as ended, and with what its records tell of the time of each setting."""
    took = expected_seconds({files.record(study, name): key for name, key in block.records.items()})
    ended = session.with_blocks(block.model_copy(update={"ended": True}))
    return ended.model_copy(update={"expected": session.expected | took})


def time_left(study: str, files: Results) -> str | None:
    """Return how long the other runs of the start that measures ``study`` will take; None if there is none."""
    session = read_session(files.session(study))
    seconds, runs, unknown = 0.0, 0, 0
    for name, other in _starts(study, session, files) if session else ():
        left = _left(name, other, files)
        known = [other.expected[key] for key in left if key in other.expected]
        seconds, runs, unknown = seconds + sum(known), runs + len(left), unknown + len(left) - len(known)
    if not runs:
        return None
    if unknown == runs:
        return "time left not known until a block is done"
    text = f"about {duration_words(seconds)} left"
    return f"{text}, and {quantity(unknown, 'run')} of other settings" if unknown else text


def _starts(study: str, session: Session, files: Results) -> Iterator[tuple[str, Session]]:
    """Yield each study of a start with what the start means to do in it."""
    names = {study}
    with suppress(OSError, StudyError):  # a run by hand
        names.update(Selected.of_file(files.selection).studies)
    for name in names:
        with suppress(StudyError):  # the step of that study will say so
            other = read_session(files.session(name))
            if other and other.name == session.name:
                yield name, other


def _left(study: str, session: Session, files: Results) -> list[str]:
    """Return the keys of the runs that a start is still to make in a study. Its blocks follow each other."""
    open_blocks = (block for block in session.blocks if not (block.ended or block.deferred))
    runs = (run for block in open_blocks for run in block.records.items())
    return [key for name, key in runs if not files.record(study, name).exists()]
