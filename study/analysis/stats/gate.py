"""What the runs determine: the numbers of a level that nobody could use are not printed, and no verdict rests on them.

Only levels that blocks of runs connect can be compared within blocks.
"""

from collections.abc import Hashable, Sequence
from typing import Literal, TypeVar

import pandas as pd

from study.analysis.stats.log_model import Interval

LEAST_RUNS = 2
"""Runs of a level from which its interval says what they are worth."""
WIDEST = 10.0
"""An interval whose bounds differ by a larger factor says nothing that anybody could use."""
ROUNDING = 1e-9
"""Log seconds by which computed times may differ that are equal."""

Undetermined = Literal["few_runs", "one_block", "outside_runs", "wide_interval", "ended_early"]
"""Why a level's mean is not determined: fewer than two clean runs; all of them in one block; a mean far outside the
times of its own runs, which met another state of the machine than the others'; an interval wider than a factor of ten;
or runs that their time limit or their target ended, which are known to take at least so long."""

Unfair = Literal["not_learned", "censored"]
"""Why a level is no candidate for the fastest: it is not shown to have learned as the others did, or one of its runs
missed the target accuracy or reached its time limit."""


def undetermined(
    mean: Interval, times: "pd.Series[float]", blocks: "pd.Series[str]", noise: float = ROUNDING
) -> Undetermined | None:
    """Return why the mean of a level is not determined by its clean runs; None if it is.

    The mean is that of an average block, so it may lie beside its runs by the ``noise`` of one, in log seconds.
    """
    if len(times) < LEAST_RUNS:
        return "few_runs"
    if blocks.nunique() < 2:
        return "one_block"
    if not times.min() / (1 + noise) <= mean.value <= times.max() * (1 + noise):
        return "outside_runs"
    if mean.low is not None and mean.high is not None and mean.high > WIDEST * mean.low:
        return "wide_interval"
    return None


Level = TypeVar("Level", bound=Hashable)


def separate_sets(levels: Sequence[Level], blocks: Sequence[Hashable]) -> list[list[Level]]:
    """Return the levels in connected sets: a block connects its levels. Both have an entry for each run.

    The sets, and the levels in each, are in the order of their first run.
    """
    sets: list[tuple[set[Level], set[Hashable]]] = []
    for level, block in dict.fromkeys(zip(levels, blocks, strict=True)):
        touched = [item for item in sets if level in item[0] or block in item[1]]
        merged = ({level}.union(*(item[0] for item in touched)), {block}.union(*(item[1] for item in touched)))
        sets = [item for item in sets if item not in touched] + [merged]
    order = list(dict.fromkeys(levels))
    found = [[level for level in order if level in members] for members, _ in sets]
    return sorted(found, key=lambda members: order.index(members[0]))
