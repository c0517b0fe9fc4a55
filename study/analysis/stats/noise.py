"""The noise model, tested: is the relative noise the same whether times are long or short?"""

import numpy as np
from scipy import stats

from study.analysis.stats.findings import Noise
from study.analysis.stats.laws import Array
from study.analysis.stats.log_model import SIGNIFICANCE

FEWEST_SPARE = 8
"""Runs beyond one a level from which the spread within levels can be compared."""
APART = 3.0
"""The range of the levels over the noise, below which a far run moves its level and the spread there together."""


def spread_grows(levels: Array, residuals: Array) -> tuple[float, float] | None:
    """Return p of the test that the spread of residuals (n,) does not change with ``levels`` (n,), and the slope.

    ``levels`` are each run's mean log seconds. The test is the regression of the distance from the level's median on
    the level (the trend form of Brown and Forsythe 1974), which few runs and far ones do not mislead. It is None with
    too few runs, with levels that hardly differ, or without noise.
    """
    distinct, place = np.unique(levels, return_inverse=True)
    if len(levels) - len(distinct) < FEWEST_SPARE or np.ptp(levels) <= APART * residuals.std():
        return None
    medians = np.array([np.median(residuals[place == at]) for at in range(len(distinct))])
    distances = np.abs(residuals - medians[place])
    kept = distances > 0  # an odd number of runs has one that is the median: it tells nothing, and hides what others do
    if not kept.any() or np.ptp(distances[kept]) <= 0:
        return None
    found = stats.linregress(levels[kept], distances[kept])
    return float(found.pvalue), float(found.slope)


def noise_of(levels: Array, residuals: Array) -> Noise | None:
    """Return whether the noise is even, grows or shrinks with the time; None where the runs cannot tell."""
    found = spread_grows(levels, residuals)
    if found is None:
        return None
    p, slope = found
    return Noise(p=p, way="even" if p >= SIGNIFICANCE else "grows" if slope > 0 else "shrinks")
