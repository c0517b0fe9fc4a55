"""The noise of runs within their blocks: of all levels, and of a level that is noisier than the
others.

What a block shifts cancels here, whatever it is: the mixed model would take noise and blocks
together where blocks differ by less than their runs do, as on a machine that slows down within each
of them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from study.analysis.stats.mixed_model import Array

OWN = 0.03
"""p below which a level has a noise of its own: a missed difference costs more than a few degrees
of freedom."""
OWN_RUNS = 3
"""Runs from which a level can show a noise of its own."""
MOST_OWN = 5
"""Levels that can have one; half of them at most."""
LEAST_DEGREES = 4
"""Degrees of freedom that the others must keep: from fewer a noise says little."""
MANY_LEVELS = 400


@dataclass(frozen=True)
class Within:
    """What runs differ by within their blocks, with levels and blocks both fixed."""

    residuals: Array
    """What is left of each run (n,)."""
    degrees: float

    @property
    def variance(self) -> float:
        """Variance of a run; NaN where nothing tells it."""
        return float((self.residuals**2).sum() / self.degrees) if self.degrees > 0 else np.nan


@dataclass(frozen=True)
class Noises:
    """The noise of each level."""

    variances: Array
    """Variance (m,) of a run of each level."""
    own: NDArray[np.bool_]
    """Whether a level (m,) has a noise of its own; the others share one."""


def within_blocks(logs: Array, levels: NDArray[np.int64], blocks: NDArray[np.int64]) -> Within:
    """Return what runs with log seconds (n,) differ by within ``blocks`` (n,), of their ``levels``
    (n,)."""
    runs = np.bincount(blocks)
    x = np.column_stack([np.eye(levels.max() + 1)[levels], logs])
    sums = np.zeros((len(runs), x.shape[1]))
    np.add.at(sums, blocks, x)
    x -= (sums / np.maximum(runs, 1)[:, None])[blocks]
    beta, _, rank, _ = np.linalg.lstsq(x[:, :-1], x[:, -1], rcond=1e-10)
    return Within(x[:, -1] - x[:, :-1] @ beta, float(len(logs) - (runs > 0).sum() - rank))


def noises_of(
    logs: Array, levels: NDArray[np.int64], blocks: NDArray[np.int64], common: float
) -> Noises:
    """Return the noise of each level; it is ``common`` unless a level is shown to be noisier than
    the others.

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
        kept = alike[levels]
        squares = np.bincount(
            levels[kept], within_blocks(logs[kept], levels[kept], blocks[kept]).residuals ** 2
        )
        most = int((squares / counts[: len(squares)]).argmax())
        alike[most] = False
        own.append(most)
        others = _Others(logs, levels, blocks, alike)
        if others.within.degrees < LEAST_DEGREES or others.within.variance <= 0:
            break
        spread, shared = others.spread_of(most)
        ratio = spread / others.within.variance / (1 + shared)
        p = special.fdtrc(counts[most] - 1, others.within.degrees, ratio)
        if counts[most] >= OWN_RUNS and (len(counts) - len(own) + 1) * p < OWN:
            variances = np.full(len(counts), others.within.variance)
            for level in own:
                variances[level] = others.variance_of(level)
            found = Noises(variances, ~alike)
    return found


class _Others:
    """The runs of the levels that are alike, and what the runs of another level differ from them by
    in each block."""

    def __init__(
        self,
        logs: Array,
        levels: NDArray[np.int64],
        blocks: NDArray[np.int64],
        alike: NDArray[np.bool_],
    ) -> None:
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

    def variance_of(self, level: int) -> float:
        """Return the variance of a run of a level: no less than that of the others."""
        spread, shared = self.spread_of(level)
        return max(spread - shared * self.within.variance, self.within.variance)
