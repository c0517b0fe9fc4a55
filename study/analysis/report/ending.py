"""The step ``answer``: what is said at the end of a start, the answers and the next step, read from its results."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from study.analysis.analysis import read_analysis
from study.analysis.stats.findings import Answer, CannotSay, Fastest, NothingSucceeded
from study.analysis.wording.answer import answer_sentence
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, Selected, read_plan
from study.base.durations import quantity
from study.config.study import Study


def ending(studies: Sequence[str], results: Path) -> list[str]:
    """Return the answer of each study, the report's address, and the next step, in lines.

    Without ``studies`` they are those of the last start. Raise :class:`StudyError` where a file is missing.
    """
    files = Results(results)
    names = list(studies) or Selected.read(files.selection, "name the studies of an earlier start").studies
    plans = {name: read_plan(files.plan(name)) for name in names}
    answers = {name: read_analysis(files.fit(name)).answer for name in names}
    lines = [answer_line(name, answer) for name, answer in answers.items()]
    if files.report.is_file():
        lines.append(f"The report: {files.report.resolve().as_uri()}")
    left = sum(_left(plan, files) for plan in plans.values())
    makefile = (Path.cwd() / "Makefile").is_file()  # none in a folder that uses the workflow as a module
    return [*lines, next_step({name: plan.study for name, plan in plans.items()}, answers, left, makefile)]


def _left(plan: Plan, files: Results) -> int:
    """Return the number of runs that this machine can make and that have no record."""
    runs = [run for run in plan.runs if not run.unavailable]
    return sum(not os.path.lexists(files.record(plan.name, run.file)) for run in runs)


FIRST = "quickstart"
"""The study of a first start."""
TIMES_THE_EPOCHS = 3
RUNS_ON_A_CHANGING_MACHINE = 2
"""Further replicates where the machine changed by more than the settings differ."""


def answer_line(study: str, answer: Sequence[Answer]) -> str:
    """Return the first statement of a study's answer in one line, and before it whether there is an answer at all."""
    return f"{study}: {'No answer yet. ' * (not _decides(answer[0]))}{answer_sentence(answer[0])}"


def _decides(answer: Answer) -> bool:
    if isinstance(answer, Fastest):
        return answer.machine not in ("explains", "unclear")
    return not isinstance(answer, CannotSay | NothingSucceeded)


def next_step(
    studies: Mapping[str, Study], answers: Mapping[str, Sequence[Answer]], left: int, makefile: bool = True
) -> str:
    """Return what to do next, by the answers of the studies and the number of runs that are still to be made.

    Each command can be typed as it stands, in bash and in zsh. ``makefile``: whether the folder has this project's.
    """
    if left:
        return f"Next: {quantity(left, 'run')} still to be made: start again, with no time budget or a longer one."
    open_ones = {study: one for study, answer in answers.items() for one in answer if not _decides(one)}
    if open_ones:
        study, answer = next(iter(open_ones.items()))
        return f"Next, for an answer: {_towards(study, studies[study], answer, makefile)}"
    if list(answers) == [FIRST] and makefile:
        return (
            "Next: the published studies, reduced to two CPU cores: make published; or one of them in full: "
            f"{_start(True, 'batch-size')}"
        )
    return "Next: how far the published figures support their claims: python -m study claims"


def _towards(name: str, study: Study, answer: Answer, makefile: bool) -> str:
    """Return what to do where an answer does not decide."""
    if isinstance(answer, NothingSucceeded):
        return f"the report says why runs failed; once that is mended: python -m study retry {name}"
    if isinstance(answer, CannotSay) and not answer.more_runs:
        epochs = TIMES_THE_EPOCHS * study.training.epochs
        return f"a longer training: {_start(makefile, name, f'overrides={{training.epochs: {epochs}}}')}"
    more = answer.more_runs if isinstance(answer, CannotSay) else None
    replicates = study.replicates + (more or RUNS_ON_A_CHANGING_MACHINE)
    return f"more runs, with other programs closed: {_start(makefile, name, f'overrides={{replicates: {replicates}}}')}"


def _start(makefile: bool, study: str, *config: str) -> str:
    words = " ".join(f"'{word}'" for word in (f"studies=[{study}]", *config))
    return f'make study ARGS="--config {words}"' if makefile else f"snakemake --cores 1 --config {words}"
