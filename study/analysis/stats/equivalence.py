"""Equivalence within a margin, and what a study of this size and this noise could have seen."""

import math
from bisect import bisect_left
from collections.abc import Hashable

import numpy as np
from pydantic import Field

from study.analysis.stats.critical_values import with_best
from study.analysis.stats.log_model import LogModel
from study.analysis.stats.mixed_model import Array
from study.analysis.stats.power import smallest_difference
from study.base.strict import Strict

MOST_BLOCKS = 1000
LARGEST = 100.0
"""The log of a ratio beyond which none is told."""


class Sensitivity(Strict):
    """What comparisons within blocks can tell, by the noise that was measured."""

    smallest_ratio: float
    """The smallest ratio of a level's time to the fastest's that four in five studies like this one find."""
    spreads: dict[str, float]
    """Relative standard deviation between runs of one block (`noise`), and between blocks and starts where each can be
    told."""
    margin: float = Field(description="The study's margin of equivalence.")
    blocks: int = Field(description="Blocks in which the levels were measured: clean runs a level, on the average.")
    blocks_for_margin: int | None
    """Blocks with which four in five studies find a ratio as large as the margin; null beyond 1000."""


def equivalent_to(model: LogModel, best: Hashable, margin: float) -> list[str]:
    """Return the levels whose ratio to ``best`` is shown to lie within 1 + ``margin`` and its reciprocal.

    These are two one-sided tests at 5% (Schuirmann 1987). That all are equal needs no more (Berger 1982); to find some
    of many takes Dunnett's value for all at once, for one of many is within the margin by chance.
    """
    others = [level for level in model.levels if level != best]
    if model.spare <= 0:
        return []
    for count in (2, len(model.levels)):
        found = [str(level) for level in others if _inside(model, model.weights(level, best), margin, count)]
        if len(found) == len(others):
            break
    return found


def _inside(model: LogModel, weights: Array, margin: float, count: int) -> bool:
    """Return whether a ratio lies within the margin, with noises of their own and with one for all."""
    reaches = [
        one.interval(weights, lambda degrees: float(with_best(count, np.array([degrees]))[0]))
        for one in (model, model.even)
    ]
    return all(one.low and one.high and 1 / (1 + margin) <= one.low < one.high <= 1 + margin for one in reaches)


def sensitivity_of(model: LogModel, margin: float) -> Sensitivity | None:
    """Return what a difference between two levels must be to be seen; None without replicates or a second level."""
    noise = model.spreads["noise"]
    if model.spare <= 0 or noise <= 0 or len(model.levels) < 2:
        return None
    levels, blocks = len(model.levels), max(round(float(model.counts.mean())), 2)
    return Sensitivity(
        smallest_ratio=math.exp(min(noise * smallest_difference(levels, blocks), LARGEST)),
        spreads=model.spreads,
        margin=margin,
        blocks=blocks,
        blocks_for_margin=_blocks(noise, levels, 1 + margin),
    )


def blocks_to_find(found: Sensitivity, ratio: float) -> int | None:
    """Return the least number of blocks with which four in five studies tell two settings apart that differ by this
    ratio; None beyond 1000."""
    return _blocks(found.spreads["noise"], 2, ratio)


def _blocks(noise: float, levels: int, ratio: float) -> int | None:
    """Return the least number of blocks that find a ratio; None beyond 1000."""
    wanted = abs(math.log(ratio)) / noise
    found = bisect_left(range(2, MOST_BLOCKS + 1), -wanted, key=lambda blocks: -smallest_difference(levels, blocks)) + 2
    return found if found <= MOST_BLOCKS else None
