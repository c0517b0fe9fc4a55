"""The records of a study: read, included, and moved aside."""

from pathlib import Path
from typing import Literal

from study.artifacts.record import Record
from study.base.errors import StudyError
from study.base.strict import LARGEST

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
