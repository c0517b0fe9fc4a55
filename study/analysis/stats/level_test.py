"""The F test that no level differs from another, where levels have noises of their own or starts are the unit, too."""

from collections.abc import Hashable, Sequence

import numpy as np
from scipy import special

from study.analysis.stats.log_model import LogModel


def level_test(model: LogModel, among: Sequence[Hashable] | None = None) -> float | None:
    """Return p of the F test that no level ``among`` some (None: all) differs from another; None without replicates.

    Where levels have noises of their own it is the larger p of two tests, with these and with one noise for all.
    """
    chosen = [level for level in model.levels if among is None or level in among]
    found = [_level_test(one, chosen) for one in ([model, model.even] if model.uneven else [model])]
    return max((p for p in found if p is not None), default=None)


def _level_test(model: LogModel, levels: Sequence[Hashable]) -> float | None:
    """Return p of one test; its degrees of freedom are Fai and Cornelius' (1996).

    Where starts are the unit, it is the F test of their means with 1 and starts - 1 degrees, which holds whatever the
    starts shift together (Box 1954).
    """
    count = len(levels)
    if count < 2 or model.spare <= 0 or model.fit.variances["noise"] <= 0:
        return None
    whole = np.eye(len(model.levels))[[model.levels.index(level) for level in levels]]
    if model.starts and model.starts.are_units:
        pairs = (whole[:, None] - whole[None]).reshape(-1, len(model.levels))
        spread, few = model.starts.spread_of(pairs[np.abs(pairs).any(1)])
        if np.isfinite(spread).all() and spread.mean() > 0:
            ratio = (whole @ model.effects).var(ddof=1) / (spread.mean() / 2)
            return float(special.fdtrc(1, few.min(), ratio))
    differences = whole[0] - whole[1:]
    variances, directions = np.linalg.eigh(differences @ model.covariance @ differences.T)
    if variances.min() <= 0:
        return None
    rows = directions.T @ differences
    variances, degrees = model.variances_of(rows)
    squares = (rows @ model.effects) ** 2 / variances
    expected = float((degrees / (degrees - 2)).sum()) if degrees.min() > 2 else 0.0
    spare = 2 * expected / (expected - count + 1) if expected > count - 1 else float(degrees.min())
    return float(special.fdtrc(count - 1, spare, squares.mean()))
