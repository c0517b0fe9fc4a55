"""How far a study is: how narrow the interval of its answer is by the blocks that are there, and
which of its planned runs have a record.

With `replicates: {until: 5%}` the first decides whether another block is measured. So the interval
is that of the answer itself, and no number beside it: a study stops by what its page says. The
second is what a report says first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from study.analysis.answers import Answer
from study.analysis.answers.contrast import Contrast, NoRatio
from study.analysis.answers.fastest import CannotSay, Fastest, OnlyLevel
from study.analysis.answers.switches import Switches
from study.analysis.answers.ways import Ways
from study.analysis.stats.critical_values import against_one
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.groups import GroupFit
from study.analysis.table.exclusions import of_planned_runs
from study.analysis.table.rows import NOT_YET
from study.analysis.words import agreeing
from study.artifacts.block import Reached
from study.artifacts.plan import Plan
from study.base.errors import quantity
from study.config.study import Study

NONE = Estimate(value=1.0)
"""The interval of an answer that has none."""


def begun_blocks(frame: pd.DataFrame) -> tuple[set[int], set[int]]:
    """Return the blocks of a table of which a run is there, and those of them that lack none."""
    planned = of_planned_runs(frame)
    begun = set(planned["block"][planned["session"].notna() | (planned["outcome"] == "refused")])
    return begun, begun - set(planned["block"][planned["message"] == NOT_YET])


def whole_blocks(plan: Plan, frame: pd.DataFrame) -> tuple[Plan, pd.DataFrame]:
    """Return a plan and its table of timings with the blocks alone that lack no run."""
    _, whole = begun_blocks(frame)
    return plan.with_blocks(whole), frame[frame["block"].isin(whole)].reset_index(drop=True)


def reached_by(study: Study, blocks: int, intervals: Sequence[Estimate]) -> Reached | None:
    """Return how narrow the ``intervals`` of an answer are after so many blocks; None where their
    number is given."""
    if study.until is None:
        return None
    widths = [one.half_width for one in intervals if one.half_width is not None]
    known = 0 < len(widths) == len(intervals)
    return Reached(
        asked=study.until,
        half_width=max(widths) if known else None,
        degrees=min(one.degrees or 0.0 for one in intervals) if known else None,
        blocks=blocks,
        most=study.most,
    )


def intervals_of(
    fitted: Sequence[GroupFit], first: Answer | Switches, answers: Sequence[Answer]
) -> list[Estimate]:
    """Return each interval of the ratios that answer the question; that of a time where one setting
    has no other.

    ``first`` is the answer, and ``answers`` are all of the study's: it may stand for several.
    """
    if isinstance(first, Switches):
        joint = [first.combination.times_as_fast] if first.combination else []
        return [*(effect.times_as_fast for effect in first.effects), *joint]
    if isinstance(first, Ways):
        return [first.told(way) or NONE for way in first.ways[1:]]
    found, groups = list[Estimate](), {group.setting: group for group in fitted}
    ratios = isinstance(first, Contrast | NoRatio)
    for one in answers:
        if isinstance(one, Contrast):
            found += [one.overall, one.least.together, one.most.together] if ratios else []
        elif isinstance(one, NoRatio if ratios else CannotSay):
            found.append(NONE)
        elif isinstance(one, Fastest | OnlyLevel) and not ratios:
            found.append(
                one.time if isinstance(one, OnlyLevel) else _over_fastest(groups[one.group], one)
            )
    return found


def _over_fastest(group: GroupFit, one: Fastest) -> Estimate:
    """Return the time of the next candidate over that of the fastest, with bounds for all
    candidates at once."""
    left_out = group.undetermined.keys() | group.unfair.keys()
    times = {name: time.value for name, time in group.times.items() if name not in left_out}
    others = sorted(times.keys() - {one.level.label}, key=lambda name: times[name])
    if group.model is None or one.machine:
        return NONE
    if not others:
        return one.time
    return group.model.interval(
        group.model.weights(others[0], one.level.label), against_one(len(times))
    )


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
    rows = of_planned_runs(frame)
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
    there, planned = sum(study.there for study in studies), sum(study.planned for study in studies)
    count = f"{there} of {planned} planned runs {agreeing(planned, 'is', 'are')} there"
    return (
        f"{count}."
        if all(study.whole for study in studies)
        else f"{count}: this is no final report."
    )


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
