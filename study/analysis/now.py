"""What the records that are there give now, in a folder of its own: for a report or a post beside a start or after one.

Nothing that belongs to the workflow is written, so the next start makes its own from the whole.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from study.analysis.progress import Progress, missing_sentence, progress_of, progress_sentence
from study.analysis.report.step import render
from study.analysis.step import write_fit
from study.analysis.table.files import read_table, write_csv
from study.artifacts.layout import Results
from study.artifacts.plan import read_plan, selected
from study.base.errors import StudyError


@contextmanager
def made_now(
    studies: Sequence[str], results: Path, say: Callable[[str], None]
) -> Iterator[tuple[Results, list[Progress]]]:
    """Yield a temporary folder of results with tables and fits, and how far each of its studies is.

    By default the studies are those selected. ``say`` gets the lines for the terminal: first how far the studies are. A
    study without a plan is left out with a line. Raise :class:`StudyError` if no study has a record.
    """
    files = Results(results)
    with TemporaryDirectory(prefix="study-now-") as folder:
        made = Results(Path(folder))
        if files.warm_up_runs.is_dir():
            made.warm_up_runs.symlink_to(files.warm_up_runs.resolve())
        found = _gather_all(dict.fromkeys(studies or selected(results)), files, made, say)
        for name in (progress.study for progress in found):
            write_fit(made.plan(name), made.timings(name), made.fit(name))
        yield made, found


def _gather_all(names: Iterable[str], files: Results, made: Results, say: Callable[[str], None]) -> list[Progress]:
    """Gather what is there of each study, and say how far it is."""
    found: list[Progress] = []
    refused: dict[str, str] = {}
    for name in names:
        try:
            found.append(_gather(name, files, made))
        except StudyError as error:
            refused[name] = str(error)
    if not found:
        raise StudyError("; ".join(refused.values()))
    gaps = [f"{one.study}: {missing}" for one in found if (missing := missing_sentence(one))]
    left_out = [f"{name} is left out: {reason}" for name, reason in refused.items()]
    if not any(one.there or one.refused for one in found):
        raise StudyError(f"results: no run is there yet. {' '.join([*gaps, *left_out])}")
    for line in (progress_sentence(found), *gaps, *left_out):
        say(line)
    return found


def _gather(name: str, files: Results, made: Results) -> Progress:
    """Make in ``made`` what the later steps read of a study: its plan, its table, and links to records and samples."""
    plan = read_plan(files.plan(name))
    if plan.name != name:
        raise StudyError(f"{files.plan(name)}: it is the plan of {plan.name!r}")
    made.plan(name).parent.mkdir()
    made.plan(name).symlink_to(files.plan(name).resolve())
    for source, link in (
        (files.records(name), made.records(name)),
        (files.telemetry_folder(name), made.telemetry_folder(name)),
    ):
        if source.is_dir():
            link.symlink_to(source.resolve())
        else:
            link.mkdir()
    frame, _ = read_table(plan, made.records(name), made.telemetry_folder(name))
    write_csv(frame, made.timings(name))
    return progress_of(plan, frame)


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
