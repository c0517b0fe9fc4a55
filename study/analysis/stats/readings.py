"""Two readings of each level's times: one without the far runs that are slow, one without those
that are fast.

Nobody knows whether a far run was an accident or a state that the setting meets now and then. So it
counts against its own setting alone: a level is slower than another only where its fast reading is
slower than the other's slow reading. In these two readings far runs count, with the spread of their
own level.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
DITHERED = 0.5
"""Standard deviation of the noise, in steps of the clock, from which rounding no longer biases a
mean."""
MINUTE = 60.0
"""Seconds of the step where all times are whole minutes."""


@dataclass(frozen=True)
class Reading:
    """The mean log seconds of each level with the far runs of one side."""

    shifts: Array
    """What it adds (m,) to the level's mean without far runs."""
    variances: Array
    """Variance (m,) of the mean where a far run is in it; 0 where the model's own holds."""
    degrees: Array
    """Degrees of freedom (m,) of these variances."""


@dataclass(frozen=True)
class Readings:
    """Both readings of each level, and the mean that is printed."""

    fast: Reading
    slow: Reading
    middle: Array
    """What the mean over all runs (m,), which is printed, adds to that without far runs."""

    def rounded(self, hidden: Array, levels: NDArray[np.int64]) -> "Readings":
        """Return the readings with what the clock's step may have ``hidden`` of each run (n,), of
        their ``levels``."""
        most = np.zeros(len(self.middle))
        np.maximum.at(most, levels, hidden)
        fast = replace(self.fast, shifts=self.fast.shifts - most)
        slow = replace(self.slow, shifts=self.slow.shifts + most)
        return Readings(fast, slow, self.middle)


def readings_of(
    left: Array, levels: NDArray[np.int64], far: NDArray[np.int64], noises: Array
) -> Readings:
    """Return the readings of runs with what is ``left`` (n,) of their log seconds after their level
    and their block.

    ``levels`` (n,) are the places of their levels, ``far`` (n,) is 1 for a far run that is slow, -1
    for one that is fast, and 0 for the others; ``noises`` (m,) are the variances of a run of each
    level.
    """
    middle = np.zeros(len(noises))
    for level in np.unique(levels[far != 0]):
        middle[level] = left[levels == level].mean()
    return Readings(
        _reading(left, levels, far, noises, -1), _reading(left, levels, far, noises, 1), middle
    )


def _reading(
    left: Array, levels: NDArray[np.int64], far: NDArray[np.int64], noises: Array, side: int
) -> Reading:
    """Return the reading with the far runs on one ``side`` alone."""
    shifts, variances, degrees = (np.zeros(len(noises)) for _ in range(3))
    for level in np.unique(levels[far == side]):
        kept = left[(levels == level) & (far != -side)]
        shifts[level] = kept.mean()
        own = kept.var(ddof=1) if len(kept) > 1 else 0.0
        variances[level] = max(own, noises[level]) / len(kept)
        degrees[level] = max(len(kept) - 1, 1)
    return Reading(shifts, variances, degrees)


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
