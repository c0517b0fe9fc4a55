"""The step ``answer``: what is said at the end of a start, read from its results."""

import os
from collections.abc import Sequence
from pathlib import Path

from study.analysis.stats.analysis import read_analysis
from study.analysis.wording.ending import answer_line, next_step
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, Selected, read_plan


def ending(studies: Sequence[str], results: Path) -> list[str]:
    """Return the answer of each study, the report's address, and the next step, in lines.

    Without ``studies`` they are those of the last start. Raise :class:`StudyError` where a file is missing.
    """
    files = Results(results)
    names = list(studies) or _selected(files)
    plans = {name: read_plan(files.plan(name)) for name in names}
    answers = {name: read_analysis(files.fit(name)).answer for name in names}
    lines = [answer_line(name, answer) for name, answer in answers.items()]
    if files.report.is_file():
        lines.append(f"The report: {files.report.resolve().as_uri()}")
    left = sum(_left(plan, files) for plan in plans.values())
    makefile = (Path.cwd() / "Makefile").is_file()  # none in a folder that uses the workflow as a module
    return [*lines, next_step({name: plan.study for name, plan in plans.items()}, answers, left, makefile)]


def _selected(files: Results) -> list[str]:
    return Selected.read(files.selection, "name the studies of an earlier start").studies


def _left(plan: Plan, files: Results) -> int:
    """Return the number of runs that this machine can make and that have no record."""
    runs = [run for run in plan.runs if not run.unavailable]
    return sum(not os.path.lexists(files.record(plan.name, run.file)) for run in runs)
