"""The noise of runs within their blocks: of all levels, and of a level that is noisier than the
others.

What a block shifts cancels here, whatever it is: the mixed model would take noise and blocks
together where blocks differ by less than their runs do, as on a machine that slows down within each
of them.

Beside it stand two sensitivity bounds of each level's mean: a fast one without the outliers that
are slow, and a slow one without those that are fast. Nobody knows whether an outlier was an
accident or a state that the setting meets now and then. So it counts against its own setting alone:
a level is slower than another only where its fast bound is slower than the other's slow bound. In
these two bounds outliers count, with the spread of their own level.

And a start may shift some levels and not others: the term of start and setting together. One start
cannot tell it. Two tell the means over these two starts. Three tell whether there is such a term at
all; where there is, the start is the unit, and each difference of levels has its own spread over
the starts.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from scipy import special
from scipy.sparse import coo_array, csgraph

from study.analysis.stats.mixed_model import Array, Codes, Flags, codes

OWN = 0.03
"""p below which a level has a noise of its own: a missed difference costs more than a few degrees
of freedom."""
OWN_RUNS = 3
"""Runs from which a level can show a noise of its own."""
MOST_OWN = 5
"""Levels that can have one; half of them at most."""
LEAST_DEGREES = 4
"""Degrees of freedom that the others must keep: from fewer a noise says little. Of two equal
settings with ten times the noise of two others, one is therefore called slower in 15% of studies of
three blocks. With two degrees and p below 0.1 it is 11%, and clean studies name the fastest of four
less often by 5 points."""
MANY_LEVELS = 400
DITHERED = 0.5
"""Standard deviation of the noise, in steps of the clock, from which rounding no longer biases a
mean."""
MINUTE = 60.0
"""Seconds of the step where all times are whole minutes."""


class Within(NamedTuple):
    """What runs differ by within their blocks, with levels and blocks both fixed."""

    residuals: Array
    """What is left of each run (n,), or unit."""
    degrees: float

    @property
    def variance(self) -> float:
        """Variance of a run; NaN where nothing tells it."""
        return float((self.residuals**2).sum() / self.degrees) if self.degrees > 0 else np.nan


class Noises(NamedTuple):
    """The noise of each level."""

    variances: Array
    """Variance (m,) of a run of each level."""
    own: Flags
    """Whether a level (m,) has a noise of its own; the others share one."""


def within_blocks(logs: Array, levels: Codes, blocks: Codes) -> Within:
    """Return what runs with log seconds (n,) differ by within ``blocks`` (n,), of their ``levels``
    (n,); columns beside the logs (n, k) have residuals of their own."""
    runs, most = np.bincount(blocks), levels.max() + 1
    x = np.column_stack([np.eye(most)[levels], logs])
    sums = np.zeros((len(runs), x.shape[1]))
    np.add.at(sums, blocks, x)
    x -= (sums / np.maximum(runs, 1)[:, None])[blocks]
    beta, _, rank, _ = np.linalg.lstsq(x[:, :most], x[:, most:], rcond=1e-10)
    left = (x[:, most:] - x[:, :most] @ beta).reshape(logs.shape)
    return Within(left, float(len(logs) - (runs > 0).sum() - rank))


def noises_of(logs: Array, levels: Codes, blocks: Codes, common: float, within: Within) -> Noises:
    """Return the noise of each level; it is ``common`` unless a level is shown to be noisier than
    the others. ``within`` is what all runs differ by within their blocks.

    The noisiest is compared with the others by an F test (Cochran 1941, of residuals from blocks),
    then the next one with those that are left. All are noisier up to the last that this shows, so
    that two cannot hide each other.
    """
    counts = np.bincount(levels)
    alike, own = np.ones(len(counts), bool), list[int]()
    found = Noises(np.full(len(counts), common), ~alike)
    while (
        alike.sum() > 2
        and len(own) < min(MOST_OWN, len(counts) // 2)
        and len(counts) <= MANY_LEVELS
    ):
        squares = np.bincount(levels[alike[levels]], within.residuals**2)
        most = int((squares / counts[: len(squares)]).argmax())
        alike[most] = False
        own.append(most)
        others = _Others(logs, levels, blocks, alike)
        within = others.within
        if within.degrees < LEAST_DEGREES or within.variance <= 0:
            break
        spread, shared = others.spread_of(most)
        ratio = spread / within.variance / (1 + shared)
        p = special.fdtrc(counts[most] - 1, within.degrees, ratio)
        if counts[most] >= OWN_RUNS and (len(counts) - len(own) + 1) * p < OWN:
            variances = np.full(len(counts), within.variance)
            for level in own:  # no less than that of the others
                spread, shared = others.spread_of(level)
                variances[level] = max(spread - shared * within.variance, within.variance)
            found = Noises(variances, ~alike)
    return found


class _Others:
    """The runs of the levels that are alike, and what the runs of another level differ from them by
    in each block."""

    def __init__(self, logs: Array, levels: Codes, blocks: Codes, alike: Flags) -> None:
        kept = alike[levels]
        runs = np.bincount(blocks[kept], minlength=blocks.max() + 1)
        means = np.bincount(levels[kept], logs[kept], len(alike)) / np.bincount(levels)
        sums = np.bincount(blocks[kept], (logs - means[levels])[kept], len(runs))
        self.levels = levels
        self.within = within_blocks(logs[kept], levels[kept], blocks[kept])
        self.runs = runs[blocks]
        self.apart = logs - (sums / np.maximum(runs, 1))[blocks]

    def spread_of(self, level: int) -> tuple[float, float]:
        """Return the variance of a level's runs beside the mean of the others in their blocks, and
        that mean's share.

        The share is the variance of such a mean over that of a run of the others.
        """
        at = (self.levels == level) & (self.runs > 0)
        apart = self.apart[at]
        variance = float(apart.var(ddof=1)) if len(apart) > 1 else 0.0
        return variance, float((1 / self.runs[at]).mean())


class SensitivityBound(NamedTuple):
    """The mean log seconds of each level with the outliers of one side alone."""

    offsets: Array
    """What it adds (m,) to the level's mean without outliers."""
    variances: Array
    """Variance (m,) of the mean where an outlier is in it; 0 where the model's own holds."""
    degrees: Array
    """Degrees of freedom (m,) of these variances."""


class SensitivityBounds(NamedTuple):
    """How far the mean of each level depends on its outliers: both bounds, and the mean that is
    printed."""

    fast: SensitivityBound
    slow: SensitivityBound
    middle: Array
    """What the mean over all runs (m,), which is printed, adds to that without outliers."""

    def rounded(self, hidden: Array, levels: Codes) -> "SensitivityBounds":
        """Return the bounds moved apart by what the clock's step may have ``hidden`` of each run
        (n,), of their ``levels``."""
        most = np.zeros(len(self.middle))
        np.maximum.at(most, levels, hidden)
        fast = self.fast._replace(offsets=self.fast.offsets - most)
        slow = self.slow._replace(offsets=self.slow.offsets + most)
        return SensitivityBounds(fast, slow, self.middle)


def sensitivity_bounds_of(
    left: Array, levels: Codes, outliers: Codes, noises: Array
) -> SensitivityBounds:
    """Return the sensitivity bounds of levels from what is ``left`` (n,) of the log seconds of runs
    after their level and their block.

    ``levels`` (n,) are the codes of their levels, ``outliers`` (n,) has 1 for a slow outlier, -1
    for a fast one, and 0 for the other runs; ``noises`` (m,) are the variances of a run of each
    level.
    """
    middle = np.zeros(len(noises))
    for level in np.unique(levels[outliers != 0]):
        middle[level] = left[levels == level].mean()
    return SensitivityBounds(
        _bound(left, levels, outliers, noises, -1),
        _bound(left, levels, outliers, noises, 1),
        middle,
    )


def _bound(
    left: Array, levels: Codes, outliers: Codes, noises: Array, side: int
) -> SensitivityBound:
    """Return the bound with the outliers on one ``side`` alone."""
    offsets, variances, degrees = (np.zeros(len(noises)) for _ in range(3))
    for level in np.unique(levels[outliers == side]):
        kept = left[(levels == level) & (outliers != -side)]
        offsets[level] = kept.mean()
        own = kept.var(ddof=1) if len(kept) > 1 else 0.0
        variances[level] = max(own, noises[level]) / len(kept)
        degrees[level] = max(len(kept) - 1, 1)
    return SensitivityBound(offsets, variances, degrees)


def half_step(seconds: Sequence[float], noise: float) -> Array:
    """Return by how much rounding may have moved each time (n,), as a share: half a step of the
    clock that shows.

    0 where the ``noise`` (the standard deviation of log seconds) is so large that a mean of rounded
    times is right.
    """
    times = np.asarray(seconds, float)
    digits = next(
        (n for n in range(9) if np.allclose(times, times.round(n), rtol=0, atol=1e-9)), None
    )
    if digits is None:
        return np.zeros(len(times))
    step = MINUTE if not (times % MINUTE).any() else 10.0**-digits
    return np.where(noise * times < DITHERED * step, step / 2 / times, 0.0)


FEWEST = 3
"""Starts from which a term of start and setting can be told."""
ROUNDING = 1e-9
"""Log seconds by which computed times may differ that are equal, and a sum of weights that is none,
for they compare levels."""
AnyLevel = TypeVar("AnyLevel", bound=Hashable)


@dataclass(frozen=True)
class StartEffects:
    """The starts of a study whose levels met several of them."""

    effects: Array
    """Mean log seconds (s, m) of each level in each start, its blocks evened out; NaN where it has
    no run."""
    within: Within
    """What runs differ by within starts and blocks, each start having levels of its own."""
    shift: bool
    """Whether the variance of start and setting together is above zero."""
    p: float | None
    """p of the F test that no start shifts a level by itself; None where nothing tells it."""

    @property
    def count(self) -> int:
        """Number of starts."""
        return len(self.effects)

    @property
    def are_units(self) -> bool:
        """Whether differences are told by the means of starts."""
        return self.shift and self.count >= FEWEST

    def spread_of(self, rows: Array) -> tuple[Array, Array]:
        """Return the variance (r,) of weighted sums (r, m) of the levels over starts, and the
        starts (r,) less one.

        Where fewer than three starts have all levels of a sum that compares levels, it has the mean
        spread of all levels; the variance of another sum is NaN there.
        """
        known = np.isfinite(self.effects)
        whole = (known.astype(float) @ (rows != 0).T) >= (rows != 0).sum(1)  # (s, r)
        sums = np.where(whole, np.nan_to_num(self.effects) @ rows.T, np.nan)
        counts = whole.sum(0)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.nansum(sums, 0) / counts
            found = np.nansum((sums - means) ** 2, 0) / (counts - 1) / counts
        few, compares = counts < FEWEST, np.abs(rows.sum(1)) < ROUNDING
        found = np.where(
            few,
            np.where(compares, self._shared * (rows**2).sum(1) / np.maximum(counts, 1), np.nan),
            found,
        )
        return found, np.where(few, self.count, counts) - 1.0

    @property
    def _shared(self) -> float:
        """Variance of what a start shifts in one level, the mean over all that met three starts or
        more."""
        known = self.effects[:, np.isfinite(self.effects).sum(0) >= FEWEST]
        known = known[np.isfinite(known).any(1)]  # a start may have met none of them
        if known.shape[1] < 2:
            return np.nan
        apart = known - np.nanmean(known, 1, keepdims=True)
        return float(np.nanvar(apart, 0, ddof=1).mean() * known.shape[1] / (known.shape[1] - 1))


def start_effects_of(
    left: Array, logs: Array, levels: Codes, block: Codes, start: Codes, own: Within
) -> StartEffects | None:
    """Return the starts of runs; None where there is one, or where a start has one block and cannot
    be told from it.

    ``left`` (n,) are log seconds without blocks, ``logs`` (n,) as they were measured. ``own`` is
    what the runs differ by within blocks, where levels are the same in all starts.
    """
    start, block = codes(start.tolist()), codes(block.tolist())
    count = start.max() + 1
    most = levels.max() + 1
    if count < 2 or block.max() == start.max():
        return None
    cells = start * most + levels
    sums = np.bincount(cells, left, count * most)
    runs = np.bincount(cells, minlength=count * most)
    with np.errstate(invalid="ignore"):
        effects = (sums / runs).reshape(count, most)
    # A level's mean in a start has what the start itself shifts.
    effects += (np.bincount(start, logs - left) / np.bincount(start))[:, None]
    inside = within_blocks(logs, codes(cells.tolist()), block)
    residual_df, interaction_df = inside.degrees, own.degrees - inside.degrees
    if residual_df <= 0 or interaction_df <= 0:
        return StartEffects(effects, own, False, None)
    ratio = (
        (own.variance * own.degrees - inside.variance * residual_df)
        / interaction_df
        / max(inside.variance, 1e-300)
    )
    return StartEffects(
        effects, inside, ratio > 1, special.fdtrc(interaction_df, residual_df, ratio)
    )


def connected(levels: Codes, blocks: Codes) -> Codes:
    """Return the number (m,) of each level's set: levels that met in a block, or through others,
    share one.

    ``levels`` and ``blocks`` have an entry for each run. The sets are in the order of their first
    level.
    """
    most = levels.max() + 1
    whole = most + blocks.max() + 1
    graph = coo_array((np.ones(len(levels)), (levels, most + blocks)), shape=(whole, whole))
    return np.asarray(csgraph.connected_components(graph, directed=False)[1][:most])
