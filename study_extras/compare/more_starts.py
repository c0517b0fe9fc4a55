"""How many more starts a comparison without a verdict needs, by the power of the test that would end it first.

Two tests can end it: the one of the difference, and the two one-sided ones of equivalence. The more a ratio is inside
the margin, the sooner it is shown to be equivalent; the more it is outside, the sooner it is shown to differ.
"""

import math
from bisect import bisect_left
from typing import Literal

from pydantic import Field
from scipy import special

from study.analysis.stats.equivalence import POWER
from study.analysis.stats.log_model import CONFIDENCE, SIGNIFICANCE
from study.base.strict import Strict

MOST_MORE = 100

Test = Literal["equivalence", "difference"]


class More(Strict):
    """What a comparison without a verdict needs."""

    starts: int | None = Field(
        description="More starts of each result with which four in five comparisons would end with a verdict, if the "
        "ratio and the spread between starts are those that were found; null beyond 100."
    )
    test: Test = Field(description="The test that would end it: of a difference, or of equivalence within the margin.")


def more_starts(difference: float, spread: float, starts: tuple[int, int], margin: float, tests: int = 1) -> More:
    """Return the more starts of each of two results that would end their comparison.

    ``difference`` is that of mean log seconds and ``spread`` the standard deviation between starts. A difference has
    Bonferroni's correction for ``tests``, as the verdicts have.
    """

    def powers(more: int) -> dict[Test, float]:
        return _powers(difference, spread, (starts[0] + more, starts[1] + more), margin, tests)

    if spread <= 0:  # starts without any spread tell nothing of what the next one changes
        return More(starts=1, test="equivalence" if abs(difference) < math.log1p(margin) else "difference")
    needed = 1 + bisect_left(range(1, MOST_MORE + 1), POWER, key=lambda more: max(powers(more).values()))
    found = powers(min(needed, MOST_MORE))
    return More(
        starts=needed if needed <= MOST_MORE else None,
        test="equivalence" if found["equivalence"] >= found["difference"] else "difference",
    )


def _powers(difference: float, spread: float, starts: tuple[int, int], margin: float, tests: int) -> dict[Test, float]:
    """Return the power of each test if ``difference`` is the true one, by the noncentral t distribution."""
    degrees, within = sum(starts) - 2, math.log1p(margin)
    error = spread * math.sqrt(1 / starts[0] + 1 / starts[1])
    two_sided = float(special.stdtrit(degrees, 1 - (1 - CONFIDENCE) / 2 / tests))
    one_sided = float(special.stdtrit(degrees, 1 - SIGNIFICANCE))
    below = float(special.nctdtr(degrees, (abs(difference) - within) / error, -one_sided))
    above = 1 - float(special.nctdtr(degrees, (abs(difference) + within) / error, one_sided))
    return {
        "difference": 1 - float(special.nctdtr(degrees, abs(difference) / error, two_sided)),
        "equivalence": max(below + above - 1, 0.0),
    }
