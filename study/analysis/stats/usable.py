"""The runs that an analysis uses, and an estimate with its interval."""

from typing import Any

import pandas as pd

from study.analysis.stats import machine_change
from study.analysis.stats.log_model import Interval
from study.base.strict import Strict


class Estimate(Strict):
    """A geometric mean or a ratio, with its 95% interval; null bounds where the data give none."""

    value: float
    low: float | None
    high: float | None


def estimate(interval: Interval) -> Estimate:
    """Return an interval as a model that can be written."""
    return Estimate(value=interval.value, low=interval.low, high=interval.high)


def counted(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table of timings that count: those of records that were set aside are left out."""
    return frame[frame["set_aside"].isna()]


def usable_runs(frame: pd.DataFrame, y: str) -> pd.DataFrame:
    """Return the successful runs with columns ``session_block`` (session and replicate) and ``machine``."""
    frame = counted(frame)
    usable = frame[(frame["outcome"] == "ok") & frame[y].notna()]
    session = usable["session"].astype(int).astype(str)
    usable = usable.assign(session_block=session + "." + usable["block"].astype(int).astype(str))
    return machine_change.with_machine(usable)


def mean_of(frame: pd.DataFrame, column: str) -> float | None:
    """Return the mean of a column; None where it was not measured."""
    return float(frame[column].mean()) if frame[column].notna().any() else None


def place_of(levels: list[Any], level: Any) -> int:
    """Return the place of a level among the study's; a table reads 1 as 1.0, and True as text."""
    return next(place for place, other in enumerate(levels) if other == level or str(other) == str(level))
