"""The rule, declared before any run, by which single far runs are set aside.

The residuals are those of an iterated median polish (Tukey 1977) of log seconds by level and block, which a slow run
cannot bend. A run is far if its residual exceeds both five robust standard deviations and a factor of 1.33. The rule
looks at nothing else, and is the same for every study.
"""

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from study.base.far import DEVIATIONS, FACTOR, TO_DEVIATION

Array = NDArray[np.float64]
MOST_PASSES = 50


def far_runs(seconds: Sequence[float], levels: Sequence[Hashable], blocks: Sequence[Hashable]) -> NDArray[np.bool_]:
    """Return for each run whether it is far; all three have one entry for each run.

    A block with fewer than half of the levels, or fewer than three runs, has no effect of its own: its runs would
    explain each other away. A level with fewer than three runs has no far run.
    """
    if not len(seconds):
        return np.zeros(0, bool)
    logs = np.log(np.asarray(seconds, float))
    by_level, by_block = _groups(levels), _groups(blocks)
    whole = [rows for rows in by_block if len(rows) >= max(3, len(by_level) / 2)]
    left = _polished(logs, by_level, whole)
    lost = len(by_level) + max(len(whole) - 1, 0)
    spare = max(len(logs) - lost, 1)
    deviation = TO_DEVIATION * float(np.median(np.abs(left))) * np.sqrt(len(logs) / spare)
    far: NDArray[np.bool_] = np.abs(left) > max(DEVIATIONS * deviation, np.log(FACTOR))
    counts = Counter(levels)
    far &= np.array([counts[level] >= 3 for level in levels])
    return far


def _groups(values: Sequence[Hashable]) -> list[NDArray[np.int64]]:
    rows: dict[Hashable, list[int]] = {}
    for row, value in enumerate(values):
        rows.setdefault(value, []).append(row)
    return [np.array(found) for found in rows.values()]


def _polished(logs: Array, by_level: Sequence[NDArray[np.int64]], by_block: Sequence[NDArray[np.int64]]) -> Array:
    left = logs.copy()
    for _ in range(MOST_PASSES):
        before = left.copy()
        for rows in [*by_level, *by_block]:
            left[rows] -= np.median(left[rows])
        if np.allclose(left, before, rtol=0, atol=1e-9):
            break
    return left
