"""Critical values for comparing many levels at once, found by numeric integration: Dunnett's, and
Tukey's range.

Differences share means and the estimate of the noise, so they are not independent: Bonferroni's
correction would be too wide.
"""

import math
from collections.abc import Callable
from functools import cache, partial

import numpy as np
from scipy import optimize, special, stats

from study.analysis.stats.log_model import CONFIDENCE, Critical
from study.analysis.stats.mixed_model import Array

UNIT = np.polynomial.legendre.leggauss(160)
"""Points of each Gauss-Legendre integral between -1 and 1, and their weights: up to 64 levels the
value is exact to 1e-7, at any degrees from 1 on."""
INTEGRATION_LIMIT = 9.0
"""Standard deviations of a normal beyond which there is nothing to integrate."""
GRID = np.array([1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 30, 60, 200, 1e4])
"""Degrees of freedom between which critical values are interpolated."""
RARE = 1e-11
"""Probability beyond which the estimate of the noise is not integrated."""


@cache
def dunnett(levels: int, degrees: float, two_sided: bool) -> float:
    """Return the 95% quantile of the largest of the ``levels - 1`` differences from one level, in
    standard errors.

    ``levels`` counts that one, too, so it is two or more; all have the same number of runs. The
    largest is that in one direction, or in either of the two (``two_sided``). ``degrees`` are those
    of the noise, which may be infinite (Dunnett 1955).
    """
    shared, weights = _normal()

    def within(limits: Array) -> Array:
        """Return the probability that no difference exceeds each limit, in its own standard
        deviations. Given the mean of the one level the others are independent of each other."""
        reach = math.sqrt(2) * limits[:, None]
        each = special.ndtr(shared + reach) - (special.ndtr(shared - reach) if two_sided else 0.0)
        return np.asarray(each ** (levels - 1) @ weights)

    tail = (1 - CONFIDENCE) / (2 if two_sided else 1)
    return _quantile(within, degrees, tail, levels - 1)


@cache
def largest_of_all(levels: int, degrees: float) -> float:
    """Return the 95% quantile of the largest difference between any two of some levels, in its
    standard errors.

    It is the studentized range over the square root of two (Tukey 1953). ``levels`` and ``degrees``
    are as above.
    """
    least, weights = _normal()

    def within(limits: Array) -> Array:
        """Return the probability that no two levels differ by more than each limit, in standard
        deviations of one pair. Given the smallest mean, all others lie within the limit above
        it."""
        reach = math.sqrt(2) * limits[:, None]
        each = special.ndtr(least + reach) - special.ndtr(least)
        return np.asarray(levels * each ** (levels - 1) @ weights)

    return _quantile(within, degrees, (1 - CONFIDENCE) / 2, levels * (levels - 1) // 2)


def ranges(levels: int, degrees: Array) -> Array:
    """Return ``largest_of_all`` for each number of degrees (k), between those of a grid."""
    return _between(lambda one: largest_of_all(levels, one), degrees)


def with_best(levels: int, degrees: Array) -> Array:
    """Return Dunnett's one-sided value for each number of degrees (k), between those of a grid."""
    return _between(lambda one: dunnett(levels, one, two_sided=False), degrees)


def beside_best(levels: int) -> Critical:
    """Return the reach of Dunnett's one-sided value, between those of a grid of degrees."""
    return lambda degrees: float(with_best(levels, np.array([degrees]))[0])


def against_one(levels: int) -> Critical:
    """Return the reach of intervals that hold at once for all differences of ``levels`` from one,
    whichever it is."""
    return lambda degrees: dunnett(levels, max(degrees, 1.0), two_sided=True)


def _between(value: Callable[[float], float], degrees: Array) -> Array:
    """Return a critical value at ``degrees`` (k), from the points of the grid on both sides of
    each, in 1/degrees."""
    known = np.clip(degrees, GRID[0], GRID[-1])
    above = np.clip(np.searchsorted(GRID, known), 1, len(GRID) - 1)
    high, low = GRID[above], GRID[above - 1]
    share = (1 / low - 1 / known) / (1 / low - 1 / high)
    each = np.vectorize(value, otypes=[float])
    return np.asarray(each(low) * (1 - share) + each(high) * share)


def _quantile(within: Callable[[Array], Array], degrees: float, tail: float, tests: int) -> float:
    """Return the limit that none of some ``tests`` exceeds with 95% probability, of their
    probability ``within`` it.

    It lies between the quantile of t of one test and that of Bonferroni's rule.
    """
    infinite = math.isinf(degrees)
    quantile = special.ndtri if infinite else partial(special.stdtrit, degrees)
    least, most = (float(quantile(1 - tail / count)) for count in (1, tests))
    if tests == 1:
        return least
    # Values of the estimated over the true standard deviation, and the weight of each.
    spreads, weights = np.ones(1), np.ones(1)
    if not infinite:
        chi = stats.chi(degrees, scale=1 / math.sqrt(degrees))
        logs, weights = _legendre(math.log(chi.ppf(RARE)), math.log(chi.isf(RARE)))
        spreads = np.exp(logs)
        weights = weights * spreads * chi.pdf(spreads)
    return float(
        optimize.brentq(
            lambda value: weights @ within(value * spreads) - CONFIDENCE,
            0.99 * least,
            1.01 * most,
            xtol=1e-9,
        )
    )


def _normal() -> tuple[Array, Array]:
    """Return values of a normal variable, and the weight of each."""
    values, weights = _legendre(-INTEGRATION_LIMIT, INTEGRATION_LIMIT)
    return values, weights * np.exp(-(values**2) / 2) / math.sqrt(2 * math.pi)


def _legendre(low: float, high: float) -> tuple[Array, Array]:
    nodes, weights = UNIT
    return (high + low) / 2 + (high - low) / 2 * nodes, (high - low) / 2 * weights
