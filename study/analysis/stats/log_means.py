"""Mean log seconds at each size, with what is known of their noise: all that a law of T(b) is fitted to."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LogMeans:
    """Means of log seconds at m distinct sizes, the smallest first."""

    sizes: list[float]
    logs: Array
    """Mean log seconds, shape (m,)."""
    covariance: Array
    """Covariance of these means (m, m) in (log s)^2, up to an addition common to all entries: a shift of all means,
    which is the machine's."""
    degrees: float
    """Degrees of freedom of the estimate of the noise. Where they are 0 or less there are no replicates: the covariance
    is then the identity, and its scale is unknown."""
    counts: list[int]
    """Clean runs at each size."""


def means_of_runs(sizes: Sequence[float], seconds: Sequence[float]) -> LogMeans:
    """Return the means of runs that have nothing in common but their size: the noise is that between runs of a size."""
    distinct, place, counts = np.unique(np.asarray(sizes, float), return_inverse=True, return_counts=True)
    runs = np.log(np.asarray(seconds, float))
    logs = np.bincount(place, runs) / counts
    degrees = len(runs) - len(distinct)
    noise = float(((runs - logs[place]) ** 2).sum()) / degrees if degrees else 0.0
    covariance = np.diag(noise / counts) if degrees else np.eye(len(distinct))
    return LogMeans(distinct.tolist(), logs, covariance, degrees, counts.tolist())
