"""Geometric means and t intervals from log T = configuration + block, with pooled residual variance.

Timing errors are multiplicative, so all is done on logarithms. A block (a session's replicate)
shifts all its runs by one factor; its degree of freedom is counted.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A geometric mean (or ratio) with its interval; the bounds are None where the data give none."""

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
    """Unscaled: times the residual variance it is the covariance of ``effects``."""
    block_effects: NDArray[np.float64]
    """Log effect of the block of each observation; they average to zero over the blocks."""
    residual_variance: float | None
    degrees: int
    """Residual degrees of freedom."""

    def mean(self, level: Hashable) -> Interval:
        """Geometric mean of a level."""
        weights = np.zeros(len(self.levels))
        weights[self.levels.index(level)] = 1
        return self._interval(weights)

    def ratio(self, level: Hashable, other: Hashable) -> Interval:
        """Geometric mean of ``level`` over that of ``other``, compared within blocks."""
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


def fit_log_model(seconds: Sequence[float], levels: Sequence[Hashable], blocks: Sequence[Hashable]) -> LogModel:
    """Least squares of log seconds on levels and blocks.

    ``seconds``, ``levels`` and ``blocks`` hold one entry for each run. Blocks that cannot be told from
    levels (each configuration once) leave no residual, and then no interval.
    """
    names = list(dict.fromkeys(levels))
    block_names = list(dict.fromkeys(blocks))
    count, columns = len(seconds), len(names) + len(block_names) - 1
    design = np.zeros((count, columns))
    for row, (level, block) in enumerate(zip(levels, blocks, strict=True)):
        design[row, names.index(level)] = 1
        design[row, len(names) :] = _contrast(block_names.index(block), len(block_names))
    logs = np.log(np.asarray(seconds, float))
    inverse: NDArray[np.float64] = np.linalg.pinv(design.T @ design).astype(np.float64)
    solution = inverse @ design.T @ logs
    degrees = count - int(np.linalg.matrix_rank(design))
    residual = float(((logs - design @ solution) ** 2).sum())
    return LogModel(
        levels=list(names),
        effects=solution[: len(names)],
        covariance=inverse[: len(names), : len(names)],
        block_effects=design[:, len(names) :] @ solution[len(names) :],
        residual_variance=residual / degrees if degrees > 0 else None,
        degrees=degrees,
    )


def _contrast(index: int, count: int) -> NDArray[np.float64]:
    """Sum-to-zero coding: the last block is minus all others."""
    row = np.zeros(count - 1)
    if index < count - 1:
        row[index] = 1
    else:
        row[:] = -1
    return row


def level_test(seconds: Sequence[float], levels: Sequence[Hashable], blocks: Sequence[Hashable]) -> float | None:
    """p of the F test that no level differs from another, blocks accounted for; None without replicates."""
    full = fit_log_model(seconds, levels, blocks)
    bare = fit_log_model(seconds, [0] * len(seconds), blocks)
    extra = bare.degrees - full.degrees
    if not full.residual_variance or not bare.residual_variance or extra <= 0:
        return None
    between = (bare.residual_variance * bare.degrees - full.residual_variance * full.degrees) / extra
    return float(stats.f.sf(between / full.residual_variance, extra, full.degrees))
