"""Equivalence within a margin, and what a study of this size and this noise could have seen."""

import math
from collections.abc import Hashable

from pydantic import Field
from scipy import special

from study.analysis.stats.log_model import CONFIDENCE, SIGNIFICANCE, LogModel
from study.base.strict import Strict

POWER = 0.8
"""Cohen (1988): four in five studies of that size find the difference."""
MOST_BLOCKS = 1000


class Sensitivity(Strict):
    """What comparisons within blocks can tell, by the noise that was measured."""

    smallest_ratio: float
    """The smallest ratio of two levels' times that four in five studies like this one find, at 95%."""
    spreads: dict[str, float]
    """Relative standard deviation between runs of one block (`noise`), and between blocks and starts where each can be
    told."""
    margin: float = Field(description="The study's margin of equivalence.")
    blocks: int = Field(description="Blocks in which the levels were measured: clean runs a level, on the average.")
    blocks_for_margin: int | None
    """Blocks with which four in five studies find a ratio as large as the margin; null beyond 1000."""


def equivalent_to(model: LogModel, best: Hashable, margin: float) -> list[str]:
    """Return the levels whose ratio to ``best`` is shown to lie within 1 + ``margin`` and its reciprocal.

    These are two one-sided t tests at 5% (Schuirmann 1987). Each level is compared with the fastest by itself.
    """
    if model.spare <= 0:
        return []
    found = []
    for level in model.levels:
        if level == best:
            continue
        weights = model.weights(level, best)
        # With noises of their own or with one for all: whichever reaches further.
        reach = max(
            float(special.stdtrit(one.degrees(weights), 1 - SIGNIFICANCE)) * one.error(weights)
            for one in (model, model.even)
        )
        if reach > 0 and abs(float(weights @ model.effects)) + reach <= math.log1p(margin):
            found.append(str(level))
    return found


def sensitivity_of(model: LogModel, margin: float) -> Sensitivity | None:
    """Return what a difference between two levels must be to be seen; None without replicates or a second level."""
    noise = float(model.noises.mean())
    if model.spare <= 0 or noise <= 0 or len(model.levels) < 2:
        return None
    levels, blocks = len(model.levels), float(model.counts.mean())
    return Sensitivity(
        smallest_ratio=math.exp(_smallest(noise, levels, blocks)),
        spreads={name: math.sqrt(variance) for name, variance in model.fit.variances.items()},
        margin=margin,
        blocks=round(blocks),
        blocks_for_margin=next(
            (count for count in range(2, MOST_BLOCKS + 1) if _smallest(noise, levels, count) <= math.log1p(margin)),
            None,
        ),
    )


def blocks_to_find(found: Sensitivity, ratio: float) -> int | None:
    """Return the least number of blocks with which four in five studies tell two settings apart that differ by this
    ratio; None beyond 1000."""
    noise = found.spreads["noise"] ** 2
    wanted = abs(math.log(ratio))
    return next((count for count in range(2, MOST_BLOCKS + 1) if _smallest(noise, 2, count) <= wanted), None)


def _smallest(noise: float, levels: int, blocks: float) -> float:
    """Return the log ratio that a t test at 5% finds with a power of 80%, in complete blocks."""
    degrees = max((levels - 1) * (blocks - 1), 1)
    quantiles = float(special.stdtrit(degrees, (1 + CONFIDENCE) / 2) + special.stdtrit(degrees, POWER))
    return quantiles * math.sqrt(2 * noise / blocks)
