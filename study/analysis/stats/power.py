"""The smallest difference that the procedure which decides finds in four of five studies, by simulation."""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from study.analysis.stats.dunnett import critical
from study.analysis.stats.log_model import SIGNIFICANCE
from study.analysis.stats.mixed_model import Array

POWER = 0.8
"""Cohen (1988): four in five studies of that size find the difference."""
DRAWS, SEED = 4_000, 20_261_126
MOST_LEVELS = 64
"""Levels from which more change the difference little; the draws would take long."""


@cache
def smallest_difference(levels: int, blocks: int) -> float:
    """Return by how many standard deviations of a run's noise one level must be slower than the others, all equal.

    Complete blocks; it is told by Hsu's comparison and the F test at 5%, as the levels that may be the fastest are. The
    deviation is that which half of such studies measure: with few degrees of freedom most measure less than there is.
    """
    levels = min(levels, MOST_LEVELS)
    degrees = (levels - 1) * (blocks - 1)
    rng = np.random.default_rng(SEED)
    means = rng.standard_normal((DRAWS, levels)) / math.sqrt(blocks)
    noise = np.sqrt(rng.chisquare(degrees, DRAWS) / degrees)
    own, others = means[:, 0], np.sort(means[:, 1:], 1)
    reach = critical(levels, float(degrees), two_sided=False) * noise * math.sqrt(2 / blocks)
    sums, squares = others.cumsum(1), (others**2).cumsum(1)
    low, high = 0.0, 100.0 / math.sqrt(blocks)
    for _ in range(20):
        middle = (low + high) / 2
        told = _told(own + middle, others, sums, squares, reach, noise**2 / blocks, degrees)
        low, high = (low, middle) if told.mean() >= POWER else (middle, high)
    return high / math.sqrt(special.chdtri(degrees, 0.5) / degrees)


def _told(
    own: Array,
    others: Array,
    sums: Array,
    squares: Array,
    reach: Array,
    variance: Array,
    degrees: int,
) -> NDArray[np.bool_]:
    """Return in which studies (n,) the level is told to be slower than the best of the others (n, k)."""
    below = (others <= own[:, None]).sum(1)
    at = np.arange(len(own)), np.maximum(below - 1, 0)
    count = below + 1
    spread = squares[at] + own**2 - (sums[at] + own) ** 2 / count
    ratio = spread / np.maximum(below, 1) / variance
    found: NDArray[np.bool_] = (own - others[:, 0] > reach) & (
        special.fdtrc(np.maximum(below, 1), degrees, ratio) < SIGNIFICANCE
    )
    found &= below > 0
    return found
