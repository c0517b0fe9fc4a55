"""Equivalence within a margin, and how many blocks a difference needs beside this noise.

What a study of its own size could have seen is not told: the intervals say what it saw (Hoenig and
Heisey 2001, "The abuse of power").
"""

import math
from bisect import bisect_left
from collections.abc import Hashable
from functools import cache

import numpy as np

from study.analysis.stats.critical_values import largest_of_all, with_best
from study.analysis.stats.log_model import LogModel
from study.analysis.stats.mixed_model import Array
from study.base.strict import Strict

POWER = 0.8
"""Cohen (1988): four in five studies of that size find the difference."""
DRAWS, SEED = 4_000, 20_261_126
MOST_BLOCKS = 1000


@cache
def smallest_difference(blocks: int) -> float:
    """Return by how many measured standard deviations one of two levels must be slower than the
    other to be told, in four of five studies of so many complete blocks.

    What a study measures of the noise is itself uncertain, so the power is the mean over what
    studies of this size measure: with few degrees of freedom a study that saw little noise by
    chance would state too small a difference.
    """
    degrees, error = blocks - 1, math.sqrt(2 / blocks)
    rng = np.random.default_rng(SEED)
    noise, stated = (np.sqrt(rng.chisquare(degrees, DRAWS) / degrees) for _ in range(2))
    needed = noise * largest_of_all(2, degrees) * error
    by_chance = error * rng.standard_normal(DRAWS)
    return float(np.quantile((needed - by_chance) / stated, POWER))


class Noise(Strict):
    """What runs with the same setting differ by."""

    spreads: dict[str, float]
    """Relative standard deviation between runs of one block (`noise`), and between blocks and
    starts where each can be told."""
    blocks: int
    """Blocks in which the levels were measured: clean runs a level, on the average."""


def equivalent_to(model: LogModel, best: Hashable, margin: float) -> list[str]:
    """Return the levels whose ratio to ``best`` is shown to lie within 1 + ``margin`` and its
    reciprocal.

    These are two one-sided tests at 5% (Schuirmann 1987). That all are equal needs no more (Berger
    1982); to find some of many takes Dunnett's value for all at once, for one of many is within the
    margin by chance.
    """
    others = [level for level in model.levels if level != best]
    if model.spare <= 0:
        return []
    for count in (2, len(model.levels)):
        found = [
            str(level)
            for level in others
            if _inside(model, model.weights(level, best), margin, count)
        ]
        if len(found) == len(others):
            break
    return found


def _inside(model: LogModel, weights: Array, margin: float, count: int) -> bool:
    """Return whether a ratio lies within the margin, with noises of their own and with one for
    all."""
    reaches = [
        one.interval(weights, lambda degrees: with_best(count, np.array([degrees]))[0])
        for one in (model, model.even)
    ]
    return all(one.within(margin) and one.low != one.high for one in reaches)


def noise_of(model: LogModel) -> Noise | None:
    """Return the noise of two levels or more; None without replicates."""
    if model.spare <= 0 or model.spreads["noise"] <= 0 or len(model.levels) < 2:
        return None
    return Noise(spreads=model.spreads, blocks=max(round(model.counts.mean()), 2))


def blocks_to_find(noise: float, ratio: float) -> int | None:
    """Return the least number of blocks with which four in five studies find this ratio of two
    levels beside this noise; None beyond 1000."""
    wanted = -abs(math.log(ratio)) / noise
    counts = range(2, MOST_BLOCKS + 1)
    found = 2 + bisect_left(counts, wanted, key=lambda blocks: -smallest_difference(blocks))
    return found if found <= MOST_BLOCKS else None
