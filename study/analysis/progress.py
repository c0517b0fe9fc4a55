"""How far a study is: which of its planned runs have a record. A report says it first."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from study.analysis.table.exclusions import ASIDE
from study.analysis.words import agreeing
from study.artifacts.plan import Plan
from study.base.errors import quantity


@dataclass(frozen=True)
class Progress:
    """The planned runs of one study that are there, and those that are missing."""

    study: str
    planned: int
    """Runs that this machine can make, and those whose record is there although their device is
    absent."""
    there: int
    """Planned runs with a record that fits, whatever its outcome."""
    first_block: int | None
    """The first block that lacks a run; None where none is missing."""
    refused: int = 0
    """Missing runs whose record is damaged or does not fit."""

    @property
    def whole(self) -> bool:
        """Whether every planned run is there."""
        return self.there == self.planned


def progress_of(plan: Plan, frame: pd.DataFrame) -> Progress:
    """Return how far ``plan`` is, from its table of timings: a run that is there has a session."""
    rows = frame[~frame["excluded"].isin(ASIDE.values())]  # one of each planned run
    made = set(rows["run"][rows["session"].notna()])
    refused = set(rows["run"][rows["outcome"] == "refused"])
    planned = [run for run in plan.runs if not run.unavailable or run.name in made]
    missing = [run for run in planned if run.name not in made]
    return Progress(
        study=plan.name,
        planned=len(planned),
        there=len(planned) - len(missing),
        first_block=min((run.block for run in missing), default=None),
        refused=sum(run.name in refused for run in missing),
    )


def progress_sentence(studies: Sequence[Progress]) -> str:
    """Return how many of the planned runs of all studies are there, and that the report is not
    final if some are not.

    A page says it once, before its first answer, and only if a study is not whole.
    """
    there = sum(study.there for study in studies)
    planned = sum(study.planned for study in studies)
    count = f"{there} of {planned} planned runs {agreeing(planned, 'is', 'are')} there"
    if all(study.whole for study in studies):
        return f"{count}."
    return f"{count}: this is no final report."


def missing_sentence(progress: Progress) -> str | None:
    """Return which runs of a study are missing; None where it is whole."""
    if progress.whole:
        return None
    gap = progress.planned - progress.there
    told = [f"Missing: {quantity(gap, 'run')}, the first in block {progress.first_block}."]
    if progress.refused:
        told.append(
            f"{progress.refused} of the missing "
            f"{agreeing(progress.refused, 'has a record', 'have records')} that cannot be used."
        )
    return " ".join(told)
