"""How many more starts a comparison without a verdict needs, by the power of the test that would end it first.

Two tests can end it: the one of the difference, and the two one-sided ones of equivalence. The more a ratio is inside
the margin, the sooner it is shown to be equivalent; the more it is outside, the sooner it is shown to differ. Where the
spread between starts is assumed, no power can be told: then the next starts are those that tell the spread.
"""

import math
from bisect import bisect_left
from typing import Literal

from pydantic import Field
from scipy import special

from study.analysis.stats.equivalence import POWER
from study.analysis.stats.log_model import CONFIDENCE, SIGNIFICANCE
from study.base.strict import Strict
from study_extras.compare.difference import KNOWN, Difference, Error, errors_of

MOST_MORE = 100

Test = Literal["equivalence", "difference", "spread"]


class More(Strict):
    """What a comparison without a verdict needs."""

    starts: int | None = Field(
        description="More starts of each result with which four in five comparisons would end with a verdict, if the "
        "ratio and the spread between starts are those that were found; null beyond 100."
    )
    test: Test = Field(
        description="The test that would end it: of a difference, or of equivalence within the margin. `spread`: the "
        "starts that tell how far starts differ, so that each result has three."
    )


def more_starts(found: Difference, margin: float, tests: int = 1) -> More:
    """Return the more starts of each of two results that would end their comparison.

    A difference has Bonferroni's correction for ``tests``, as the verdicts have.
    """
    if any(found.assumed):
        return More(starts=KNOWN - min(*found.starts, KNOWN - 1), test="spread")

    def powers(more: int) -> dict[Test, float]:
        return _powers(found, more, margin, tests)

    if not any(found.spreads):  # starts without any spread tell nothing of what the next one changes
        return More(starts=1, test="equivalence" if abs(found.value) < math.log1p(margin) else "difference")
    least = max(KNOWN - min(found.starts), 1)
    asked = range(least, MOST_MORE + 1)
    needed = least + bisect_left(asked, POWER, key=lambda more: max(powers(more).values()))
    reached = powers(min(needed, MOST_MORE))
    return More(
        starts=needed if needed <= MOST_MORE else None,
        test="equivalence" if reached["equivalence"] >= reached["difference"] else "difference",
    )


def _powers(found: Difference, more: int, margin: float, tests: int) -> dict[Test, float]:
    """Return the power of each test with more starts of each, if the difference and both spreads are the true ones.

    Of two errors the one with less power is that which would decide.
    """
    starts = found.starts[0] + more, found.starts[1] + more
    errors = errors_of(found.spreads, starts, [count - 1.0 for count in starts])
    value, within = abs(found.value), math.log1p(margin)
    return {
        "difference": min(_power_of_difference(value, error, tests) for error in errors),
        "equivalence": min(_power_of_equivalence(value, error, within) for error in errors),
    }


def _power_of_difference(value: float, error: Error, tests: int) -> float:
    """Return the power by the noncentral t distribution."""
    quantile = float(special.stdtrit(error.degrees, 1 - (1 - CONFIDENCE) / 2 / tests))
    return 1 - float(special.nctdtr(error.degrees, value / error.size, quantile))


def _power_of_equivalence(value: float, error: Error, within: float) -> float:
    quantile = float(special.stdtrit(error.degrees, 1 - SIGNIFICANCE))
    below = float(special.nctdtr(error.degrees, (value - within) / error.size, -quantile))
    above = 1 - float(special.nctdtr(error.degrees, (value + within) / error.size, quantile))
    return max(below + above - 1, 0.0)
