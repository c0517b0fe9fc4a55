"""The records of a study: read, counted, moved aside."""

import re
from collections.abc import Callable
from pathlib import Path

from study.artifacts.record import Record
from study.base.errors import StudyError


def read_record(path: Path) -> Record:
    """Return the record in a file, checked. Raise :class:`StudyError` if it is not valid."""
    return Record.read(path, "move it away to repeat that run")


def last_session(folder: Path) -> int:
    """Return the highest session among a study's records, superseded ones included; 0 without records."""
    sessions = [0]
    for path in folder.rglob("*.json"):
        match = re.search(r'"session":\s*(\d+)', path.read_text(encoding="utf-8", errors="replace"))
        if match:
            sessions.append(int(match.group(1)))
    return max(sessions)


def retire(folder: Path, chosen: Callable[[Record], bool]) -> list[str]:
    """Move the chosen records to ``superseded``, so that their runs are made again, and return their names.

    A damaged record is of no use to an analysis and is moved with them.
    """
    paths = []
    for path in sorted(folder.glob("*.json")):
        try:
            if chosen(read_record(path)):
                paths.append(path)
        except StudyError:
            paths.append(path)
    return [move_aside(path).name for path in paths]


def move_aside(path: Path) -> Path:
    """Move a file into the folder ``superseded`` beside it, under a free name, and return its new path.

    The telemetry of a record moves to ``superseded`` in its own folder.
    """
    target = path.parent / "superseded" / path.name
    target.parent.mkdir(exist_ok=True)
    number = 1
    while target.exists():
        number += 1
        target = path.parent / "superseded" / f"{path.stem}.{number}.json"
    samples = path.parent.parent / "telemetry" / f"{path.stem}.parquet"
    if samples.is_file():
        kept = samples.parent / "superseded" / f"{target.stem}.parquet"
        kept.parent.mkdir(exist_ok=True)
        samples.rename(kept)
    return path.rename(target)
