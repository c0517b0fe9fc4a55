"""Records moved aside, so that the next start makes their runs again. Nothing is deleted."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from study.artifacts.checked import read_fitting
from study.artifacts.layout import Results
from study.artifacts.plan import read_earlier
from study.artifacts.prepared import fell_back, read_weights
from study.artifacts.record import Record
from study.artifacts.record_store import move_aside, read_record
from study.base.errors import StudyError
from study.host.plan.workflow import lock_results


def retry_outcomes(study: str, results: Path, outcomes: Collection[str]) -> list[str]:
    """Move the records of ``study`` with one of these outcomes aside, and return the names of the moved files."""
    with _locked(study, results) as files:
        return _retired(study, files, lambda record: record.outcome in outcomes)


def retry_weights(study: str, results: Path) -> list[str]:
    """Move each decision for random instead of ImageNet weights aside, and the records that followed one.

    Return the names of the moved files.
    """
    with _locked(study, results) as files:
        followed = _retired(study, files, lambda record: record.weights is not None and fell_back(record.weights))
        made = [path for path in sorted(files.decisions(study).glob("*.json")) if _fell_back(path)]
        return followed + [move_aside(path, "superseded").name for path in made]


def _fell_back(decision: Path) -> bool:
    """Return whether a decision is to be made again: for random instead of ImageNet weights, or a damaged one."""
    try:
        return fell_back(read_weights(decision))
    except StudyError:
        return True


def _retired(study: str, files: Results, chosen: Callable[[Record], bool]) -> list[str]:
    """Move the chosen records to ``superseded``, so that their runs are made again, and return their names.

    A record that cannot be read, or does not fit the last plan that has its run, is of no use to an analysis and is
    moved with them.
    """
    plan = read_earlier([study], files.root).get(study)
    runs = {run.file: run for run in plan.runs} if plan else {}

    def wanted(path: Path) -> bool:
        try:
            return chosen(
                read_fitting(plan, runs[path.name], path) if plan and path.name in runs else read_record(path)
            )
        except StudyError:
            return True

    paths = [path for path in sorted(files.records(study).glob("*.json")) if wanted(path)]
    return [move_aside(path, "superseded").name for path in paths]


@contextmanager
def _locked(study: str, results: Path) -> Iterator[Results]:
    """Hold the lock of ``results``. Raise :class:`StudyError` if there are no records of ``study``."""
    files = Results(results)
    known = sorted(path.parent.name for path in results.glob("*/records"))
    if study not in known:
        raise StudyError(f"retry: no records of a study {study!r}; allowed: {', '.join(known) or 'none'}")
    with lock_results(results):
        yield files
