"""The difference of two results' mean log seconds, by the means of their starts.

Each result has the variance between its own starts, for one may be quieter than the other. From
three starts on this is the estimate. Fewer hardly tell it: two that happen to agree have not shown
that all do, and one alone shows nothing. Below three a spread is therefore assumed, and two results
of one start each are told apart only by a factor of 1.74. ``extras/compare/tests/test_verdicts.py``
counts how often this is wrong.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scipy import special

from study.analysis.stats.mixed_model import Array

LEAST_SPREAD = 0.05
"""Least standard deviation of log seconds between starts, for a result with fewer than three. A
quiet machine is better; two shared ones were seen to be far worse."""
UNKNOWN_SPREAD = 0.20
"""The one that is assumed where both results have one start alone."""
KNOWN = 3
"""Starts that tell how far starts differ."""
DEGREES_OF_A_FLOOR = 3.0
DEGREES_OF_ANOTHER = 2.0
"""The most degrees of freedom of a spread that is the other result's."""


class Error(NamedTuple):
    """A standard error of the difference, with its degrees of freedom."""

    size: float
    degrees: float

    def reach(self, level: float) -> float:
        """Return the distance of the one-sided bound at this confidence."""
        known = math.isfinite(self.degrees)
        return (
            float(special.stdtrit(self.degrees, level) if known else special.ndtri(level))
            * self.size
        )


@dataclass(frozen=True)
class Difference:
    """A difference of mean log seconds, the second result's less the first's."""

    value: float
    starts: tuple[int, int]
    spreads: tuple[float, float]
    """Standard deviation of log seconds between the starts of each result."""
    assumed: tuple[bool, bool]
    """Of which result the spread is assumed, in whole or as the least that is believed."""
    errors: Sequence[Error]
    """Welch's (1938) and that of a pooled variance: the wider interval holds under either."""

    def reach(self, level: float) -> float:
        """Return the distance of the one-sided bound at this confidence."""
        return max(error.reach(level) for error in self.errors)

    @property
    def unknown(self) -> bool:
        """Whether nothing at all is known of how far starts differ."""
        return self.starts == (1, 1)


def difference_of(first: Array, second: Array, noise: Sequence[float]) -> Difference:
    """Return the difference of two results' means of starts (n,) and (m,), in log seconds.

    ``noise`` is the variance that the runs of a start leave in its mean, of either result.
    """
    value = float(second.mean() - first.mean())
    starts = len(first), len(second)
    if starts == (1, 1):
        spreads = _roots([UNKNOWN_SPREAD**2 + one for one in noise])
        return Difference(
            value, starts, spreads, (True, True), [Error(math.hypot(*spreads), math.inf)]
        )
    if min(starts) == 1:
        known = first if len(first) > 1 else second
        own, least = float(known.var(ddof=1)), LEAST_SPREAD**2 + max(noise)
        degrees = min(len(known) - 1, DEGREES_OF_ANOTHER) if own > least else DEGREES_OF_ANOTHER
        spreads = _roots([max(own, least)] * 2)
        guessed = starts[0] == 1 or own <= least, starts[1] == 1 or own <= least
        return Difference(
            value, starts, spreads, guessed, [Error(spreads[0] * _share(starts), degrees)]
        )
    variances = [float(one.var(ddof=1)) for one in (first, second)]
    floors = [
        0.0 if count >= KNOWN else LEAST_SPREAD**2 + one
        for count, one in zip(starts, noise, strict=True)
    ]
    spreads = _roots([max(one, floor) for one, floor in zip(variances, floors, strict=True)])
    assumed = variances[0] < floors[0], variances[1] < floors[1]
    each = [
        DEGREES_OF_A_FLOOR if one else count - 1.0
        for one, count in zip(assumed, starts, strict=True)
    ]
    return Difference(value, starts, spreads, assumed, errors_of(spreads, starts, each))


def errors_of(
    spreads: tuple[float, float], starts: tuple[int, int], degrees: Sequence[float]
) -> list[Error]:
    """Return Welch's error and that of a pooled variance; ``degrees`` are those of each spread."""
    parts = [spread**2 / count for spread, count in zip(spreads, starts, strict=True)]
    squares = sum(part**2 / own for part, own in zip(parts, degrees, strict=True))
    welch = sum(parts) ** 2 / squares if squares else sum(degrees)
    both = sum(starts) - 2
    pooled = (
        sum(spread**2 * (count - 1) for spread, count in zip(spreads, starts, strict=True)) / both
    )
    return [Error(math.sqrt(sum(parts)), welch), Error(math.sqrt(pooled) * _share(starts), both)]


def _roots(variances: Sequence[float]) -> tuple[float, float]:
    first, second = variances
    return math.sqrt(first), math.sqrt(second)


def _share(starts: tuple[int, int]) -> float:
    return math.sqrt(1 / starts[0] + 1 / starts[1])
