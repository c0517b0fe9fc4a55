"""The levels that may be the fastest, and the cost of choosing another.

A level leaves the set where two tests at 5% agree. Hsu's comparison with the best (1984): some other level is faster by
more than Dunnett's one-sided critical value, the fast reading of the one against the slow reading of the other. And the
F test finds a difference among the level and all with smaller means: a level that is far slower than all would
otherwise have differences called that equal levels show by chance (a step-down F, as Einot and Gabriel's of 1975).
"""

from collections.abc import Hashable, Sequence
from functools import cache
from typing import TypeVar

import numpy as np
from pydantic import Field

from study.analysis.stats.dunnett import critical
from study.analysis.stats.gate import ROUNDING
from study.analysis.stats.level_test import level_test
from study.analysis.stats.log_model import SIGNIFICANCE, LogModel
from study.analysis.stats.mixed_model import Array
from study.base.strict import Strict

DEGREES = np.array([1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 30, 60, 200, 1e4])
"""Degrees of freedom between which critical values are interpolated, in their reciprocals."""
Level = TypeVar("Level", bound=Hashable)


class Optimum(Strict):
    """The levels that cannot be told from the fastest."""

    indistinguishable: list[str] = Field(description="Levels that hold the truly fastest one with 95% probability.")
    cost: dict[str, float] = Field(description="Time of each level over the smallest mean.")


def optimum_of(model: LogModel, among: Sequence[Hashable] | None = None) -> Optimum | None:
    """Return the optimum among some levels of a fitted model (None: all); None without replicates or without noise."""
    levels = [level for level in model.levels if among is None or level in among]
    if not (has_noise(model) or model.rounded) or model.spare <= 0 or not levels:
        return None
    names = [label(level) for level in levels]
    places = [model.levels.index(level) for level in levels]
    effects = (model.effects + model.readings.middle)[places]
    return Optimum(
        indistinguishable=[label(level) for level in may_be_fastest(model, levels)],
        cost=dict(zip(names, np.exp(effects - effects.min()).tolist(), strict=True)),
    )


def may_be_fastest(model: LogModel, levels: Sequence[Level]) -> list[Level]:
    """Return those of some ``levels`` that hold the truly fastest of them with 95% probability, in their order."""
    ranked = sorted(levels, key=lambda level: float(model.effects[model.levels.index(level)]))
    places = [model.levels.index(level) for level in ranked]
    left: list[Level] = []
    for rank in range(1, len(ranked)):
        differences, errors, degrees = model.slower(places[rank], places)
        told = np.arange(len(places)) != rank
        needed = criticals(len(places), degrees[told])
        if (differences[told] <= needed * errors[told]).all():
            continue
        tests = [level_test(model, ranked[: rank + 1])]
        if model.starts and model.starts.are_units:  # with few degrees a part of the levels must not tell by itself
            tests.append(level_test(model, ranked))
        if model.rounded or all(p is not None and p < SIGNIFICANCE for p in tests):
            left.append(ranked[rank])
    return [level for level in levels if level not in left]


def criticals(levels: int, degrees: Array) -> Array:
    """Return Dunnett's one-sided critical value for each number of degrees (k), between those of a grid."""
    found: Array = np.interp(1 / degrees, 1 / DEGREES[::-1], _grid(levels)[::-1])
    return found


@cache
def _grid(levels: int) -> Array:
    return np.array([critical(levels, float(one), two_sided=False) for one in DEGREES])


def has_noise(model: LogModel) -> bool:
    """Return whether there are replicates, and more than rounding between them."""
    return model.spare > 0 and model.fit.variances["noise"] > ROUNDING**2


def label(level: Hashable) -> str:
    """Return a level's name; that of a number has the digits that tell it from every other."""
    if not isinstance(level, float):
        return str(level)
    return f"{level:.0f}" if level.is_integer() and level < 1e15 else repr(level)
