"""A report at any time: the page about the runs that are there."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from study.analysis.now import made_now
from study.analysis.report.step import render
from study.artifacts.layout import Results

SECOND = 10**9
"""Nanoseconds."""


def report_now(
    studies: Sequence[str], results: Path, output: Path, say: Callable[[str], None], linked: Path | None = None
) -> None:
    """Write a page about ``studies`` (by default those selected) to ``output`` from the records that are there.

    Its links lead to ``linked``, else ``results``. ``say`` gets the lines for the terminal. Raise :class:`StudyError`
    if no study has a record.
    """
    with made_now(studies, results, say) as (made, found):
        render([progress.study for progress in found], made.root, output, linked or results)
    files = Results(results)
    if output.resolve() == files.report.resolve():
        _make_older(output, files.selection)


def _make_older(page: Path, selection: Path) -> None:
    """Give the page an earlier time than what the workflow's own page depends on, so that the next start makes it."""
    with suppress(FileNotFoundError):
        before = selection.stat().st_mtime_ns - SECOND
        os.utime(page, ns=(before, before))
