"""What the page says of a study's runs before any number: how many there are, of what, and on which machine."""

from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime

import pandas as pd

from study.analysis.stats.usable import counted
from study.analysis.table.exclusions import of_planned_runs
from study.analysis.words import device_words
from study.artifacts.plan import Plan
from study.base.durations import duration_words
from study.config.sections import is_own
from study.config.study import Study


def counts(plan: Plan, frame: pd.DataFrame) -> str:
    """Return how many of the planned runs succeeded, by device, and why the others did not."""
    told = []
    by_device = Counter(run.settings.device for run in plan.runs)
    rows = of_planned_runs(frame)
    done = Counter(rows["device"][rows["outcome"] == "ok"])
    away = {run.settings.device: run.unavailable for run in plan.runs if run.unavailable}
    for device, planned in by_device.items():
        if device in away and not done[device]:
            told.append(f"{planned} {device_words(device)} runs skipped: {away[device]}")
        else:
            told.append(f"{done[device]} of {planned} {device_words(device)} runs")
    return "; ".join(told)


def summary(plan: Plan, frame: pd.DataFrame, wall: float) -> list[str]:
    """Return the parts of the line below the title: machine, runs, date, ``wall`` seconds, images and weights."""
    rows = of_planned_runs(frame)
    used = rows[rows["outcome"] == "ok"]
    settings = {run.name: run.settings for run in plan.runs}
    told = [*used["device_name"].dropna().unique(), counts(plan, frame)]
    if (in_means := len(counted(used))) < len(used):
        told[-1] += f", {in_means} of them count"
    if plan.study.runs_a_setting != "1":
        told.append(f"{plan.study.runs_a_setting} a setting")
    told += _when(rows["started"].dropna())
    told += [f"{duration_words(wall)} in all"] if wall else []
    if any(settings[name].dataset.drawn for name in used["run"]):
        told.append("generated images")
    if any(not is_own(settings[name].model.name) for name in used["run"][used["weights"] == "random"]):
        told.append("random weights")
    return told


def _when(started: Iterable[str]) -> list[str]:
    """Return the first and the last day of the runs."""
    days = sorted({day for one in started if (day := _day(one))})
    if not days:
        return []
    return [f"{days[0]:%-d %b %Y}" if len(days) == 1 else f"{days[0]:%-d %b} to {days[-1]:%-d %b %Y}"]


def _day(started: str) -> date | None:
    """Return the day of a time, or None for a text that is none: a record may come from anywhere."""
    try:
        return datetime.fromisoformat(started).date()
    except ValueError:
        return None


def reduced(study: Study) -> list[str]:
    """Return a note that lists the keys of a reduced size with their full values; none at full size."""
    if not study.full:
        return []
    keys = [
        f"{key} {_plain(value)} in place of {_plain(study.full[key])}"
        for key, value in study.reduced.items()
        if key in study.full
    ]
    return [f"Reduced size: {'; '.join(keys)}. The full size: --config size=full"]


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "its default" if value is None else str(value)
