"""A new result against a baseline of several starts, between which nothing changed: the limit that their spread gives.

Nights follow each other: a neighbour who stays a week makes several slow. The limit is therefore widened by the
correlation of each start with the next one, as the baseline shows it.
"""

import math

import numpy as np
from pydantic import Field
from scipy import special

from study.analysis.stats.equivalence import POWER
from study.analysis.stats.log_model import together
from study.analysis.stats.mixed_model import Array
from study.base.strict import Strict
from study_extras.compare.side import Side, learning, start_means

LEAST_STARTS = 3
"""Starts of a baseline that tell how far starts differ."""
STARTS_OF_A_RATE = 10
"""Starts of a baseline below which little tells whether its starts follow each other."""
STRONG = 0.5
"""Correlation from which chance alarms more often than is promised, for the widening does not reach."""
MOST = 0.9
"""The largest correlation that is told from a trend."""


class Limit(Strict):
    """A new time against its limit, at one setting or over all."""

    setting: str | None = Field(description="Null for the mean over all settings.")
    ratio: float = Field(description="Time of the new result over that of the baseline.")
    limit: float = Field(description="Ratio from which the new result counts as slower.")
    found: float = Field(description="Ratio of the smallest slowdown that is found four times in five.")

    @property
    def slower(self) -> bool:
        """Whether the new time is longer than chance explains."""
        return self.ratio > self.limit


class Gate(Strict):
    """A new result against a baseline of several starts.

    By chance the mean exceeds its limit in 1 of 40 nights, and any setting its own in 1 of 40: as the mean over
    baselines, and if the nights are independent. ``python -m benchmarks.compared`` counts the others.
    """

    overall: Limit
    settings: list[Limit]
    starts: tuple[int, int] = Field(description="Starts of the baseline and of the new result.")
    correlation: float = Field(description="Of the log seconds of each start of the baseline with those of the next.")
    learn_less: list[str] = Field(description="Settings at which the new result is shown to learn less.")
    learn_unclear: list[str] = Field(description="Settings at which it is over ten points lower, which is not shown.")

    @property
    def slower_settings(self) -> list[Limit]:
        """The settings that are slower by themselves, the worst first."""
        return sorted((one for one in self.settings if one.slower), key=lambda one: -one.ratio)

    @property
    def slower(self) -> bool:
        """Whether the mean, or a setting, is slower than chance explains."""
        return self.overall.slower or bool(self.slower_settings)

    @property
    def followed(self) -> bool:
        """Whether the starts of the baseline follow each other, so that no rate of false alarms can be stated."""
        return self.correlation >= STRONG

    @property
    def few(self) -> bool:
        """Whether the baseline cannot tell that."""
        return self.starts[0] < STARTS_OF_A_RATE


def gate(baseline: Side, new: Side) -> Gate | None:
    """Return whether a new result is slower than a baseline; None if the baseline has fewer than three starts.

    The limit is the one-sided bound for the mean of the new starts, by the t distribution of the baseline's own (a
    prediction interval), over all settings and at each of them: a setting that is slower by half hardly moves the mean
    of ten. The settings have Bonferroni's correction.
    """
    before, after = start_means(baseline), start_means(new)
    settings = [str(one) for one in before if one in after]
    if len(before) < LEAST_STARTS:
        return None
    a, b = (table[settings].mean(axis=1).to_numpy(float) for table in (before, after))
    several = settings if len(settings) > 1 else []
    stands = learning([baseline, new], settings)
    return Gate(
        overall=limit_of(None, a, b, 1),
        settings=[
            limit_of(one, before[one].to_numpy(float), after[one].to_numpy(float), len(several)) for one in several
        ],
        starts=(len(a), len(b)),
        correlation=correlation(a),
        learn_less=[one for one in settings if stands[one][1] == "less"],
        learn_unclear=[one for one in settings if stands[one][1] == "unclear"],
    )


def correlation(values: Array) -> float:
    """Return the correlation of each value (n,) with the next, from 0 to 0.9.

    That of independent values is -1 / n in the mean, which is made good. To make good all that is known of its bias
    (Kendall 1954) would widen the limit of six independent starts to more than three times, in one baseline of four.
    """
    apart = values - values.mean()
    squares = float(apart @ apart)
    seen = float(apart[1:] @ apart[:-1]) / squares if squares > 0 else 0.0
    return min(max(seen + 1 / len(values), 0.0), MOST) if squares > 0 else 0.0


def limit_of(setting: str | None, before: Array, after: Array, tests: int) -> Limit:
    """Return a new time against its limit, by log seconds of starts, with Bonferroni's correction for ``tests``."""
    count, r = len(before), correlation(before)
    inflation = _inflation(count, r)
    degrees = max(count / _inflation(count, r**2) - 1, 1.0)
    variance = float(before.var(ddof=1)) * (count - 1) / (count - inflation)
    error = math.sqrt(variance * (inflation / count + _inflation(len(after), r) / len(after)))
    quantile = together(tests)(degrees)
    return Limit(
        setting=setting,
        ratio=math.exp(float(after.mean() - before.mean())),
        limit=math.exp(quantile * error),
        found=math.exp((quantile + float(special.stdtrit(degrees, POWER))) * error),
    )


def _inflation(count: int, r: float) -> float:
    """Return how many times the variance of a mean is that of ``count`` independent values (Bartlett 1946)."""
    lags = np.arange(1, count)
    return 1 + 2 * float(((1 - lags / count) * r**lags).sum())
