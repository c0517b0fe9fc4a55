"""How far a start is: the time that its other runs are expected to take."""

from collections.abc import Iterator
from contextlib import suppress

from study.artifacts.duration import expected_seconds
from study.artifacts.layout import Results
from study.artifacts.plan import Selected
from study.artifacts.start import Start, StartedBlock, read_start
from study.base.durations import counted, duration_words
from study.base.errors import StudyError


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
