"""The levels that may be the fastest, with the probability of each and the cost of choosing it.

The set is Hsu's multiple comparisons with the best (Hsu 1984): it holds the truly fastest level with 95% probability,
whichever it is. A level leaves it where some other is faster by more than the one-sided critical value of the largest
of its differences, which share its own mean and the residual variance (Dunnett's, for any design).
"""

from collections.abc import Hashable

import numpy as np
from pydantic import Field

from study.analysis.stats.laws import Array
from study.analysis.stats.log_model import CONFIDENCE, SIGNIFICANCE, LogModel
from study.base.strict import Strict

DRAWS = 40_000
SEED = 20_240_101


class Optimum(Strict):
    """The levels that cannot be told from the fastest."""

    indistinguishable: list[str] = Field(description="Levels that hold the truly fastest one with 95% probability.")
    best_probability: dict[str, float] = Field(
        description="Share of draws in which a level is the fastest; the means are drawn with their own noise."
    )
    cost: dict[str, float] = Field(description="Time of each level over the smallest mean.")


def optimum_of(model: LogModel) -> Optimum | None:
    """Return the optimum of a fitted model; None without replicates or without noise."""
    if not model.residual_variance or not model.levels:  # none, or times without any noise
        return None
    names = [label(level) for level in model.levels]
    rng = np.random.default_rng(SEED)
    # Where the residual variance is estimated, its own error is drawn too: a multivariate t.
    normal = rng.multivariate_normal(np.zeros(len(names)), model.covariance, DRAWS, method="svd")
    wobble = np.sqrt(rng.chisquare(model.degrees, DRAWS) / model.degrees)
    spread = float(np.sqrt(model.residual_variance))
    means = model.effects + normal * spread / wobble[:, None]
    shares = np.bincount(means.argmin(1), minlength=len(names)) / DRAWS
    kept = [name for index, name in enumerate(names) if _may_be_best(index, model, normal / wobble[:, None], spread)]
    least = float(model.effects.min())
    return Optimum(
        indistinguishable=kept,
        best_probability=dict(zip(names, shares.tolist(), strict=True)),
        cost=dict(zip(names, np.exp(model.effects - least).tolist(), strict=True)),
    )


def may_be_fastest(optimum: Optimum, differs_p: float | None) -> list[str]:
    """Return the levels that cannot be told from the fastest: all, where the F test finds no difference.

    Without that protection (Fisher's) one in five studies of equal levels would single one out.
    """
    if differs_p is None or differs_p >= SIGNIFICANCE:
        return list(optimum.cost)
    return optimum.indistinguishable


def _may_be_best(index: int, model: LogModel, draws: Array, spread: float) -> bool:
    others = [other for other in range(len(model.levels)) if other != index]
    if not others:
        return True
    c = model.covariance
    errors = np.sqrt(np.array([c[index, index] + c[other, other] - 2 * c[index, other] for other in others]))
    largest = ((draws[:, [index]] - draws[:, others]) / errors).max(1)
    critical = float(np.quantile(largest, CONFIDENCE))
    return bool(((model.effects[index] - model.effects[others]) / (errors * spread) <= critical).all())


def label(level: Hashable) -> str:
    """Return a level's name; that of a number has the digits that tell it from every other."""
    if not isinstance(level, float):
        return str(level)
    return f"{level:.0f}" if level.is_integer() and level < 1e15 else repr(level)
