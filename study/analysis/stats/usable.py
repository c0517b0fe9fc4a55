"""The runs that an analysis uses, those that it excludes, and an estimate with its interval.

Single far runs are excluded by a rule that was declared before any run. The residuals are those of an iterated median
polish (Tukey 1977) of log seconds by level and block, which a slow run cannot bend. A run is far if its residual
exceeds both five robust standard deviations and a factor of 1.33. The rule looks at nothing else, and is the same for
every study.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from study.analysis.stats import machine_change
from study.analysis.stats.log_model import Interval, LogModel, fit_log_model
from study.artifacts.duration import DEVIATIONS, FACTOR, TO_DEVIATION
from study.artifacts.setting import Level, Setting, setting_of
from study.base.strict import Strict
from study.config.study import Study, shown

FIRST, FAR = "first of its start", "far"
BY_RULE = FIRST, FAR
"""Reasons beside those of the table itself, by which a run is excluded."""


class Estimate(Strict):
    """A geometric mean or a ratio, with its 95% interval; null bounds where the data give none."""

    value: float
    low: float | None
    high: float | None


def estimate(interval: Interval) -> Estimate:
    """Return an interval as a model that can be written."""
    return Estimate(value=interval.value, low=interval.low, high=interval.high)


def with_reasons(study: Study, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with every reason in its column ``excluded``: null for a run that counts.

    To the reasons of the table come two that were declared before any run. Where no warm-up run ran, the first run of
    each start on each device is excluded, unless no other run of its setting is left; then the runs that are far by the
    rule of ``far_runs``, within each group of settings that differ in the curve's factor alone. In ``session`` a start
    that had several machines counts as one on each of them.
    """
    y = study.total
    frame = frame.assign(session=_starts(frame))
    frame = frame.assign(excluded=frame["excluded"].astype(object).where(frame["excluded"].notna(), None))
    begun = frame[frame["started"].notna()].sort_values("started", kind="stable")
    firsts = begun.groupby(["session", "device"], sort=False).head(1)
    cold = firsts[firsts["excluded"].isna() & (firsts["warmed_up"].astype(str) != "True")]
    usable = usable_runs(frame, y)
    settings = _settings(study, frame)
    left = Counter(settings[at] for at in usable.index)
    for at in cold.index:
        own = int(at in usable.index)
        if left[settings[at]] > own:
            frame.loc[[at], "excluded"] = FIRST
            left[settings[at]] -= own
    usable = usable_runs(frame, y)
    level_keys, group_keys = keys_of(study)
    for _, rows in usable.groupby(group_keys, sort=False) if group_keys else [("", usable)]:
        levels = list(rows[level_keys].itertuples(index=False, name=None)) if level_keys else [0] * len(rows)
        far = far_runs(rows[y].tolist(), levels, rows["session_block"].tolist())
        frame.loc[rows.index[far], "excluded"] = FAR
    return frame


def _starts(frame: pd.DataFrame) -> pd.Series:
    """Return the number of the start of each run, where a start on each of several machines has a number of its own.

    Two machines share no state: a difference between them must not count as one between settings.
    """
    nodes = frame["node"].fillna("")
    if (nodes.groupby(frame["session"]).nunique() <= 1).all():
        return frame["session"]
    both = pd.Series(list(zip(frame["session"], nodes, strict=True)), index=frame.index).where(frame["session"].notna())
    numbers = {start: float(number) for number, start in enumerate(sorted(both.dropna().unique()), 1)}
    return both.map(numbers)


def _settings(study: Study, frame: pd.DataFrame) -> dict[Hashable, tuple[str, ...]]:
    """Return the setting of each run, its levels as text, by the run's place in the index."""
    columns = [frame[key].astype(str) for key in study.compared]
    return dict(zip(frame.index, zip(*columns, strict=True) if columns else [()] * len(frame), strict=True))


def keys_of(study: Study) -> tuple[list[str], list[str]]:
    """Return the factors that tell the levels of a group apart, and those that tell the groups apart."""
    if study.curve:
        return [study.curve.x], [key for key in study.compared if key != study.curve.x]
    return [key for key in study.compared if key != "device"], [key for key in study.compared if key == "device"]


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


def with_true_shares(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table without the shares of each ceiling that a run exceeded: it was measured on a slower machine.

    A ceiling is that of a device in a precision.
    """
    shares = frame["ceiling_share"].where((frame["outcome"] == "ok") & frame["excluded"].isna())
    most = shares.groupby([frame["device"], frame["precision"]]).transform("max")
    return frame.assign(ceiling_share=frame["ceiling_share"].mask(most > 1))


def usable_runs(frame: pd.DataFrame, y: str) -> pd.DataFrame:
    """Return the runs that count, with columns ``session_block`` (session and replicate) and ``pace``."""
    usable = frame[frame["excluded"].isna() & (frame["outcome"] == "ok") & frame[y].notna()]
    session = usable["session"].astype(int).astype(str)
    usable = usable.assign(session_block=session + "." + usable["block"].astype(int).astype(str))
    return machine_change.with_machine(usable)


def model_of(runs: pd.DataFrame, y: str, levels: Sequence[Any], covariate: Sequence[float] | None = None) -> LogModel:
    """Return the model of log ``y`` of the runs that count; ``levels`` and the covariate have an entry for each."""
    return fit_log_model(
        runs[y].tolist(), levels, runs["session_block"].tolist(), runs["session"].tolist(), covariate=covariate
    )


def mean_of(frame: pd.DataFrame, column: str) -> float | None:
    """Return the mean of a column; None where it was not measured."""
    return float(frame[column].mean()) if frame[column].notna().any() else None


def place_of(levels: list[Any], level: Any) -> int:
    """Return the place of a level among the study's; a table reads 1 as 1.0, and True as text."""
    return next(place for place, other in enumerate(levels) if other == level or str(other) == str(level))


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
