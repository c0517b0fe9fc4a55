"""The runs that an analysis uses, and an estimate with its interval."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from study.analysis.stats import machine_change
from study.analysis.stats.log_model import Interval, LogModel, fit_log_model
from study.artifacts.setting import Level, Setting, setting_of
from study.base.strict import Strict
from study.config.study import Study, shown


class Estimate(Strict):
    """A geometric mean or a ratio, with its 95% interval; null bounds where the data give none."""

    value: float
    low: float | None
    high: float | None

    @classmethod
    def point(cls, value: float) -> "Estimate":
        """Return a value without an interval, where the data give none."""
        return cls(value=value, low=None, high=None)

    def widened(self, logs: float) -> "Estimate":
        """Return it with bounds that lie further apart, by so many log units on each side."""
        low, high = (bound and bound * math.exp(side * logs) for side, bound in ((-1, self.low), (1, self.high)))
        return self.model_copy(update={"low": low, "high": high})

    @property
    def bare(self) -> "Estimate":
        """The value without its interval, where that says nothing."""
        return Estimate.point(self.value)


def estimate(interval: Interval) -> Estimate:
    """Return an interval as a model that can be written."""
    return Estimate(value=interval.value, low=interval.low, high=interval.high)


def row_settings(study: Study, frame: pd.DataFrame, keys: Sequence[str]) -> list[Setting]:
    """Return the setting of each row of a table of timings, of the levels of some factors."""
    rows = list(zip(*(frame[key] for key in keys), strict=True)) if keys else [()] * len(frame)
    known = {
        row: setting_of(study, {key: level_of(study, key, value) for key, value in zip(keys, row, strict=True)})
        for row in dict.fromkeys(rows)
    }
    return [known[row] for row in rows]


def level_of(study: Study, key: str, value: Any) -> Level:
    """Return the level that a table shows as ``value``; a path stays as it is shown, and a device without a factor."""
    levels = study.factors.get(key)
    if levels is None:
        return str(value)
    names = [shown(study, key, level) for level in levels]
    place = place_of(names, value)
    found: Level = names[place] if isinstance(levels[place], str) else levels[place]
    return found


def counted(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table of timings that count: those of records that were excluded are left out."""
    return frame[frame["excluded"].isna()]


def usable_runs(frame: pd.DataFrame, y: str) -> pd.DataFrame:
    """Return the runs that count, with columns ``session_block`` (session and replicate) and ``pace``;
    none is far where no rule has looked."""
    usable = frame[frame["excluded"].isna() & (frame["outcome"] == "ok") & frame[y].notna()]
    session = usable["session"].astype(int).astype(str)
    blocks = session + "." + usable["block"].astype(int).astype(str)
    usable = usable.assign(session_block=blocks, far=usable["far"].fillna(0))
    return machine_change.with_machine(usable)


def model_of(runs: pd.DataFrame, y: str, levels: Sequence[Any]) -> LogModel:
    """Return the model of log ``y`` of the runs that count; ``levels`` has an entry for each."""
    blocks, starts = runs["session_block"].tolist(), runs["session"].tolist()
    return fit_log_model(runs[y].tolist(), levels, blocks, starts, runs["far"].tolist())


def mean_of(frame: pd.DataFrame, column: str) -> float | None:
    """Return the mean of a column; None where it was not measured."""
    return float(frame[column].mean()) if frame[column].notna().any() else None


def place_of(levels: list[Any], level: Any) -> int:
    """Return the place of a level among the study's; a table reads 1 as 1.0, and True as text."""
    return next(place for place, other in enumerate(levels) if other == level or str(other) == str(level))
