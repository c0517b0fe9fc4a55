"""Mean log seconds at each size, with what is known of their noise: all that a law of T(b) is fitted to."""

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
