"""Geometric means and t intervals from log T = configuration + block, with pooled residual variance.

Timing errors are multiplicative, so all is done on logarithms. A block (a session's replicate)
shifts all its runs by one factor; its degree of freedom is counted. What an interrupted session leaves of a block
has no effect of its own: one run would be fitted exactly, and shift the means of all levels.

The tests compare these models with scipy and lmfit, and count in simulations how often their intervals hold the truth.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

CONFIDENCE = 0.95
SIGNIFICANCE = 0.05
ROUNDING = 1e-9
"""Log seconds by which computed times may differ that are equal."""


@dataclass(frozen=True)
class Interval:
    """A geometric mean (or ratio) with its 95% interval; the bounds are None where the data give none."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class LogModel:
    """The fitted additive model of log seconds."""

    levels: list[Hashable]
    effects: NDArray[np.float64]
    """Mean log seconds of each level, at the average block."""
    covariance: NDArray[np.float64]
    """Covariance of ``effects`` over the residual variance."""
    block_effects: NDArray[np.float64]
    """Log effect of the block of each observation; they average to zero over the blocks."""
    coded_blocks: NDArray[np.float64]
    """Columns of the blocks in the design, a row for each observation; none where the model has no blocks."""
    residual_variance: float | None
    degrees: int
    """Residual degrees of freedom."""
    covariate_p: float | None = None
    """p of the t test that the covariate moves nothing; None without one, or without a degree of freedom."""

    @property
    def block_columns(self) -> int:
        """Degrees of freedom that the blocks took."""
        return int(self.coded_blocks.shape[1])

    def mean(self, level: Hashable) -> Interval:
        """Return the geometric mean of a level, in seconds."""
        weights = np.zeros(len(self.levels))
        weights[self.levels.index(level)] = 1
        return self._interval(weights)

    def ratio(self, level: Hashable, other: Hashable) -> Interval:
        """Return the geometric mean of ``level`` over that of ``other``, compared within blocks."""
        weights = np.zeros(len(self.levels))
        weights[self.levels.index(level)] += 1
        weights[self.levels.index(other)] -= 1
        return self._interval(weights)

    def _interval(self, weights: NDArray[np.float64]) -> Interval:
        estimate = float(weights @ self.effects)
        if self.residual_variance is None:
            return Interval(float(np.exp(estimate)), None, None)
        error = float(np.sqrt(self.residual_variance * (weights @ self.covariance @ weights)))
        reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, self.degrees)) * error
        return Interval(float(np.exp(estimate)), float(np.exp(estimate - reach)), float(np.exp(estimate + reach)))


def fit_log_model(
    seconds: Sequence[float],
    levels: Sequence[Hashable],
    blocks: Sequence[Hashable],
    covariate: Sequence[float] | None = None,
    centred: bool = True,
) -> LogModel:
    """Return the least squares of log seconds on levels and blocks.

    A ``covariate`` (positive; the yardstick's seconds) enters by its logarithm with a slope of its own: how far
    the machine's change moved these times is estimated, and not assumed (analysis of covariance). The levels'
    effects are those at its mean, or at one where it is not ``centred``.

    ``seconds``, ``levels`` and ``blocks`` hold one entry for each run. Block effects average to zero within
    each set of blocks that share levels. Between sets that share none (a level that was added later and
    measured by itself) nothing tells the machine's change from the level's: it counts as the level's, and
    :func:`separate_sets` lets a caller warn. A block with a single level, or with fewer than half of them, is ignored.

    No mean lies outside the times of its own runs: where one would, because its level is missing in some blocks, the
    model has no blocks, and each mean is that of the runs.
    """
    names = list(dict.fromkeys(levels))
    dummies = np.array([[float(level == name) for name in names] for level in levels])
    slope = _covariate_column(covariate, len(seconds), centred)
    logs = np.log(np.asarray(seconds, float))
    model, outside = _least_squares(logs, names, dummies, _block_columns(levels, blocks), slope)
    return _least_squares(logs, names, dummies, np.empty((len(logs), 0)), slope)[0] if outside else model


def _least_squares(
    logs: NDArray[np.float64],
    names: list[Hashable],
    dummies: NDArray[np.float64],
    coded: NDArray[np.float64],
    slope: NDArray[np.float64],
) -> tuple[LogModel, bool]:
    """Return the model, and whether one of its means lies outside the times of its own runs.

    ``logs`` (n,) are log seconds; ``dummies``, ``coded`` and ``slope`` are the columns (n, k) of levels, of blocks, and
    of a covariate if there is one.
    """
    design = np.hstack([dummies, coded, slope])
    inverse: NDArray[np.float64] = np.linalg.pinv(design.T @ design).astype(np.float64)
    solution = inverse @ design.T @ logs
    degrees = len(logs) - int(np.linalg.matrix_rank(design))
    residual = float(((logs - design @ solution) ** 2).sum())
    block_effects = coded @ solution[len(names) : len(names) + coded.shape[1]]
    model = LogModel(
        levels=names,
        effects=solution[: len(names)],
        covariance=inverse[: len(names), : len(names)],
        block_effects=block_effects,
        coded_blocks=coded,
        residual_variance=residual / degrees if degrees > 0 else None,
        degrees=degrees,
        covariate_p=_slope_p(float(solution[-1]), float(inverse[-1, -1]), residual, degrees) if slope.size else None,
    )
    return model, _outside(logs - slope @ solution[len(names) + coded.shape[1] :], dummies, block_effects)


def _outside(logs: NDArray[np.float64], dummies: NDArray[np.float64], block_effects: NDArray[np.float64]) -> bool:
    """Return whether a level's mean at the average block, geometric or arithmetic, lies outside its runs' times."""
    for own, at_average in ((logs[rows], (logs - block_effects)[rows]) for rows in dummies.T.astype(bool)):
        geometric, arithmetic = at_average.mean(), np.log(np.exp(at_average).mean())
        if geometric < own.min() - ROUNDING or arithmetic > own.max() + ROUNDING:
            return True
    return False


def _slope_p(slope: float, unscaled: float, residual: float, degrees: int) -> float | None:
    if degrees <= 0 or residual <= 0 or unscaled <= 0:
        return None
    return float(2 * stats.t.sf(abs(slope) / np.sqrt(residual / degrees * unscaled), degrees))


def _covariate_column(covariate: Sequence[float] | None, count: int, centred: bool = True) -> NDArray[np.float64]:
    """Return the covariate's logarithms as a column (n, 1), or (n, 0) without a covariate."""
    if covariate is None:
        return np.empty((count, 0))
    logs: NDArray[np.float64] = np.log(np.asarray(covariate, np.float64))
    column: NDArray[np.float64] = (logs - logs.mean() if centred else logs)[:, None]
    return column


def separate_sets(
    levels: Sequence[Hashable], blocks: Sequence[Hashable]
) -> list[tuple[list[Hashable], list[Hashable]]]:
    """Return levels and blocks in connected sets: a block connects its levels, and a level its blocks."""
    sets: list[tuple[list[Hashable], list[Hashable]]] = []
    for level, block in dict.fromkeys(zip(levels, blocks, strict=True)):
        touched = [item for item in sets if level in item[0] or block in item[1]]
        merged = (
            list(dict.fromkeys([*(name for item in touched for name in item[0]), level])),
            list(dict.fromkeys([*(name for item in touched for name in item[1]), block])),
        )
        sets = [item for item in sets if item not in touched] + [merged]
    return sets


def _block_columns(levels: Sequence[Hashable], blocks: Sequence[Hashable]) -> NDArray[np.float64]:
    """Return the sum-to-zero coding (n, k) of the whole blocks, within each set that shares levels.

    The row of a run outside whole blocks is zero: it counts as a run at the average block.
    """
    pairs = set(zip(levels, blocks, strict=True))
    held = Counter(block for _, block in pairs)
    least = max(2.0, len(set(levels)) / 2)
    kept = [(level, block) for level, block in zip(levels, blocks, strict=True) if held[block] >= least]
    coded = [members for _, members in separate_sets([level for level, _ in kept], [block for _, block in kept])]
    columns = np.zeros((len(blocks), sum(len(members) - 1 for members in coded)))
    first = 0
    for members in coded:
        last = first + len(members) - 1
        for row, block in enumerate(blocks):
            if block == members[-1]:
                columns[row, first:last] = -1
            elif block in members:
                columns[row, first + members.index(block)] = 1
        first = last
    return columns


def level_test(
    seconds: Sequence[float],
    levels: Sequence[Hashable],
    blocks: Sequence[Hashable],
    covariate: Sequence[float] | None = None,
) -> float | None:
    """Return p of the F test that no level differs from another, blocks and the covariate accounted for.

    It is None without replicates.
    """
    full = fit_log_model(seconds, levels, blocks, covariate)
    if not full.residual_variance or len(full.levels) < 2:
        return None
    columns = [np.ones((len(seconds), 1)), full.coded_blocks, _covariate_column(covariate, len(seconds))]
    bare = np.hstack(columns)
    logs = np.log(np.asarray(seconds, float))
    residual = float(((logs - bare @ np.linalg.lstsq(bare, logs, rcond=None)[0]) ** 2).sum())
    extra = len(seconds) - int(np.linalg.matrix_rank(bare)) - full.degrees
    if not extra:  # the covariate tells the levels apart by itself
        return None
    between = (residual - full.residual_variance * full.degrees) / extra
    return float(stats.f.sf(between / full.residual_variance, extra, full.degrees))
