"""A look at a study after a block: how narrow the interval of its answer is by the blocks that are there.

With `replicates: {until: 5%}` it decides whether another block is measured. So the interval is that of the answer
itself, and no number beside it: a study stops by what its page says.
"""

from collections.abc import Sequence

import pandas as pd

from study.analysis.answers import Answer
from study.analysis.answers.contrast import Contrast, NoRatio
from study.analysis.answers.fastest import CannotSay, Fastest, OnlyLevel
from study.analysis.answers.switches import Switches
from study.analysis.answers.ways import Ways
from study.analysis.stats.critical_values import against_one
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.groups import GroupFit
from study.artifacts.plan import Plan
from study.artifacts.reached import Reached

NONE = Estimate(value=1.0)
"""The interval of an answer that has none."""


def whole_blocks(plan: Plan, frame: pd.DataFrame) -> tuple[Plan, pd.DataFrame]:
    """Return a plan and its table with those blocks alone of which each run is there that this machine can make."""
    begun, lacking = _begun(plan, frame)
    whole = begun - lacking
    return plan.with_blocks(whole), frame[frame["block"].isin(whole)].reset_index(drop=True)


def _begun(plan: Plan, frame: pd.DataFrame) -> tuple[set[int], set[int]]:
    """Return the blocks that have a record, and those that lack one."""
    there = set(frame["run"][frame["session"].notna() | (frame["outcome"] == "refused")])
    begun = {run.block for run in plan.runs if run.name in there}
    return begun, {run.block for run in plan.runs if not run.unavailable and run.name not in there}


def reached_by(
    plan: Plan, frame: pd.DataFrame, fitted: Sequence[GroupFit], first: Answer | Switches, others: Sequence[Answer]
) -> Reached | None:
    """Return how narrow the interval of the answer ``first`` is, and of the ``others`` that it stands for.

    None where a number of blocks is asked for, or while a block is not whole.
    """
    begun, lacking = _begun(plan, frame)
    if plan.study.until is None or begun & lacking:
        return None
    found = _intervals(fitted, first, others)
    widths = [one.half_width for one in found if one.half_width is not None]
    known = 0 < len(widths) == len(found)
    return Reached(
        asked=plan.study.until,
        half_width=max(widths) if known else None,
        degrees=min(one.degrees or 0.0 for one in found) if known else None,
        blocks=len(begun),
        most=plan.study.most,
    )


def _intervals(fitted: Sequence[GroupFit], first: Answer | Switches, others: Sequence[Answer]) -> list[Estimate]:
    """Return every interval of the ratios that answer the question; that of a time where one setting has no other."""
    if isinstance(first, Switches):
        joint = [first.combination.times_as_fast] if first.combination else []
        return [*(effect.times_as_fast for effect in first.effects), *joint]
    if isinstance(first, Ways):
        return [first.told(way) or NONE for way in first.ways[1:]]
    if isinstance(first, Contrast | NoRatio):
        ratios = [one for one in others if isinstance(one, Contrast | NoRatio)]
        return [interval for one in ratios for interval in _of_contrast(one)]
    groups = {group.setting: group for group in fitted}
    return [
        _over_fastest(groups[one.group], one) if isinstance(one, Fastest) else _of_one(one)
        for one in others
        if isinstance(one, Fastest | OnlyLevel | CannotSay)
    ]


def _of_contrast(one: Contrast | NoRatio) -> list[Estimate]:
    return [NONE] if isinstance(one, NoRatio) else [one.overall, one.least.together, one.most.together]


def _of_one(one: OnlyLevel | CannotSay) -> Estimate:
    return one.time if isinstance(one, OnlyLevel) else NONE


def _over_fastest(group: GroupFit, one: Fastest) -> Estimate:
    """Return the time of the next candidate over that of the fastest, with bounds for all candidates at once."""
    times = {name: time.value for name, time in group.times.items() if time.bounds and name not in group.unfair}
    others = sorted(times.keys() - {one.level.label}, key=lambda name: times[name])
    if group.model is None or one.machine:
        return NONE
    if not others:
        return one.time
    return group.model.interval(group.model.weights(others[0], one.level.label), against_one(len(times)))
