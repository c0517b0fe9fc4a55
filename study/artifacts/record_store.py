"""The records of a study: read, included, and moved aside."""

import re
from itertools import count
from pathlib import Path
from typing import Literal

from study.artifacts.record import Record
from study.base.errors import StudyError
from study.base.strict import LARGEST

MOST_SESSIONS = 999_999_999
"""The largest number of a session that is read."""
SESSION = re.compile(r'^ "session": (\d{1,9}),?$', re.MULTILINE)
"""A top-level key of a record as it is written, with one space before it."""
Aside = Literal["superseded", "disturbed", "broken"]
"""The folders beside the records that are included: moved to be made again, disturbed first tries, blocks broken
off."""


def read_record(path: Path) -> Record:
    """Return the record in a file, checked. Raise :class:`StudyError` if it is not valid."""
    return Record.read(path, f"`python -m study retry {path.parent.parent.name}` moves it away to repeat that run")


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


def is_readable(path: Path) -> bool:
    """Return whether the path is a file that can be read whole: a sparse one of a terabyte takes no room on a disk."""
    return path.is_file() and path.stat().st_size <= LARGEST
