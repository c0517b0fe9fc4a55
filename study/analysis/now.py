"""The page of what the records give now: at any time, beside a start too.

Nothing that belongs to the workflow is written, so the next start makes its own from the whole.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from study.analysis.progress import missing_sentence, progress_of, progress_sentence
from study.analysis.report.step import write_page
from study.analysis.result import StudyResult, result_of
from study.artifacts.layout import Results
from study.artifacts.plan import selected
from study.base.errors import StudyError

SECOND = 10**9
"""Nanoseconds."""


def report_now(
    studies: Sequence[str], results: Path, output: Path, say: Callable[[str], None], linked: Path | None = None
) -> None:
    """Write a page about ``studies`` (by default those selected) to ``output`` from the records that are there.

    Its links lead to ``linked``, else ``results``. ``say`` gets the lines for the terminal: first how far the studies
    are. A study without a plan is left out with a line. Raise :class:`StudyError` if no study has a record.
    """
    files = Results(results)
    found: list[StudyResult] = []
    refused: dict[str, str] = {}
    for name in dict.fromkeys(studies or selected(results)):
        try:
            found.append(result_of(files, name))
        except StudyError as error:
            refused[name] = str(error)
    if not found:
        raise StudyError("; ".join(refused.values()))
    progress = [progress_of(one.plan, one.frame) for one in found]
    gaps = [f"{one.study}: {missing}" for one in progress if (missing := missing_sentence(one))]
    left_out = [f"{name} is left out: {reason}" for name, reason in refused.items()]
    if not any(one.there or one.refused for one in progress):
        raise StudyError(f"results: no run is there yet. {' '.join([*gaps, *left_out])}")
    for line in (progress_sentence(progress), *gaps, *left_out):
        say(line)
    write_page(found, linked or results, output)
    if output.resolve() == files.report.resolve():
        _make_older(output, files.selection)


def _make_older(page: Path, selection: Path) -> None:
    """Give the page an earlier time than what the workflow's own page depends on, so that the next start makes it."""
    with suppress(FileNotFoundError):
        before = selection.stat().st_mtime_ns - SECOND
        os.utime(page, ns=(before, before))
