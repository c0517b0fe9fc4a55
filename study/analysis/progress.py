"""How far a study is: which of its planned runs have a record, and that in words, which a report says first."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from study.analysis.table.exclusions import of_planned_runs
from study.analysis.words import agreeing, listed
from study.artifacts.plan import Plan


@dataclass(frozen=True)
class Progress:
    """The planned runs of one study that are there, and those that are missing."""

    study: str
    planned: int
    """Runs that this machine can make, and those whose record is there although their device is absent."""
    there: int
    """Planned runs with a record that fits, whatever its outcome."""
    missing: dict[int, tuple[int, int]]
    """Missing and planned runs of each block that lacks some, by the block's number."""
    settings: list[str]
    """Short names of the settings without any run that is there, in the planned order."""
    refused: int = 0
    """Missing runs whose record is damaged or does not fit."""

    @property
    def whole(self) -> bool:
        """Whether every planned run is there."""
        return self.there == self.planned


def progress_of(plan: Plan, frame: pd.DataFrame) -> Progress:
    """Return how far ``plan`` is, from its table of timings: a run that is there has a session."""
    rows = of_planned_runs(frame)
    made, refused = set(rows["run"][rows["session"].notna()]), set(rows["run"][rows["outcome"] == "refused"])
    planned = [run for run in plan.runs if not run.unavailable or run.name in made]
    missing = [run for run in planned if run.name not in made]
    sizes, gaps = (Counter(run.block for run in runs) for runs in (planned, missing))
    begun = {run.setting.short for run in planned if run.name in made}
    return Progress(
        study=plan.name,
        planned=len(planned),
        there=len(planned) - len(missing),
        missing={block: (gaps[block], sizes[block]) for block in sorted(gaps)},
        settings=[name for name in dict.fromkeys(run.setting.short for run in planned) if name not in begun],
        refused=sum(run.name in refused for run in missing),
    )


FEW = 4
"""Settings up to this number are named, more are counted."""


def progress_sentence(studies: Sequence[Progress]) -> str:
    """Return how many of the planned runs of all studies are there, and that the report is not final if some are not.

    A page says it once, before its first answer, and only if a study is not whole.
    """
    there, planned = sum(study.there for study in studies), sum(study.planned for study in studies)
    count = f"{there} of {planned} planned runs {agreeing(planned, 'is', 'are')} there"
    return f"{count}." if all(study.whole for study in studies) else f"{count}: this is no final report."


def missing_sentence(progress: Progress) -> str | None:
    """Return which runs of a study are missing; None where it is whole."""
    if progress.whole:
        return None
    if not progress.there:
        told = [f"Missing: all {progress.planned} runs."]
    else:
        told = [f"Missing: {listed(_blocks(progress))}."]
        few = list(progress.settings)
        few = [*few[:FEW], f"{len(few) - FEW} more"] if len(few) > FEW + 1 else few
        told += [f"No run yet: {listed(few)}."] if few else []
    if progress.refused:
        told.append(
            f"{progress.refused} of the missing {agreeing(progress.refused, 'has a record', 'have records')} "
            "that cannot be used."
        )
    return " ".join(told)


def _blocks(progress: Progress) -> list[str]:
    parts = [
        f"{gaps} of the {planned} runs of block {block}"
        for block, (gaps, planned) in progress.missing.items()
        if gaps < planned
    ]
    empty = [str(block) for block, (gaps, planned) in progress.missing.items() if gaps == planned]
    return parts + ([f"all runs of block{'s' * (len(empty) > 1)} {listed(empty)}"] if empty else [])
