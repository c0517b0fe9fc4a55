"""The levels that may be the fastest, with the probability of each and the cost of choosing it.

The set is Hsu's multiple comparisons with the best (Hsu 1984): it holds the truly fastest level with 95% probability,
whichever it is. A level leaves it where some other is faster by more than the one-sided critical value of the largest
of its differences, which share its own mean and the noise (Dunnett's, for any design).
"""

from collections.abc import Hashable, Sequence

import numpy as np
from pydantic import Field

from study.analysis.stats.gate import ROUNDING
from study.analysis.stats.log_model import CONFIDENCE, DIFFERENCE, LogModel
from study.analysis.stats.mixed_model import Array
from study.base.strict import Strict

DRAWS = 40_000
PART = 4_000
"""Draws that are searched at once."""
SEED = 20_240_101


class Optimum(Strict):
    """The levels that cannot be told from the fastest."""

    indistinguishable: list[str] = Field(description="Levels that hold the truly fastest one with 95% probability.")
    best_probability: dict[str, float]
    """Share of draws in which a level is the fastest; the means are drawn with their own noise. A level that did not
    learn as well, or missed its target, has none."""
    cost: dict[str, float] = Field(description="Time of each level over the smallest mean.")


def optimum_of(model: LogModel, among: Sequence[Hashable] | None = None) -> Optimum | None:
    """Return the optimum among some levels of a fitted model (None: all); None without replicates or without noise."""
    levels = [level for level in model.levels if among is None or level in among]
    if not has_noise(model) or not levels:
        return None
    names = [label(level) for level in levels]
    rows = [model.levels.index(level) for level in levels]
    drawn, effects = draws(model.covariance[np.ix_(rows, rows)], model.pair_degrees), model.effects[rows]
    shares = np.bincount((effects + drawn).argmin(1), minlength=len(names)) / DRAWS
    errors = np.sqrt(model.pair_variances[np.ix_(rows, rows)])
    lowest = drawn.min(1)
    kept = [name for index, name in enumerate(names) if _may_be_best(index, effects, errors, drawn, lowest)]
    least = float(effects.min())
    return Optimum(
        indistinguishable=kept,
        best_probability=dict(zip(names, shares.tolist(), strict=True)),
        cost=dict(zip(names, np.exp(effects - least).tolist(), strict=True)),
    )


def has_noise(model: LogModel) -> bool:
    """Return whether there are replicates, and more than rounding between them."""
    return model.spare > 0 and model.fit.variances["noise"] > ROUNDING**2


def draws(covariance: Array, degrees: float) -> Array:
    """Return draws, shape (DRAWS, k), of a multivariate t: a normal of that covariance whose scale was estimated."""
    rng = np.random.default_rng(SEED)
    normal = rng.multivariate_normal(np.zeros(len(covariance)), covariance, DRAWS, method="svd")
    return normal / np.sqrt(rng.chisquare(degrees, DRAWS) / degrees)[:, None]


def may_be_fastest(optimum: Optimum, differs_p: float | None) -> list[str]:
    """Return the levels that cannot be told from the fastest: all, where the F test finds no difference.

    Without that protection (Fisher's) one in five studies of equal levels would single one out.
    """
    if differs_p is None or differs_p >= DIFFERENCE:
        return list(optimum.cost)
    return optimum.indistinguishable


def _may_be_best(index: int, effects: Array, errors: Array, drawn: Array, lowest: Array) -> bool:
    """Return whether the largest difference of a level from another is within that of more than 5% of the draws.

    ``errors`` (k, k) are those of the differences, and ``lowest`` (DRAWS,) the smallest of each draw. That alone tells
    of most draws that they hold no such difference. The others are searched until they are enough.
    """
    errors = np.where(np.arange(len(effects)) == index, np.inf, errors[index])
    seen = float(((effects[index] - effects) / errors).max())
    if seen <= 0:
        return True
    near = np.flatnonzero(drawn[:, index] - lowest >= seen * errors.min())
    found, wanted = 0, round((1 - CONFIDENCE) * DRAWS)
    for start in range(0, len(near), PART):
        part = drawn[near[start : start + PART]]
        found += int((((part[:, [index]] - part) / errors).max(1) >= seen).sum())
        if found > wanted:
            return True
    return False


def label(level: Hashable) -> str:
    """Return a level's name; that of a number has the digits that tell it from every other."""
    if not isinstance(level, float):
        return str(level)
    return f"{level:.0f}" if level.is_integer() and level < 1e15 else repr(level)
