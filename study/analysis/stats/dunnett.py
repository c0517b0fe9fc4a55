"""Critical values for comparing many levels with one at once (Dunnett 1955), found by numeric integration.

The differences share the mean of the one level and the estimate of the noise, so they are not independent: Bonferroni's
correction would be too wide.
"""

import math
from functools import cache

import numpy as np
from scipy import optimize, special, stats

from study.analysis.stats.log_model import CONFIDENCE, Critical
from study.analysis.stats.mixed_model import Array

NODES = 160
"""Points of each Gauss-Legendre integral: up to 64 levels the value is exact to 1e-7, at any degrees from 1 on."""
FAR = 9.0
"""Standard deviations of a normal beyond which there is nothing to integrate."""
RARE = 1e-11
"""Probability beyond which the estimate of the noise is not integrated."""


@cache
def critical(levels: int, degrees: float, two_sided: bool) -> float:
    """Return the 95% quantile of the largest of the ``levels - 1`` differences from one level, in standard errors.

    ``levels`` counts that one, too, so it is two or more; all have the same number of runs. The largest is that in one
    direction, or in either of the two (``two_sided``). ``degrees`` are those of the noise, which may be infinite.
    """
    tail, others = (1 - CONFIDENCE) / (2 if two_sided else 1), levels - 1
    least, most = (_student(degrees, tail / tests) for tests in (1, others))
    if others == 1:
        return least
    spreads, weights = _spreads(degrees)

    def excess(value: float) -> float:
        return float(weights @ _all_within(value * spreads, others, two_sided)) - CONFIDENCE

    return float(optimize.brentq(excess, 0.99 * least, 1.01 * most, xtol=1e-9))


def against_one(levels: int) -> Critical:
    """Return the reach of intervals that hold at once for all differences of ``levels`` from one, whichever it is."""
    return lambda degrees: critical(levels, max(degrees, 1.0), two_sided=True)


def _student(degrees: float, tail: float) -> float:
    return float(special.ndtri(1 - tail) if math.isinf(degrees) else special.stdtrit(degrees, 1 - tail))


def _spreads(degrees: float) -> tuple[Array, Array]:
    """Return values of the estimated over the true standard deviation, and the weight of each."""
    if math.isinf(degrees):
        return np.ones(1), np.ones(1)
    chi = stats.chi(degrees, scale=1 / math.sqrt(degrees))
    logs, weights = _legendre(math.log(chi.ppf(RARE)), math.log(chi.isf(RARE)))
    spreads: Array = np.exp(logs)
    return spreads, weights * spreads * chi.pdf(spreads)


def _all_within(limits: Array, others: int, two_sided: bool) -> Array:
    """Return the probability that no difference exceeds each limit, in its own standard deviations.

    Given the mean of the one level the others are independent of each other.
    """
    shared, weights = _legendre(-FAR, FAR)
    reach = math.sqrt(2) * limits[:, None]
    each = special.ndtr(shared + reach) - (special.ndtr(shared - reach) if two_sided else 0.0)
    found: Array = each**others @ (weights * np.exp(-(shared**2) / 2) / math.sqrt(2 * math.pi))
    return found


def _legendre(low: float, high: float) -> tuple[Array, Array]:
    nodes, weights = _unit()
    return (high + low) / 2 + (high - low) / 2 * nodes, (high - low) / 2 * weights


@cache
def _unit() -> tuple[Array, Array]:
    """Return the points between -1 and 1, and their weights: finding them takes longer than all else."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return nodes, weights
