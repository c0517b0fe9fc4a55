"""The levels that may be the fastest, the cost of choosing another, equivalence within a margin,
and how many blocks a difference needs.

A level leaves the set where another is faster by more than the largest of all differences among as
many equal levels, with 95% probability: the studentized range. That which stands out most is tested
among all; where it leaves, the next among the others, and so on (Newman 1939, Keuls 1952). So a
level that is far slower than all does not make those slower that are equal, and one that is faster
than many is not lost among them.

What a study of its own size could have seen is not told: the intervals say what it saw (Hoenig and
Heisey 2001, "The abuse of power").
"""

import math
from bisect import bisect_left
from collections.abc import Collection, Hashable, Sequence
from functools import cache, partial

import numpy as np
from scipy import special

from study.analysis.stats.critical_values import (
    against_one,
    beside_best,
    largest_of_all,
    ranges,
    with_best,
)
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.log_model import SIGNIFICANCE, LogModel
from study.analysis.stats.noise import ROUNDING, AnyLevel
from study.base.strict import Strict

POWER = 0.8
"""Cohen (1988): four in five studies of that size find the difference."""
DRAWS, SEED = 4_000, 20_261_126
MOST_BLOCKS = 1000


class Optimum(Strict):
    """The levels that cannot be told from the fastest."""

    indistinguishable: list[str]
    """Levels that hold the truly fastest one with 95% probability."""
    cost: dict[str, float]
    """Time of each level over the smallest mean."""


def optimum_of(model: LogModel, among: Collection[Hashable] | None = None) -> Optimum | None:
    """Return the optimum among some levels of a fitted model (None: all); None without replicates
    or without noise."""
    levels = [level for level in model.levels if among is None or level in among]
    # where the runs show no noise, a step of the clock tells
    told = has_noise(model) or bool(model.sensitivity_bounds.slow.offsets.any())
    if not told or model.residual_df <= 0 or not levels:
        return None
    places = [model.levels.index(level) for level in levels]
    effects = (model.effects + model.sensitivity_bounds.middle)[places]
    return Optimum(
        indistinguishable=[label(level) for level in may_be_fastest(model, levels)],
        cost=dict(zip(map(label, levels), np.exp(effects - effects.min()).tolist(), strict=True)),
    )


def may_be_fastest(model: LogModel, levels: Sequence[AnyLevel]) -> list[AnyLevel]:
    """Return those of some ``levels`` that hold the truly fastest of them with 95% probability, in
    their order."""
    if model.starts and model.starts.are_units:
        left = _left_over_starts(model, levels)
    else:  # where levels have noises of their own, one noise for all must tell the same
        left = set(_left(model, levels))
        left = left & set(_left(model.even, levels)) if model.uneven else left
    return [level for level in levels if level not in left]


def ratios_to(
    model: LogModel, best: AnyLevel, levels: Sequence[AnyLevel]
) -> dict[AnyLevel, Estimate]:
    """Return the time of each other level of the model over that of ``best``, one of ``levels``.

    The interval reaches as far as the test of :func:`may_be_fastest`: the largest difference among
    as many equal levels as were left when the level was tested last. So that of a level that is
    slower than ``best`` leaves out 1, and that of one that is tied holds it, but for two cases. A
    level may be slower than another one alone; and where levels have noises of their own, both
    models must tell, and the interval is of the one with the larger p. Where starts are the unit,
    the test has one side, and an F test must agree: the interval has Dunnett's two sides.
    """
    one = telling(model, levels)
    found = {}
    units = one.starts and one.starts.are_units
    gone = [] if units else _left(one, levels)
    for level in model.levels:
        left = len(levels) - (gone.index(level) if level in gone else len(gone))
        reach = against_one(len(levels)) if units else partial(largest_of_all, max(left, 2))
        found[level] = one.ratio(level, best, reach)
    found.pop(best)
    return found


def _left(model: LogModel, levels: Sequence[AnyLevel]) -> list[AnyLevel]:
    """Return the levels that leave the set, in the order in which they do."""
    if len(levels) < 2:
        return []
    places = [model.levels.index(level) for level in levels]
    apart = [model.slower(place, places) for place in places]

    def excess(rank: int, count: int) -> float:
        """Return the largest difference of a level from a faster one, over what ``count`` equal
        levels reach."""
        differences, errors, degrees = apart[rank]
        reach = ranges(count, degrees) * errors
        # errors are 0 for a clock that shows no noise
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(reach > 0, differences / reach, np.where(differences > 0, np.inf, 0.0))
        return float(found.max())

    ranked = sorted(range(len(levels)), key=lambda rank: excess(rank, len(levels)))
    left = []
    for count in range(len(ranked), 1, -1):
        if excess(ranked[count - 1], count) <= 1:
            break
        left.append(levels[ranked[count - 1]])
    return left


def _left_over_starts(model: LogModel, levels: Sequence[AnyLevel]) -> set[AnyLevel]:
    """Return the levels that leave the set where starts are the unit: each pair has a noise of its
    own.

    Hsu's comparison with the best (1984) and the F test must agree, among all levels and among the
    level and all that look faster: with few degrees a part of the levels must not tell by itself.
    """
    ranked = sorted(levels, key=lambda level: model.effects[model.levels.index(level)])
    places = [model.levels.index(level) for level in ranked]
    left = set()
    for rank in range(1, len(ranked)):
        differences, errors, degrees = model.slower(places[rank], places)
        told = np.arange(len(places)) != rank
        if (differences[told] > with_best(len(places), degrees[told]) * errors[told]).any():
            tests = [level_test(model, ranked[: rank + 1]), level_test(model, ranked)]
            if all(p is not None and p < SIGNIFICANCE for p in tests):
                left.add(ranked[rank])
    return left


def has_noise(model: LogModel) -> bool:
    """Return whether there are replicates, and more than rounding between them."""
    return model.residual_df > 0 and model.fit.variances["noise"] > ROUNDING**2


def label(level: Hashable) -> str:
    """Return a level's name; that of a number has the digits that tell it from every other."""
    if not isinstance(level, float):
        return str(level)
    return f"{level:.0f}" if level.is_integer() and level < 1e15 else repr(level)


def level_test(model: LogModel, among: Sequence[Hashable]) -> float | None:
    """Return p of the F test that no level ``among`` some differs from another; None without
    replicates.

    Where levels have noises of their own it is the larger p of two tests, with these and with one
    noise for all.
    """
    chosen = [level for level in model.levels if level in among]
    return _level_test(telling(model, chosen), chosen)


def telling(model: LogModel, levels: Sequence[Hashable]) -> LogModel:
    """Return the model that tells whether ``levels`` differ: with noises of their own, or with one
    for all if that has the larger p."""
    if not model.uneven:
        return model
    own, even = (_level_test(one, levels) or 0.0 for one in (model, model.even))
    return model if own > even else model.even


def over_starts(model: LogModel, levels: Sequence[Hashable]) -> tuple[float, float] | None:
    """Return the variance of a level's mean over starts beside the other ``levels``, in (log s)^2,
    and its degrees of freedom; None where starts are not the unit."""
    if not (model.starts and model.starts.are_units):
        return None
    whole = np.eye(len(model.levels))[[model.levels.index(level) for level in levels]]
    pairs = (whole[:, None] - whole[None]).reshape(-1, len(model.levels))
    spread, few = model.starts.spread_of(pairs[np.abs(pairs).any(1)])
    known = np.isfinite(spread).all() and spread.mean() > 0
    return (float(spread.mean() / 2), float(few.min())) if known else None


def _level_test(model: LogModel, levels: Sequence[Hashable]) -> float | None:
    """Return p of one test; its degrees of freedom are Fai and Cornelius' (1996).

    Where starts are the unit, it is the F test of their means with 1 and starts - 1 degrees, which
    holds whatever the starts shift together (Box 1954).
    """
    count = len(levels)
    if count < 2 or model.residual_df <= 0 or model.fit.variances["noise"] <= 0:
        return None
    whole = np.eye(len(model.levels))[[model.levels.index(level) for level in levels]]
    beside = over_starts(model, levels)
    if beside:
        variance, few = beside
        return float(special.fdtrc(1, few, (whole @ model.effects).var(ddof=1) / variance))
    differences = whole[0] - whole[1:]
    variances, directions = np.linalg.eigh(differences @ model.covariance @ differences.T)
    if variances.min() <= 0:
        return None
    rows = directions.T @ differences
    variances, degrees = model.variances_of(rows)
    squares = (rows @ model.effects) ** 2 / variances
    expected = float((degrees / (degrees - 2)).sum()) if degrees.min() > 2 else 0.0
    denominator_df = (
        2 * expected / (expected - count + 1) if expected > count - 1 else float(degrees.min())
    )
    return float(special.fdtrc(count - 1, denominator_df, squares.mean()))


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
    if model.residual_df <= 0:
        return []
    for count in (2, len(model.levels)):
        found = []
        for level in others:
            # with noises of their own and with one for all
            ratios = [one.ratio(level, best, beside_best(count)) for one in (model, model.even)]
            if all(one.within(margin) and one.low != one.high for one in ratios):
                found.append(str(level))
        if len(found) == len(others):
            break
    return found


def noise_of(model: LogModel) -> Noise | None:
    """Return the noise of two levels or more; None without replicates."""
    if model.residual_df <= 0 or model.spreads["noise"] <= 0 or len(model.levels) < 2:
        return None
    return Noise(spreads=model.spreads, blocks=max(round(model.counts.mean()), 2))


def blocks_to_find(noise: float, ratio: float) -> int | None:
    """Return the least number of blocks with which four in five studies find this ratio of two
    levels beside this noise; None beyond 1000."""
    wanted = -abs(math.log(ratio)) / noise
    counts = range(2, MOST_BLOCKS + 1)
    found = 2 + bisect_left(counts, wanted, key=lambda blocks: -smallest_difference(blocks))
    return found if found <= MOST_BLOCKS else None
