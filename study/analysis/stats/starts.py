"""What a start shifts in some levels and not in others: the term of start and setting together.

One start cannot tell it. Two tell the means over these two starts. Three tell whether there is such
a term at all; where there is, the start is the unit, and each difference of levels has its own
spread over the starts.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import special
from scipy.sparse import coo_array, csgraph

from study.analysis.stats.mixed_model import Array, Places, places
from study.analysis.stats.noise import Within, within_blocks

FEWEST = 3
"""Starts from which a term of start and setting can be told."""
ROUNDING = 1e-9
"""Log seconds by which computed times may differ that are equal, and a sum of weights that is none,
for they compare levels."""
Level = TypeVar("Level", bound=Hashable)


@dataclass(frozen=True)
class Starts:
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


def starts_of(
    left: Array,
    logs: Array,
    levels: Places,
    block: Places,
    start: Places,
) -> Starts | None:
    """Return the starts of runs; None where there is one, or where a start has one block and cannot
    be told from it.

    ``left`` (n,) are log seconds without blocks, ``logs`` (n,) as they were measured.
    """
    start, block = places(start.tolist()), places(block.tolist())
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
    own = within_blocks(logs, levels, block)
    inside = within_blocks(logs, places(cells.tolist()), block)
    spare, more = inside.degrees, own.degrees - inside.degrees
    if spare <= 0 or more <= 0:
        return Starts(effects, own, False, None)
    ratio = (
        (own.variance * own.degrees - inside.variance * spare) / more / max(inside.variance, 1e-300)
    )
    return Starts(effects, inside, ratio > 1, special.fdtrc(more, spare, ratio))


def connected(levels: Places, blocks: Places) -> Places:
    """Return the number (m,) of each level's set: levels that met in a block, or through others,
    share one.

    ``levels`` and ``blocks`` have an entry for each run. The sets are in the order of their first
    level.
    """
    most = levels.max() + 1
    whole = most + blocks.max() + 1
    graph = coo_array((np.ones(len(levels)), (levels, most + blocks)), shape=(whole, whole))
    return np.asarray(csgraph.connected_components(graph, directed=False)[1][:most])


def separate_sets(levels: Sequence[Level], blocks: Sequence[Hashable]) -> list[list[Level]]:
    """Return the levels in connected sets, in the order of their first run; both have an entry for
    each run."""
    sets = connected(places(levels), places(blocks))
    names = list(dict.fromkeys(levels))
    return [
        [name for name, one in zip(names, sets, strict=True) if one == at]
        for at in range(sets.max() + 1)
    ]
