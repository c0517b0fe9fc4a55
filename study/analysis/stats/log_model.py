"""Geometric means and their intervals from log T = level + start + block + noise, with random starts and blocks.

Timing errors are multiplicative, so all is done on logarithms. A start of the pipeline shifts all its runs by one
factor, and a block of runs within it by another. Both are random, so that a level's interval covers the states of the
machine that the study met, while ratios are compared within blocks, and a block of one run says little.

Degrees of freedom are Satterthwaite's (1946). The tests compare the model with the analysis of variance of whole
blocks, and ``benchmarks.coverage`` counts how often the intervals hold the truth.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from study.analysis.stats.mixed_model import Array, Groups, MixedFit, fit_mixed, places

CONFIDENCE = 0.95
SIGNIFICANCE = 0.05
DIFFERENCE = 0.01
"""p below which levels are said to differ, or times to drift: runs that were slowed and not found make both tests
liberal, and with 1% they are wrong in at most about 5% of the studies of ``benchmarks.coverage``."""
ALIKE = 1e-3
"""Share of the mean variance below which equal times, and no small noise, are what a level shows."""
UNEVEN = 0.10
"""p below which levels have a noise of their own: a missed difference costs more than a few degrees of freedom."""


@dataclass(frozen=True)
class Interval:
    """A geometric mean (or ratio) with its 95% interval; the bounds are None where the data give none."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class LogModel:
    """The fitted model of log seconds."""

    levels: list[Any]
    places: NDArray[np.int64]
    """The place (n,) of each run's level among ``levels``."""
    fit: MixedFit
    """The levels are the first coefficients."""
    noises: Array
    """Variance (m,) of the noise of each level; all are equal unless their spreads are shown to differ."""

    @property
    def even(self) -> "LogModel":
        """The same model with one noise for all levels: a law cannot weigh its points by spreads of a few runs."""
        return replace(self, noises=np.full(len(self.levels), self.fit.variances["noise"]))

    @cached_property
    def counts(self) -> Array:
        """Runs (m,) of each level."""
        return np.bincount(self.places).astype(float)

    @property
    def effects(self) -> Array:
        """Mean log seconds (m,) of each level, at the average state of the machine."""
        effects: Array = self.fit.beta[: len(self.levels)]
        return effects

    @property
    def spare(self) -> int:
        """Runs less the fixed coefficients: without one there is no interval."""
        return self.fit.spare

    @property
    def uneven(self) -> bool:
        """Whether each level has a noise of its own."""
        return bool(np.ptp(self.noises) > 0)

    @cached_property
    def covariance(self) -> Array:
        """Covariance (m, m) of ``effects``."""
        count = len(self.levels)
        shared: Array = self.fit.covariance[:count, :count]
        if not self.uneven:
            return _without_negative(shared)
        common = np.diag(self.fit.variances["noise"] / self.counts)
        return _without_negative(shared - common) + np.diag(self.noises / self.counts)

    def weights(self, level: Hashable, other: Hashable | None = None) -> Array:
        """Return the weights (m,) of a level's mean, or of its difference from another's."""
        weights = np.zeros(len(self.levels))
        weights[self.levels.index(level)] += 1
        if other is not None:
            weights[self.levels.index(other)] -= 1
        return weights

    def mean(self, level: Hashable) -> Interval:
        """Return the geometric mean of a level, in seconds: its typical time over the states of the machine."""
        return self.interval(self.weights(level))

    def ratio(self, level: Hashable, other: Hashable) -> Interval:
        """Return the geometric mean of ``level`` over that of ``other``, compared within blocks."""
        return self.interval(self.weights(level, other))

    def error(self, weights: Array) -> float:
        """Return the standard error of a weighted sum of the effects, in log seconds."""
        return math.sqrt(max(float(weights @ self.covariance @ weights), 0.0))

    def degrees(self, weights: Array) -> float:
        """Return Satterthwaite's degrees of freedom of the variance of a weighted sum of the effects."""
        return float(self.degrees_of(weights[None])[0])

    def degrees_of(self, rows: Array) -> Array:
        """Return Satterthwaite's degrees of freedom (r,) for each row of weights (r, m)."""
        squares = [((rows @ matrix) * rows).sum(1) for matrix in (self.covariance, *self._slopes)]
        return self._degrees(squares[0], np.array(squares[1:]), rows**4 @ self._own_scatter)

    @cached_property
    def pair_variances(self) -> Array:
        """Variance (m, m) of the difference of each two levels."""
        return np.maximum(_of_pairs(self.covariance), 0)

    @property
    def _slopes(self) -> Array:
        """Derivative (variances, m, m) of the covariance on each variance that all levels share."""
        count = len(self.levels)
        return self.fit.slopes[int(self.uneven) :, :count, :count]

    @property
    def _own_scatter(self) -> Array:
        """Variance (m,) of what a level's own noise adds to the variance of its mean; 0 without one."""
        runs = self.spare / self.counts.sum() * self.counts  # the degrees that are left to each level
        found: Array = 2 * (self.noises / self.counts) ** 2 / np.maximum(runs, 1)
        return found if self.uneven else 0 * found

    def _degrees(self, variances: Array, slopes: Array, own: Array) -> Array:
        """Return the degrees (r,) of ``variances`` (r,) with these ``slopes`` (variances, r) and own scatter (r,)."""
        spread = self.fit.spread[int(self.uneven) :, int(self.uneven) :]
        scatter = own + (slopes * (spread @ slopes)).sum(0) if len(slopes) else own
        whole = np.full(len(variances), float(max(self.spare, 0)))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            few = np.clip(2 * np.maximum(variances, 0) ** 2 / scatter, 1.0, self.spare)
        found: Array = np.where(scatter > 0, few, whole)
        return found

    def interval(self, weights: Array, critical: float | None = None) -> Interval:
        """Return the exponential of a weighted sum of the effects; ``critical`` replaces the quantile of t."""
        estimate = float(weights @ self.effects)
        if self.spare <= 0:
            return Interval(float(np.exp(estimate)), None, None)
        quantile = special.stdtrit(self.degrees(weights), (1 + CONFIDENCE) / 2) if critical is None else critical
        reach = float(quantile) * self.error(weights)
        with np.errstate(over="ignore"):
            return Interval(float(np.exp(estimate)), float(np.exp(estimate - reach)), float(np.exp(estimate + reach)))

    @cached_property
    def pair_degrees(self) -> float:
        """The median, over all pairs of levels, of the degrees of freedom of their difference."""
        if len(self.levels) < 2:
            return float(max(self.spare, 0))
        below = np.tril_indices(len(self.levels), -1)
        slopes = np.array([_of_pairs(matrix)[below] for matrix in self._slopes])
        own = self._own_scatter[below[0]] + self._own_scatter[below[1]]
        return float(np.median(self._degrees(self.pair_variances[below], slopes, own)))

    @property
    def covariate_p(self) -> float | None:
        """p of the t test that the covariate moves nothing; None without one, or without a degree of freedom."""
        last = np.zeros(len(self.fit.beta))
        last[-1] = 1
        variance, scatter = float(self.fit.covariance[-1, -1]), self.fit.scatter(last)
        if len(self.fit.beta) == len(self.levels) or self.spare <= 0 or variance <= 0:
            return None
        degrees = float(np.clip(2 * variance**2 / scatter, 1.0, self.spare)) if scatter > 0 else self.spare
        return float(2 * special.stdtr(degrees, -abs(self.fit.beta[-1]) / np.sqrt(variance)))


def fit_log_model(
    seconds: Sequence[float],
    levels: Sequence[Hashable],
    blocks: Sequence[Hashable],
    starts: Sequence[Hashable] | None = None,
    covariate: Sequence[float] | None = None,
    centred: bool = True,
) -> LogModel:
    """Return the model of log seconds by level, with random blocks, and random starts where they are given.

    ``seconds``, ``levels``, ``blocks`` and ``starts`` hold one entry for each run; a block belongs to one start.
    Where the spread of the levels is shown to differ, each level has a noise of its own (Welch 1938).

    A ``covariate`` (positive; the reference workload's seconds) enters by its logarithm with a slope of its own: how
    far the machine's change moved these times is estimated, and not assumed (analysis of covariance). The levels'
    effects are those at its mean, or at one where it is not ``centred``.
    """
    level_places = places(levels)
    dummies = np.eye(int(level_places.max()) + 1)[level_places]
    fixed = dummies if covariate is None else np.column_stack([dummies, _slope(covariate, centred)])
    starts = [0] * len(seconds) if starts is None else starts
    nested = list(zip(starts, blocks, strict=True))
    fit = fit_mixed(
        np.log(np.asarray(seconds, float)), fixed, [Groups("block", places(nested)), Groups("start", places(starts))]
    )
    return LogModel(list(dict.fromkeys(levels)), level_places, fit, _noises(fit, level_places))


def _of_pairs(matrix: Array) -> Array:
    """Return the quadratic form (m, m) of the difference of each two of the axes of ``matrix`` (m, m)."""
    own = np.diag(matrix)
    found: Array = own[:, None] + own - matrix - matrix.T
    return found


def _without_negative(covariance: Array) -> Array:
    """Return a covariance (m, m) without the negative eigenvalues that Kenward and Roger's correction can leave."""
    values, vectors = np.linalg.eigh(covariance)
    found: Array = (vectors * np.maximum(values, 0)) @ vectors.T if values.min() < 0 else covariance
    return found


def _slope(covariate: Sequence[float], centred: bool) -> Array:
    logs: Array = np.log(np.asarray(covariate, float))
    return logs - logs.mean() if centred else logs


def _noises(fit: MixedFit, level_places: NDArray[np.int64]) -> Array:
    """Return the variance (m,) of each level's noise: the common one unless the sizes of the residuals differ.

    The test is an analysis of variance of the residuals' sizes (Levene 1960).
    """
    counts = np.bincount(level_places)
    noise = fit.variances["noise"]
    common: Array = np.full(len(counts), noise)
    if len(counts) < 2 or counts.min() < 3 or noise <= 0 or fit.spare < len(counts):
        return common
    sizes = [np.abs(fit.residuals[level_places == level]) for level in range(len(counts))]
    if np.ptp(np.concatenate(sizes)) == 0 or not stats.f_oneway(*sizes).pvalue < UNEVEN:
        return common
    squares = np.array([float((size**2).mean()) for size in sizes])
    if squares.min() < ALIKE * squares.mean():  # a level whose runs took equal times has not shown that it has no noise
        return common
    # Residuals are smaller than the noise, because the coefficients follow it: all by one factor.
    return squares * noise * float(counts.sum()) / float((squares * counts).sum())


def level_test(model: LogModel, among: Sequence[Hashable] | None = None) -> float | None:
    """Return p of the F test that no level ``among`` some (None: all) differs from another; None without replicates.

    Where levels have noises of their own it is the larger p of two tests, with these and with one noise for all.
    """
    chosen = [level for level in model.levels if among is None or level in among]
    found = [_level_test(one, chosen) for one in ([model, model.even] if model.uneven else [model])]
    return max((p for p in found if p is not None), default=None)


def _level_test(model: LogModel, levels: Sequence[Hashable]) -> float | None:
    """Return p of one test; its degrees of freedom are Fai and Cornelius' (1996)."""
    count = len(levels)
    if count < 2 or model.spare <= 0 or model.fit.variances["noise"] <= 0:
        return None
    whole = np.eye(len(model.levels))[[model.levels.index(level) for level in levels]]
    differences = whole[0] - whole[1:]
    variances, directions = np.linalg.eigh(differences @ model.covariance @ differences.T)
    if variances.min() <= 0:
        return None
    rows = directions.T @ differences
    squares = (rows @ model.effects) ** 2 / variances
    degrees = model.degrees_of(rows)
    expected = float((degrees / (degrees - 2)).sum()) if degrees.min() > 2 else 0.0
    spare = 2 * expected / (expected - count + 1) if expected > count - 1 else float(degrees.min())
    return float(special.fdtrc(count - 1, spare, squares.mean()))
