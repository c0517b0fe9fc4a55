"""The runs of one result that are compared, with the mean of each start: the unit of every
comparison.

What moves all runs of a start by one factor (a boot, a clock, a neighbour) is in every difference
between two results. A hundred runs of one start know nothing of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
import pandas as pd

from study.analysis.answers.phases import PARTS
from study.analysis.stats.learning import LARGE_SHORTFALL, Learning, learning_of
from study.config.times import FIT

ROUNDS = 200
"""Rounds in which what a start lacks is filled: each takes most of what is left of the error."""
PHASES = {part: PARTS[part] for part in FIT}
"""Columns of the table of timings that add up to ``fit_seconds``, with their names."""
STATES = {
    "reference_seconds": "reference workload of the device",
    "host_reference_seconds": "reference workload of the host",
    "sm_clock_mhz": "clock of the GPU",
}
"""Columns that tell of the machine itself."""
Stand = Literal["as_well", "less", "unclear", "unknown"]
"""How a result has learned beside the best: `less`: its accuracy is lower by more than the margin,
beyond noise. `unclear`: it is over ten points lower, but that is not shown. `unknown`: it has no
accuracy."""


@dataclass(frozen=True)
class Side:
    """The runs of one result that count, in settings that every result has."""

    name: str
    runs: pd.DataFrame
    """Columns ``setting``, ``seconds``, ``start``, ``accuracy``, ``valid_images``, and those of
    PHASES and STATES; the starts in their order."""
    learning_margin: float = 0.02
    """By how much an accuracy may be lower before it counts as less."""

    def at(self, setting: str) -> pd.DataFrame:
        """Return the runs of one setting."""
        return self.runs[self.runs["setting"] == setting]


def start_means(side: Side) -> pd.DataFrame:
    """Return the mean log seconds of each setting (columns) in each start (rows).

    What a start lacks is filled with the sum of the effects of its setting and of the start, found
    by least squares.
    """
    logs = side.runs.assign(log=np.log(side.runs["seconds"]))
    table = logs.groupby(["start", "setting"], sort=False)["log"].mean().unstack()
    filled = table.fillna(table.mean())
    for _ in range(ROUNDS if table.isna().any(axis=None) else 0):
        states = filled.mean(axis=1) - filled.to_numpy().mean()
        filled = table.where(
            table.notna(), pd.DataFrame({name: filled[name].mean() + states for name in filled})
        )
    return filled


def noise_within(sides: Sequence[Side], setting: str) -> list[float]:
    """Return for each side the variance that the runs of a start leave in the mean of its log
    seconds.

    The variance of a run is pooled over all sides; it is 0 where no start has two runs.
    """
    groups = [
        [
            np.log(values.to_numpy(float))
            for _, values in side.at(setting).groupby("start")["seconds"]
        ]
        for side in sides
    ]
    each = list(chain.from_iterable(groups))
    degrees = sum(len(one) - 1 for one in each)
    variance = sum(float(((one - one.mean()) ** 2).sum()) for one in each) / max(degrees, 1)
    return [variance * float(np.mean([1 / len(one) for one in starts])) for starts in groups]


def learning(sides: Sequence[Side], settings: Sequence[str]) -> dict[str, list[Stand]]:
    """Return for each setting how well each side has learned beside the best of them.

    Equal results are called unequal in 5% of comparisons at most, over all settings.
    """
    return {
        one: _learning([side.at(one) for side in sides], sides[0].learning_margin, len(settings))
        for one in settings
    }


def _learning(parts: Sequence[pd.DataFrame], margin: float, settings: int) -> list[Stand]:
    accuracies = {
        str(place): part["accuracy"].dropna().tolist() for place, part in enumerate(parts)
    }
    images = pd.concat([part["valid_images"] for part in parts]).dropna()
    # Chance does not matter here. Where the images are not known, one alone shows nothing.
    found = learning_of(accuracies, 0.0, int(images.min()) if len(images) else 1, margin, settings)
    best = max((one.accuracy for one in found.values() if one.accuracy is not None), default=0.0)
    return [_stand(one, best, margin) for one in found.values()]


def _stand(found: Learning, best: float, margin: float) -> Stand:
    if found.accuracy is None:
        return "unknown"
    if found.learned is False:
        return "less"
    return "unclear" if best - found.accuracy > LARGE_SHORTFALL + margin else "as_well"
