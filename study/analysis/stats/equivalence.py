"""Equivalence within a margin, and what a study of this size and this noise could have seen."""

import math
from bisect import bisect_left
from collections.abc import Hashable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from study.analysis.stats.critical_values import largest_of_all, with_best
from study.analysis.stats.log_model import LogModel
from study.analysis.stats.mixed_model import Array
from study.base.strict import Strict

POWER = 0.8
"""Cohen (1988): four in five studies of that size find the difference."""
DRAWS, SEED = 4_000, 20_261_126
MOST_LEVELS = 64
"""Levels from which more change the difference little; the draws would take long."""
FARTHEST = 1_000.0
"""Standard deviations of a mean beyond which nothing is sought: two blocks of two levels find
less."""
MOST_BLOCKS = 1000
LARGEST = 100.0
"""The log of a ratio beyond which none is told."""


@cache
def smallest_difference(levels: int, blocks: int) -> float:
    """Return by how many measured standard deviations one level must be slower than the others, all
    equal, to be told.

    Complete blocks; it is told by the range test, as the levels that may be the fastest are. What a
    study measures of the noise is itself uncertain, so the power is the mean over what studies of
    this size measure: with few degrees of freedom a study that saw little noise by chance would
    state too small a difference.
    """
    levels = min(levels, MOST_LEVELS)
    degrees = (levels - 1) * (blocks - 1)
    rng = np.random.default_rng(SEED)
    means = rng.standard_normal((DRAWS, levels)) / math.sqrt(blocks)
    noise, stated = (np.sqrt(rng.chisquare(degrees, DRAWS) / degrees) for _ in range(2))
    own, others = means[:, 0], np.sort(means[:, 1:], 1)
    reach = [
        largest_of_all(count, float(degrees)) * math.sqrt(2 / blocks)
        for count in range(2, levels + 1)
    ]
    needed = noise[:, None] * np.array([0.0, *reach])
    low, high = 0.0, FARTHEST / math.sqrt(blocks)
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (
            (low, middle)
            if _told(own + middle * stated, others, needed).mean() >= POWER
            else (middle, high)
        )
    return high


def _told(own: Array, others: Array, needed: Array) -> NDArray[np.bool_]:
    """Return in which studies (n,) the level leaves the set, beside the ``others`` (n, k - 1) in
    their order.

    ``needed`` (n, k) is how far the last of so many levels must lie from the first.
    """
    place = (others < own[:, None]).sum(1)
    every = np.sort(np.column_stack([own, others]), 1)
    steps = every - every[:, :1] > needed
    left = np.logical_and.accumulate(steps[:, ::-1], 1)[:, ::-1]
    found: NDArray[np.bool_] = np.take_along_axis(left, place[:, None], 1)[:, 0]
    return found


class Sensitivity(Strict):
    """What comparisons within blocks can tell, by the noise that was measured."""

    smallest_ratio: float
    """The smallest ratio of a level's time to the fastest's that four in five studies like this one
    find."""
    spreads: dict[str, float]
    """Relative standard deviation between runs of one block (`noise`), and between blocks and
    starts where each can be told."""
    margin: float = Field(description="The study's margin of equivalence.")
    blocks: int = Field(
        description="Blocks in which the levels were measured: clean runs a level, on the average."
    )
    blocks_for_margin: int | None
    """Blocks with which four in five studies find a ratio as large as the margin; null beyond
    1000."""


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
        one.interval(weights, lambda degrees: float(with_best(count, np.array([degrees]))[0]))
        for one in (model, model.even)
    ]
    return all(
        one.low and one.high and 1 / (1 + margin) <= one.low < one.high <= 1 + margin
        for one in reaches
    )


def sensitivity_of(model: LogModel, margin: float) -> Sensitivity | None:
    """Return what a difference between two levels must be to be seen; None without replicates or a
    second level."""
    noise = model.spreads["noise"]
    if model.spare <= 0 or noise <= 0 or len(model.levels) < 2:
        return None
    levels, blocks = len(model.levels), max(round(float(model.counts.mean())), 2)
    return Sensitivity(
        smallest_ratio=math.exp(min(noise * smallest_difference(levels, blocks), LARGEST)),
        spreads=model.spreads,
        margin=margin,
        blocks=blocks,
        blocks_for_margin=blocks_to_find(noise, levels, 1 + margin),
    )


def blocks_to_find(noise: float, levels: int, ratio: float) -> int | None:
    """Return the least number of blocks with which four in five studies find a ratio beside this
    noise; None beyond 1000."""
    wanted = abs(math.log(ratio)) / noise
    found = (
        bisect_left(
            range(2, MOST_BLOCKS + 1),
            -wanted,
            key=lambda blocks: -smallest_difference(levels, blocks),
        )
        + 2
    )
    return found if found <= MOST_BLOCKS else None
