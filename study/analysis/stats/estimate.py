"""An estimate with its interval, and what runs determine of one: numbers that nobody could use are
not printed."""

import math
from collections.abc import Iterable
from typing import Literal

import pandas as pd

from study.base.strict import Strict

LEAST_RUNS = 2
"""Runs of a level from which its interval says what they are worth."""
WIDEST = 10.0
"""An interval whose bounds differ by a larger factor says nothing that anybody could use."""

Undetermined = Literal["few_runs", "one_block", "wide_interval", "ended_early"]
"""Why a level's mean is not determined: fewer than two clean runs; all of them in one block; an
interval wider than a factor of ten, as are those of its ratios; or runs that their time limit or
their target ended, which are known to take at least so long."""

Ineligible = Literal["not_learned", "censored"]
"""Why a level is no candidate for the fastest: it is not shown to have learned as the others did,
or one of its runs missed the target accuracy or reached its time limit."""


class Estimate(Strict):
    """A geometric mean or a ratio, with its 95% interval; null bounds where the data give none."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Both ends of the interval; None without one."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def bare(self) -> "Estimate":
        """The value without its interval, where that says nothing."""
        return Estimate(value=self.value)

    @property
    def inverse(self) -> "Estimate":
        """The ratio the other way round."""
        low, high = ((1 / value if value else None) for value in (self.high, self.low))
        return Estimate(value=1 / self.value, low=low, high=high)

    @property
    def excludes_one(self) -> bool:
        """Whether the interval of a ratio leaves out 1."""
        return self.bounds is not None and not self.bounds[0] <= 1 <= self.bounds[1]

    @property
    def wide(self) -> bool:
        """Whether no interval says anything: there is none, or its ends differ by more than a
        factor of ten."""
        return self.bounds is None or self.bounds[1] > WIDEST * self.bounds[0]

    def within(self, margin: float) -> bool:
        """Return whether the whole interval of a ratio lies within 1 + ``margin`` and its
        reciprocal."""
        return (
            self.bounds is not None
            and 1 / (1 + margin) <= self.bounds[0] <= self.bounds[1] <= 1 + margin
        )

    def times(self, factor: float) -> "Estimate":
        """Return it with another unit, of which so many make one of its own."""
        low, high = (bound and factor * bound for bound in (self.low, self.high))
        return Estimate(value=factor * self.value, low=low, high=high)

    def widened(self, added: float) -> "Estimate":
        """Return a ratio with the bound moved that knows nothing of what may have been ``added`` to
        it, in log units: the lower one down, or the upper one up where something was taken away."""
        if self.bounds is None:
            return self
        low, high = self.bounds
        down, up = math.exp(-max(added, 0.0)), math.exp(-min(added, 0.0))
        return Estimate(value=self.value, low=low * down, high=high * up)


def undetermined(
    mean: Estimate, ratios: Iterable[Estimate], blocks: "pd.Series[str]"
) -> Undetermined | None:
    """Return why the mean of a level is not determined by its clean runs, of which ``blocks`` are;
    None if it is.

    Its own interval may be wide for what two starts or blocks shift as one: its ``ratios`` to the
    other levels then tell.
    """
    if len(blocks) < LEAST_RUNS:
        return "few_runs"
    if blocks.nunique() < 2:
        return "one_block"
    if mean.bounds and mean.wide and all(ratio.wide for ratio in ratios):
        return "wide_interval"
    return None


def printed(mean: Estimate, times: "pd.Series[float]", noise: float) -> Estimate:
    """Return the mean of a level, without an interval where that is too wide, or not that of its
    own runs.

    The mean is that of an average start and block. Where its runs met others, it may lie beside
    their ``times`` by more than the ``noise`` of one, in log seconds: its ratios tell, and its
    value stands with those of the other levels.
    """
    beside = not times.min() / (1 + noise) <= mean.value <= times.max() * (1 + noise)
    return mean.bare if mean.wide or beside else mean
