"""The records of a study: read, numbered by the start that makes them, and moved aside, so that the
next start makes their runs again. Nothing is deleted.
"""

import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from study.artifacts.checked import read_fitting
from study.artifacts.layout import Results
from study.artifacts.plan import read_earlier
from study.artifacts.prepared import Weights
from study.artifacts.record import Aside, Record, is_readable
from study.base.errors import StudyError
from study.base.strict import Strict

if TYPE_CHECKING:
    from filelock import FileLock


def read_record(path: Path) -> Record:
    """Return the record in a file, checked. Raise :class:`StudyError` if it is not valid."""
    return Record.read(
        path, f"`python -m study retry {path.parent.parent.name}` moves it away to repeat that run"
    )


SESSION = re.compile(r'^ "session": (\d{1,9}),?$', re.MULTILINE)
"""A top-level key of a record as it is written, with one space before it."""


class Session(Strict):
    """What is the same in every run of one start. The defaults are those of a block that is
    measured by hand."""

    number: int = Field(1, ge=1, le=10**9)
    name: str = "by-hand"
    """When it began, in UTC; the same in all of its studies."""
    began: float = 0.0
    """Its beginning in epoch seconds."""
    warm_up_run: bool = False
    quiet_wait_seconds: float = Field(0, ge=0, allow_inf_nan=False)
    deadline: float | None = None
    """End of the time budget in epoch seconds; null without one."""


def read_session(path: Path) -> Session:
    """Return what a start wrote to ``path``; that of a block by hand, if there is none.

    Raise :class:`StudyError` if it is damaged.
    """
    return Session.read(path, "the next start writes it anew") if path.exists() else Session()


def next_session(folder: Path) -> int:
    """Return a number that no session of a study's records has, excluded or not: the one after the
    highest."""
    return 1 + max(map(session_of, folder.rglob("*.json")), default=0)


def session_of(path: Path) -> int:
    """Return the session of the record in a file, without checking it; 0 if there is none."""
    if not is_readable(path):
        return 0
    match = SESSION.search(path.read_text(encoding="utf-8", errors="replace"))
    return int(match.group(1)) if match else 0


def is_measurement(path: Path) -> bool:
    """Return whether the file is a record, damaged or not, or a run's samples. A path that no file
    can have is none."""
    try:
        if path.suffix == ".json":
            return is_readable(path) and b'"outcome":' in path.read_bytes()
        return path.suffix == ".parquet" and path.is_file()
    except OSError:
        return False


def free_aside(record: Path, folder: Aside) -> tuple[Path, Path]:
    """Return free paths for a record and its telemetry, each in ``folder`` beside those that
    count."""
    target = record.parent / folder / record.name
    number = 1
    while target.exists():
        number += 1
        target = record.parent / folder / f"{record.stem}.{number}.json"
    return target, record.parent.parent / "telemetry" / folder / f"{target.stem}.parquet"


def move_aside(path: Path, folder: Aside) -> Path:
    """Move a record or a decision, with its telemetry if it has some, into ``folder``, and return
    its new path.

    Raise :class:`StudyError` if that folder is a link: the record would leave the results.
    """
    target, kept = free_aside(path, folder)
    for parent in (target.parent, kept.parent):
        if parent.is_symlink():
            raise StudyError(
                f"{parent.parent.name}/{folder} is a link; replace it by a folder, or remove it"
            )
    target.parent.mkdir(exist_ok=True)
    samples = path.parent.parent / "telemetry" / f"{path.stem}.parquet"
    if samples.is_file():
        kept.parent.mkdir(exist_ok=True)
        samples.rename(kept)
    return path.rename(target)


def lock_results(results: Path) -> "FileLock":
    """Return the acquired lock of a results folder. Raise :class:`StudyError` if another process
    holds it."""
    # a lint of the workflow has only what Snakemake itself needs
    from filelock import FileLock, Timeout

    lock = FileLock(Results(results).lock, mode=0o600)  # who can open it can hold it
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise StudyError(
            f"{results}: another start of the pipeline is "
            "at work in this folder; wait until it ends"
        ) from None
    return lock


def retry(study: str, results: Path, outcomes: Collection[str] | None) -> list[str]:
    """Move the records of ``study`` with one of these outcomes to ``superseded``, so that their
    runs are made again, and return the names of the moved files.

    Without outcomes: each decision for random instead of ImageNet weights, and the records that
    followed one. What cannot be read, or does not fit the last plan that has its run, is of no use
    to an analysis and is moved with them. Raise :class:`StudyError` if there are no records of
    ``study``.
    """
    files = Results(results)
    known = sorted(path.parent.name for path in results.glob("*/records"))
    if study not in known:
        raise StudyError(
            f"retry: no records of a study {study!r}; allowed: {', '.join(known) or 'none'}"
        )
    with lock_results(results):
        plan = read_earlier([study], results).get(study)
        runs = {run.file: run for run in plan.runs} if plan else {}

        def is_chosen(path: Path) -> bool:
            try:
                if path.parent == files.decisions(study):
                    return Weights.read(path).fell_back
                run = runs.get(path.name)
                record = read_fitting(plan, run, path) if plan and run else read_record(path)
            except StudyError:
                return True
            if outcomes is None:
                return record.weights is not None and record.weights.fell_back
            return record.outcome in outcomes

        paths = sorted(files.records(study).glob("*.json"))
        if outcomes is None:
            paths += sorted(files.decisions(study).glob("*.json"))
        chosen = [path for path in paths if is_chosen(path)]
        return [move_aside(path, "superseded").name for path in chosen]
