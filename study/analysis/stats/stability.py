"""Whether the runs stayed what they were: drift along the order of execution, and what more replicates would show."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from study.analysis.stats.log_model import CONFIDENCE, SIGNIFICANCE, LogModel
from study.analysis.words import listed

POWER = 0.8
"""Cohen (1988): four in five studies of that size find the difference."""
MOST_REPLICATES = 1000
DRIFT_LIMIT = 0.05
"""A slope is told from 5% over the study on: half of what pyperf calls an unstable spread (10%)."""


def drift_of(usable: pd.DataFrame, levels: Sequence[str], y: str) -> str | None:
    """A sentence where the times of one device's runs drift along their order, or None.

    Least squares of each log time over its level's mean on its place in the order; the slope's t test at 5%.
    """
    if usable["started"].isna().any() or len(usable) < 2 * len(set(levels)) or len(usable) <= len(set(levels)) + 1:
        return None
    order = usable["started"].rank(method="first").to_numpy(float)
    logs = np.log(usable[y].to_numpy(float))
    names = np.asarray(levels)
    design = np.column_stack([*(names == name for name in dict.fromkeys(levels)), order - order.mean()]).astype(float)
    slope, p = _slope(design, logs)
    change = float(np.exp(slope * (len(order) - 1)))
    if p >= SIGNIFICANCE or max(change, 1 / change) < 1 + DRIFT_LIMIT:
        return None
    way = "longer" if change > 1 else "shorter"
    return (
        f"Times grow {way} along the order of execution, by {abs(change - 1):.0%} from the first run to the last "
        f"(p = {p:.2g}, the settings accounted for): the machine drifted. The order was drawn in blocks, so that no "
        "setting gains by it."
    )


def _slope(design: np.ndarray[Any, np.dtype[np.float64]], logs: np.ndarray[Any, Any]) -> tuple[float, float]:
    """The last column's coefficient and the p of its t test."""
    inverse = np.linalg.pinv(design.T @ design)
    solution = inverse @ design.T @ logs
    degrees = len(logs) - int(np.linalg.matrix_rank(design))
    residual = float(((logs - design @ solution) ** 2).sum())
    if degrees <= 0 or residual <= 0:
        return float(solution[-1]), 1.0
    t = float(solution[-1]) / np.sqrt(residual / degrees * float(inverse[-1, -1]))
    return float(solution[-1]), float(2 * stats.t.sf(abs(t), degrees))


def replicates_needed(log_ratio: float, variance: float, levels: int) -> int | None:
    """Replicates a level at which a t test at 5% finds ``log_ratio`` with a power of 80%; None beyond 1000.

    Of two levels among ``levels`` in complete blocks, with ``variance`` the residual variance of log seconds:
    noncentral t with (levels - 1)(n - 1) degrees of freedom (Cohen 1988).
    """
    for count in range(2, MOST_REPLICATES + 1):
        degrees = (levels - 1) * (count - 1)
        critical = stats.t.ppf((1 + CONFIDENCE) / 2, degrees)
        if stats.nct.sf(critical, degrees, abs(log_ratio) / np.sqrt(2 * variance / count)) >= POWER:
            return count
    return None


def power_words(model: LogModel, same: Sequence[str], best: str, replicates: int) -> str | None:
    """How many more replicates would tell the others in the fastest's set from it, if the differences are as measured.

    None where nothing is left to tell, or without noise to judge by.
    """
    names = [str(level) for level in model.levels]
    if not model.residual_variance or best not in names or len(names) < 2:
        return None
    effects = dict(zip(names, model.effects.tolist(), strict=True))
    parts, hopeless = [], []
    for name in same:
        if name == best or name not in effects:
            continue
        needed = replicates_needed(effects[name] - effects[best], model.residual_variance, len(names))
        if needed is None:
            hopeless.append(name)
        else:
            parts.append((max(needed - replicates, 1), name))
    told = [
        f"{more} more replicate{'s' * (more > 1)} would separate {best} from {name}" for more, name in sorted(parts)
    ]
    told += [f"not even {MOST_REPLICATES} would separate it from {listed(hopeless)}"] if hopeless else []
    if not told:
        return None
    text = f"{listed(told)} (at 95%, with a power of 80%, if the differences are as measured)."
    return text[0].upper() + text[1:]
