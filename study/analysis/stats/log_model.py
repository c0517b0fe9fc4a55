"""Geometric means and their intervals from log T = level + start + block + noise, with random
starts and blocks.

Timing errors are multiplicative, so all is done on logarithms. A start of the pipeline shifts all
its runs by one factor, and a block of runs within it by another. Both are random, so that a level's
interval covers the states of the machine that the study met, while ratios are compared within
blocks, and a block of one run says little.

Degrees of freedom are Satterthwaite's (1946). The model is fitted without the outliers, which come
back in the two sensitivity bounds of :mod:`.noise`, where what a start shifts by itself stands,
too. The tests compare the model with the analysis of variance of whole blocks, and
``benchmarks.coverage`` counts how often the intervals hold the truth.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from study.analysis.stats.estimate import Estimate
from study.analysis.stats.mixed_model import Array, Codes, Flags, Groups, MixedFit, codes, fit_mixed
from study.analysis.stats.noise import (
    FEWEST,
    ROUNDING,
    Noises,
    SensitivityBounds,
    StartEffects,
    Within,
    connected,
    half_step,
    noises_of,
    sensitivity_bounds_of,
    start_effects_of,
    within_blocks,
)

CONFIDENCE = 0.95
SIGNIFICANCE = 0.05
DIFFERENCE = 0.01
"""p below which levels are said to differ by a law: runs that were slowed and not found make both
tests liberal, and with 1% they are wrong in at most about 5% of the studies of
``benchmarks.coverage``."""
ENOUGH = 0.5
"""Share of the residual degrees of freedom that must be left within blocks, for the noise there to
be that of comparisons."""

Critical = Callable[[float], float]
"""The errors that an interval reaches, of the degrees of freedom of its variance."""


@dataclass(frozen=True)
class LogModel:
    """The fitted model of log seconds."""

    levels: list[Any]
    codes: Codes
    """The code (n,) of each run that is no outlier: the index of its level among ``levels``."""
    fit: MixedFit
    """Of the runs that are no outliers. The levels are the coefficients."""
    noise: Noises
    within: Within
    """What runs differ by within their blocks."""
    sensitivity_bounds: SensitivityBounds
    starts: StartEffects | None
    """None where all runs are of one start, or a start cannot be told from its block."""
    met: Flags
    """Whether starts connect two levels (m, m): what shifts a start cannot be told from levels that
    no other met."""
    blocks: Codes
    """The code (n,) of the block of each such run."""
    start: Codes
    """The code (n,) of its start."""
    of_units: bool = False
    """Whether ``within`` is what blocks or starts differ by in one comparison."""

    @property
    def even(self) -> "LogModel":
        """The same model with one noise for all levels: a law cannot weigh its points by spreads of
        a few runs."""
        common = np.full(len(self.levels), self.fit.variances["noise"])
        return replace(self, noise=Noises(common, np.zeros(len(common), bool)))

    @cached_property
    def counts(self) -> Array:
        """Runs (m,) of each level."""
        return np.bincount(self.codes).astype(float)

    @property
    def effects(self) -> Array:
        """Mean log seconds (m,) of each level, at the average state of the machine."""
        return self.fit.beta

    @property
    def residual_df(self) -> int:
        """Residual degrees of freedom, runs less fixed coefficients: without one there is no
        interval."""
        return self.fit.residual_df

    @property
    def uneven(self) -> bool:
        """Whether a level has a noise of its own."""
        return bool(self.noise.own.any())

    @cached_property
    def covariance(self) -> Array:
        """Covariance (m, m) of ``effects``."""
        if not self.uneven:
            return _without_negative(self.fit.covariance)
        common = np.diag(self.fit.variances["noise"] / self.counts)
        own = np.diag(self.noise.variances / self.counts)
        return _without_negative(self.fit.covariance - common) + own

    def weights(self, level: Hashable, other: Hashable | None = None) -> Array:
        """Return the weights (m,) of a level's mean, or of its difference from another's."""
        weights = np.zeros(len(self.levels))
        weights[self.levels.index(level)] += 1
        if other is not None:
            weights[self.levels.index(other)] -= 1
        return weights

    def mean(self, level: Hashable, critical: Critical | None = None) -> Estimate:
        """Return the geometric mean of a level, in seconds: its typical time over the states of the
        machine. ``critical`` is that of :meth:`interval`."""
        return self.interval(self.weights(level), critical)

    def ratio(self, level: Hashable, other: Hashable, critical: Critical | None = None) -> Estimate:
        """Return the geometric mean of ``level`` over that of ``other``, compared within blocks."""
        return self.interval(self.weights(level, other), critical)

    def weights_of(self, pairs: Sequence[tuple[Hashable, Hashable]]) -> Array:
        """Return the weights (m,) of the mean difference of some pairs of levels."""
        each = [self.weights(level, other) for level, other in pairs]
        return np.asarray(np.mean(each, axis=0))

    def with_units(self, weights: Array) -> "LogModel":
        """Return the model with the start, or else the block, as the unit of a comparison of many
        levels with ``weights`` (m,): where one shifts their mean by itself, its runs say the same
        thing again and again.

        It does where the mean square of the units exceeds that of the rest of the residuals (F > 1:
        not that it is shown, for then a shift would be missed that matters). Two units tell
        nothing.
        """
        if self.starts and self.starts.are_units:
            return self
        own, left = weights[self.codes], self.within
        fixed = 2 if self.starts and self.starts.count < FEWEST else 1  # means that are taken out
        for unit in (self.start, self.blocks):
            sizes = np.bincount(unit, own**2)
            # by regression within each unit: one that lacks a few runs tells, too
            known = sizes > sizes.max() / 2
            each = np.bincount(unit, own * left.residuals)[known] / np.sqrt(sizes[known])
            among = Within(each, float(len(each) - fixed))
            rest, others = (left.residuals**2).sum() - (each**2).sum(), left.degrees - among.degrees
            if among.degrees >= FEWEST - 1 and among.variance * others > rest:
                return replace(self.even, within=among, of_units=True)
        return self

    def variances_of(self, rows: Array) -> tuple[Array, Array]:
        """Return the variance (r,) of each row of weights (r, m) times the effects, and its degrees
        of freedom (r,).

        Where three starts or more shift levels by themselves, they are the unit. Else a row that
        compares levels (its weights add up to nothing) has the variance of the runs within blocks;
        with two starts, within them, too.
        """
        variances, degrees = ((rows @ self.covariance) * rows).sum(1), self.degrees_of(rows)
        if self.starts and self.starts.are_units:
            own, few = self.starts.spread_of(rows)
            known = np.isfinite(own)
            return np.where(known, own, variances), np.where(known, few, degrees)
        if self.uneven or not (self.of_units or self._tells_within):
            return variances, degrees
        compares = np.abs(rows.sum(1)) < ROUNDING
        inside = variances * self.within.variance / self.fit.variances["noise"]
        return np.where(compares, inside, variances), np.where(
            compares, self.within.degrees, degrees
        )

    @property
    def _tells_within(self) -> bool:
        """Whether enough runs met others in their blocks to tell the noise that comparisons
        have."""
        return self.within.degrees >= ENOUGH * self.residual_df and self.fit.variances["noise"] > 0

    @property
    def spreads(self) -> dict[str, float]:
        """Standard deviations of log seconds: ``noise`` between runs of one block, the mean over
        the levels, and those between blocks and starts that can be told from it."""
        inside = (
            self.within.variance
            if self._tells_within and not self.uneven
            else self.noise.variances.mean()
        )
        return {
            name: math.sqrt(one) for name, one in (self.fit.variances | {"noise": inside}).items()
        }

    def end(self, rows: Array, side: int) -> tuple[Array, Array, Array]:
        """Return the lowest (``side`` -1) or the highest estimate (r,) of weighted sums (r, m), its
        error and degrees.

        The lowest takes the fast sensitivity bound of each level with a positive weight, and the
        slow one of the others.
        """
        variances, degrees = self.variances_of(rows)
        upper = np.sign(rows) == side
        slow, fast = self.sensitivity_bounds.slow, self.sensitivity_bounds.fast
        estimates = rows @ self.effects + (rows * np.where(upper, slow.offsets, fast.offsets)).sum(
            1
        )
        # what a level is to those that no start holds beside it, nothing tells
        if not self.met.all():
            apart = (np.abs(rows @ self.met) > ROUNDING).any(1) & (np.abs(rows.sum(1)) < ROUNDING)
            variances = np.where(apart, np.inf, variances)
        own = rows**2 * np.where(upper, slow.variances, fast.variances)
        if not own.any():
            return estimates, np.sqrt(np.maximum(variances, 0)), degrees
        # The model's part is that of the other levels, and of what all share (Satterthwaite 1946).
        common = np.maximum(
            variances - np.where(own > 0, rows**2 * self.noise.variances / self.counts, 0).sum(1), 0
        )
        scatter = (own**2 / np.maximum(np.where(upper, slow.degrees, fast.degrees), 1)).sum(
            1
        ) + common**2 / degrees
        whole = common + own.sum(1)
        with np.errstate(invalid="ignore", divide="ignore"):
            # NaN where nothing tells the sum
            joined = np.fmax(np.where(scatter > 0, whole**2 / scatter, degrees), 1)
        return estimates, np.sqrt(whole), np.where(own.any(1), joined, degrees)

    def interval(self, weights: Array, critical: Critical | None = None) -> Estimate:
        """Return the exponential of a weighted sum of the effects, with 95% bounds by the two
        sensitivity bounds.

        ``critical`` (of the degrees of freedom) replaces the quantile of t.
        """
        middle = float(weights @ (self.effects + self.sensitivity_bounds.middle))
        value = float(np.exp(middle))
        if self.residual_df <= 0:
            return Estimate(value=value)
        bounds = []
        for side in (-1, 1):
            estimate, error, degrees = (float(part[0]) for part in self.end(weights[None], side))
            bounds.append(estimate + side * (critical or together(1))(degrees) * error)
        if not np.isfinite(bounds).all():
            return Estimate(value=value)
        with np.errstate(over="ignore"):
            low, high = np.exp(min(bounds[0], middle)), np.exp(max(bounds[1], middle))
        return Estimate(value=value, low=float(low), high=float(high))

    def slower(self, place: int, others: Sequence[int]) -> tuple[Array, Array, Array]:
        """Return by how much the level at a place is slower than ``others`` (k) at least, with
        errors and degrees.

        Its fast sensitivity bound stands against the slow ones of the others.
        """
        whole = np.eye(len(self.levels))
        return self.end(whole[place] - whole[list(others)], -1)

    def degrees_of(self, rows: Array) -> Array:
        """Return Satterthwaite's degrees of freedom (r,) for each row of weights (r, m)."""
        # the variances that all levels share
        shared = slice(int(self.uneven), None)
        covariances = (self.covariance, *self.fit.slopes[shared])
        variances, *slopes = (((rows @ matrix) * rows).sum(1) for matrix in covariances)
        scatter = np.zeros(len(rows))
        if self.uneven:  # what the noises of levels add; else the model's spread holds it
            parts, own = rows**2 * self.noise.variances / self.counts, self.noise.own
            # those that are left to each level
            degrees = np.maximum(self.residual_df / self.counts.sum() * self.counts, 1)
            others = parts[:, ~own].sum(1) ** 2 / degrees[~own].sum()
            scatter = 2 * ((parts[:, own] ** 2 / degrees[own]).sum(1) + others)
        if slopes:
            scatter = scatter + (
                np.array(slopes) * (self.fit.spread[shared, shared] @ np.array(slopes))
            ).sum(0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            few = np.clip(2 * np.maximum(variances, 0) ** 2 / scatter, 1.0, self.residual_df)
        return np.where(scatter > 0, few, float(max(self.residual_df, 0)))

    @cached_property
    def pair_degrees(self) -> float:
        """The median, over all pairs of levels, of the degrees of freedom of their difference."""
        one, other = np.tril_indices(len(self.levels), -1)
        whole = np.eye(len(self.levels))
        if not len(one):
            return float(max(self.residual_df, 0))
        return float(np.median(self.degrees_of(whole[one] - whole[other])))


def fit_log_model(
    seconds: Sequence[float],
    levels: Sequence[Hashable],
    blocks: Sequence[Hashable],
    starts: Sequence[Hashable] | None = None,
    outliers: Sequence[int] | None = None,
) -> LogModel:
    """Return the model of log seconds by level, with random blocks, and random starts where they
    are given.

    ``seconds``, ``levels``, ``blocks`` and ``starts`` hold one entry for each run; a block belongs
    to one start. Where the spread of the levels is shown to differ, each level has a noise of its
    own (Welch 1938).

    ``outliers`` has 1 for a slow outlier, -1 for a fast one, and 0 for the other runs.
    """
    logs, level = np.log(np.asarray(seconds, float)), codes(levels)
    sides = np.zeros(len(seconds)) if outliers is None else np.asarray(outliers, float)
    # A level of which no other run is left keeps its outliers.
    ends = np.where(np.bincount(level, sides == 0)[level] > 0, sides, 0).astype(np.int64)
    start, kept = codes([0] * len(seconds) if starts is None else starts), ends == 0
    block = codes(list(zip(start.tolist(), blocks, strict=True)))
    kept_logs, kept_level = logs[kept], level[kept]
    kept_block, kept_start = block[kept], start[kept]
    random = [
        Groups(name, codes(one.tolist()))
        for name, one in (("block", kept_block), ("start", kept_start))
    ]
    fit = fit_mixed(kept_logs, np.eye(level.max() + 1)[kept_level], random)
    noise_variance = fit.variances["noise"]
    random_effects = np.zeros(block.max() + 1)
    random_effects[kept_block] = fit.random_effects
    without = logs - random_effects[block]
    within = within_blocks(kept_logs, kept_level, kept_block)
    noise = noises_of(kept_logs, kept_level, kept_block, noise_variance, within)
    bounds = sensitivity_bounds_of(without - fit.beta[level], level, ends, noise.variances)
    met = start_effects_of(without[kept], kept_logs, kept_level, kept_block, kept_start, within)
    if met and met.count < FEWEST:
        within = met.within
    sets = connected(kept_level, kept_start)
    beside = (sets[:, None] == sets) | ("start" in fit.variances)
    rounded = bounds.rounded(half_step(seconds, math.sqrt(noise_variance)), level)
    names = list(dict.fromkeys(levels))
    return LogModel(
        names, kept_level, fit, noise, within, rounded, met, beside, kept_block, kept_start
    )


def _without_negative(covariance: Array) -> Array:
    """Return a covariance (m, m) without the negative eigenvalues that Kenward and Roger's
    correction can leave."""
    values, vectors = np.linalg.eigh(covariance)
    if values.min() < 0:
        covariance = (vectors * np.maximum(values, 0)) @ vectors.T
    return covariance


def together(tests: int) -> Critical:
    """Return the quantile of t with which so many intervals hold at once (Bonferroni)."""
    return lambda degrees: float(special.stdtrit(degrees, 1 - (1 - CONFIDENCE) / 2 / tests))


def one_sided(tests: int) -> Critical:
    """Return the quantile of t with which one bound of so many intervals holds for all at once
    (Bonferroni)."""
    return lambda degrees: float(special.stdtrit(degrees, 1 - (1 - CONFIDENCE) / tests))
