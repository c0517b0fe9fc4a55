"""The drift of times along the order of execution, and the replicates that would tell levels apart."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from study.analysis.stats.findings import Drift, MoreReplicates
from study.analysis.stats.log_model import CONFIDENCE, SIGNIFICANCE, LogModel

POWER = 0.8
"""Cohen (1988): four in five studies of that size find the difference."""
MOST_REPLICATES = 1000
DRIFT_LIMIT = 0.05
"""A drift is reported from 5% over the study on: half of what pyperf calls an unstable spread (10%)."""


def drift_of(usable: pd.DataFrame, levels: Sequence[str], y: str) -> Drift | None:
    """Return the drift of one group's times along the order of execution; None where none shows.

    The slope is that of log seconds over their level's mean on the place in the order, by least squares; it counts
    where its t test finds it at 5%. ``levels`` has one entry for each of the ``usable`` runs.
    """
    if usable["started"].isna().any() or len(usable) < 2 * len(set(levels)) or len(usable) <= len(set(levels)) + 1:
        return None
    order = usable["started"].rank(method="first").to_numpy(float)
    logs = np.log(usable[y].to_numpy(float))
    names = np.asarray(levels)
    design = np.column_stack([*(names == name for name in dict.fromkeys(levels)), order - order.mean()]).astype(float)
    slope, p = _slope(design, logs)
    change = float(np.exp(slope * (len(order) - 1)))
    shows = p < SIGNIFICANCE and max(change, 1 / change) >= 1 + DRIFT_LIMIT
    return Drift(change=change, p=p) if shows else None


def _slope(design: np.ndarray[Any, np.dtype[np.float64]], logs: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Return the coefficient of the last column of ``design`` (n, k), and the p of its t test."""
    inverse = np.linalg.pinv(design.T @ design)
    solution = inverse @ design.T @ logs
    degrees = len(logs) - int(np.linalg.matrix_rank(design))
    residual = float(((logs - design @ solution) ** 2).sum())
    if degrees <= 0 or residual <= 0:
        return float(solution[-1]), 1.0
    t = float(solution[-1]) / np.sqrt(residual / degrees * float(inverse[-1, -1]))
    return float(solution[-1]), float(2 * stats.t.sf(abs(t), degrees))


def replicates_needed(log_ratio: float, variance: float, levels: int) -> int | None:
    """Return the replicates a level at which a t test at 5% finds ``log_ratio`` with a power of 80%; None beyond 1000.

    The two levels are among ``levels`` in complete blocks, and ``variance`` is the residual variance of log seconds:
    noncentral t with (levels - 1)(n - 1) degrees of freedom (Cohen 1988).
    """
    for count in range(2, MOST_REPLICATES + 1):
        degrees = (levels - 1) * (count - 1)
        critical = stats.t.ppf((1 + CONFIDENCE) / 2, degrees)
        if stats.nct.sf(critical, degrees, abs(log_ratio) / np.sqrt(2 * variance / count)) >= POWER:
            return count
    return None


def more_replicates(model: LogModel, tied: Sequence[str], fastest: str, replicates: int) -> MoreReplicates | None:
    """Return the replicates that would tell each of the ``tied`` levels from the fastest, beyond those that were made.

    It takes the differences to be as measured, and is None where nothing is left to tell, or without noise to judge by.
    """
    names = [str(level) for level in model.levels]
    if not model.residual_variance or fastest not in names or len(names) < 2:
        return None
    effects = dict(zip(names, model.effects.tolist(), strict=True))
    needed, hopeless = {}, []
    for name in tied:
        if name == fastest or name not in effects:
            continue
        total = replicates_needed(effects[name] - effects[fastest], model.residual_variance, len(names))
        if total is None:
            hopeless.append(name)
        else:
            needed[name] = max(total - replicates, 1)
    if not needed and not hopeless:
        return None
    ranked = dict(sorted(needed.items(), key=lambda item: (item[1], item[0])))
    return MoreReplicates(fastest=fastest, needed=ranked, hopeless=hopeless, limit=MOST_REPLICATES)
