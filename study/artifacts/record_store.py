"""The records of a study: read, included, moved aside, and what they tell of the time of a run."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import count, pairwise
from pathlib import Path
from statistics import median
from typing import Literal

from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.base.errors import StudyError
from study.base.strict import LARGEST

MOST_SESSIONS = 999_999_999
"""The largest number of a session that is read."""
Aside = Literal["superseded", "disturbed", "broken"]
"""The folders beside the records that are included: moved to be made again, disturbed first tries, blocks broken
off."""


def read_record(path: Path) -> Record:
    """Return the record in a file, checked. Raise :class:`StudyError` if it is not valid."""
    return Record.read(path, "`python -m study retry` moves it away to repeat that run")


def refuse_older(study: str, files: Results) -> None:
    """Raise :class:`StudyError`, with what to do, if an older version of this software wrote a study's results."""
    Plan.refuse_older(files.plan(study))
    for path in sorted(files.records(study).glob("*.json"))[:1]:  # one start, and so one version, wrote all of them
        Record.refuse_older(path)


def is_measurement(path: Path) -> bool:
    """Return whether the file is a record, damaged or not, or a run's samples. A path that no file can have is none."""
    try:
        if path.suffix == ".json":
            return is_readable(path) and b'"outcome":' in path.read_bytes()
        return path.suffix == ".parquet" and path.is_file()
    except OSError:
        return False


def next_session(folder: Path) -> int:
    """Return a number that no session of a study's records has, excluded or not: the one after the highest.

    A damaged record may hold the highest number that there is; then it is the lowest that is free.
    """
    used = {session_of(path) for path in folder.rglob("*.json")}
    following = max(used, default=0) + 1
    return following if following <= MOST_SESSIONS else next(free for free in count(1) if free not in used)


def session_of(path: Path) -> int:
    """Return the session of the record in a file, without checking it; 0 if there is none."""
    if not is_readable(path):
        return 0
    match = SESSION.search(path.read_text(encoding="utf-8", errors="replace"))
    return int(match.group(1)) if match else 0


def free_aside(record: Path, folder: Aside) -> tuple[Path, Path]:
    """Return free paths for a record and its telemetry, each in ``folder`` beside those that count."""
    target = record.parent / folder / record.name
    number = 1
    while target.exists():
        number += 1
        target = record.parent / folder / f"{record.stem}.{number}.json"
    return target, record.parent.parent / "telemetry" / folder / f"{target.stem}.parquet"


def move_aside(path: Path, folder: Aside) -> Path:
    """Move a record or a decision, with its telemetry if it has some, into ``folder``, and return its new path.

    Raise :class:`StudyError` if that folder is a link: the record would leave the results.
    """
    target, kept = free_aside(path, folder)
    for parent in (target.parent, kept.parent):
        if parent.is_symlink():
            raise StudyError(f"{parent.parent.name}/{folder} is a link; replace it by a folder, or remove it")
    target.parent.mkdir(exist_ok=True)
    samples = path.parent.parent / "telemetry" / f"{path.stem}.parquet"
    if samples.is_file():
        kept.parent.mkdir(exist_ok=True)
        samples.rename(kept)
    return path.rename(target)


# Top-level keys of a record as it is written, with one space before them: to check thousands of records takes minutes.
SECONDS = re.compile(r'^ "process_seconds": ([0-9.eE+-]{1,30}),?$', re.MULTILINE)
STARTED = re.compile(r'^ "started": "([0-9T:.+-]{1,40})",?$', re.MULTILINE)
SESSION = re.compile(r'^ "session": (\d{1,9}),?$', re.MULTILINE)


def is_readable(path: Path) -> bool:
    """Return whether the path is a file that can be read whole: a sparse one of a terabyte takes no room on a disk."""
    return path.is_file() and path.stat().st_size <= LARGEST


@dataclass(frozen=True, order=True)
class Took:
    """One run in time: its session, its start in epoch seconds, and the seconds that its process took."""

    session: int
    started: float
    seconds: float


def expected_seconds(records: Mapping[Path, str]) -> dict[str, float]:
    """Return the expected seconds of a run by its key, which all runs of a setting share; ``records`` holds their keys.

    They go from its start to the start of the next run: the median of its processes, and the median of what lay between
    two runs. A record that cannot be read tells no time.
    """
    measured = sorted((one, key) for path, key in records.items() if (one := took(path)))
    pauses = [
        max(0.0, later.started - one.started - one.seconds)
        for (one, _), (later, _) in pairwise(measured)
        if one.session == later.session
    ]
    between = median(pauses) if pauses else 0.0
    seconds: dict[str, list[float]] = {}
    for one, key in measured:
        seconds.setdefault(key, []).append(one.seconds)
    return {key: median(every) + between for key, every in seconds.items()}


def took(record: Path) -> Took | None:
    """Return when the run of a record took how long, without checking the record; None if it does not say."""
    if not is_readable(record):
        return None
    text = record.read_text(encoding="utf-8", errors="replace")
    seconds, started, session = (pattern.search(text) for pattern in (SECONDS, STARTED, SESSION))
    if not (seconds and started and session):
        return None
    try:
        took, since = float(seconds.group(1)), datetime.fromisoformat(started.group(1)).timestamp()
    except (ValueError, OverflowError):
        return None
    return Took(int(session.group(1)), since, took) if math.isfinite(took) else None


# How far from its siblings a run is excluded: declared before any run (see `study.analysis.table.exclusions`).
DEVIATIONS = 5.0
"""Robust standard deviations of the logarithm of the time."""
FACTOR = 1.33
"""What a pause of the machine adds to a run is seldom less, and what noise adds is seldom more."""
TO_DEVIATION = 1.4826
"""Standard deviation over the median absolute deviation of Gaussian noise."""
