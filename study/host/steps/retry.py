"""Records moved aside, so that the next start makes their runs again. Nothing is deleted."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from study.artifacts.layout import Results
from study.artifacts.shelf import move_aside, retire
from study.artifacts.weights import fell_back, read_weights
from study.base.errors import StudyError
from study.host.plan.workflow import lock_results


def retry_outcomes(study: str, results: Path, outcomes: Collection[str]) -> list[str]:
    """Move the records of ``study`` with one of these outcomes aside, and return the names of the moved files."""
    with _locked(study, results) as files:
        return retire(files.records(study), lambda record: record.outcome in outcomes)


def retry_weights(study: str, results: Path) -> list[str]:
    """Move each decision for random instead of ImageNet weights aside, and the records that followed one.

    Return the names of the moved files.
    """
    with _locked(study, results) as files:
        followed = retire(files.records(study), lambda record: record.weights is not None and fell_back(record.weights))
        made = [path for path in sorted(files.decisions(study).glob("*.json")) if fell_back(read_weights(path))]
        return followed + [move_aside(path, "superseded").name for path in made]


@contextmanager
def _locked(study: str, results: Path) -> Iterator[Results]:
    """Hold the lock of ``results``. Raise :class:`StudyError` if there are no records of ``study``."""
    files = Results(results)
    if not files.records(study).is_dir():
        known = sorted(path.parent.name for path in results.glob("*/records"))
        raise StudyError(f"retry: no records of a study {study!r}; allowed: {', '.join(known) or 'none'}")
    with lock_results(results):
        yield files
