"""The smallest difference that the procedure which decides finds in four of five studies, by simulation."""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from study.analysis.stats.critical_values import largest_of_all
from study.analysis.stats.mixed_model import Array

POWER = 0.8
"""Cohen (1988): four in five studies of that size find the difference."""
DRAWS, SEED = 4_000, 20_261_126
MOST_LEVELS = 64
"""Levels from which more change the difference little; the draws would take long."""
LARGEST = 1_000.0
"""Standard deviations of a mean beyond which nothing is sought: two blocks of two levels find less."""


@cache
def smallest_difference(levels: int, blocks: int) -> float:
    """Return by how many measured standard deviations of a run one level must be slower than the others, all equal.

    Complete blocks; it is told by the range test, as the levels that may be the fastest are. What a study measures of
    the noise is itself uncertain, so the power is the mean over what studies of this size measure: with few degrees of
    freedom a study that saw little noise by chance would state too small a difference.
    """
    levels = min(levels, MOST_LEVELS)
    degrees = (levels - 1) * (blocks - 1)
    rng = np.random.default_rng(SEED)
    means = rng.standard_normal((DRAWS, levels)) / math.sqrt(blocks)
    noise, stated = (np.sqrt(rng.chisquare(degrees, DRAWS) / degrees) for _ in range(2))
    own, others = means[:, 0], np.sort(means[:, 1:], 1)
    reach = [largest_of_all(count, float(degrees)) * math.sqrt(2 / blocks) for count in range(2, levels + 1)]
    needed = noise[:, None] * np.array([0.0, *reach])
    low, high = 0.0, LARGEST / math.sqrt(blocks)
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if _told(own + middle * stated, others, needed).mean() >= POWER else (middle, high)
    return high


def _told(own: Array, others: Array, needed: Array) -> NDArray[np.bool_]:
    """Return in which studies (n,) the level leaves the set, beside the ``others`` (n, k - 1) in their order.

    ``needed`` (n, k) is how far the last of so many levels must lie from the first.
    """
    place = (others < own[:, None]).sum(1)
    every = np.sort(np.column_stack([own, others]), 1)
    steps = every - every[:, :1] > needed
    left = np.logical_and.accumulate(steps[:, ::-1], 1)[:, ::-1]
    found: NDArray[np.bool_] = np.take_along_axis(left, place[:, None], 1)[:, 0]
    return found
