"""Time against the order of execution: a machine that drifts shows here."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from study.analysis.figures.style import BEST, COLOURS, MARKERS, Drawn, marked, unmarked
from study.analysis.stats.analysis import Analysis
from study.analysis.stats.rows import level_rows, over_means
from study.artifacts.plan import Plan

MANY_RUNS = 100
"""Runs from which a running median is drawn, and dots are smaller."""
WINDOW = 31
"""Runs of a running median."""
MOST_SHAPES = 2000
"""Dots from which they are one picture in the file, which would hold a shape for each."""


def draw(plan: Plan, frame: pd.DataFrame, analysis: Analysis) -> Drawn | None:
    """Return each run's time over its level's mean, in the order of execution; None with fewer than four runs."""
    ok = over_means(level_rows(plan.study, frame, analysis), analysis.y)
    if len(ok) < 4 or ok.groupby(plan.study.compared or ["device"]).size().max() < 2:
        return None
    relative = ok["over"]
    place = pd.Series(range(1, len(ok) + 1), index=ok.index)
    figure = Figure(figsize=(7, 3.4))
    axes = figure.subplots()
    look: dict[str, Any] = {"linestyle": "none", "rasterized": len(ok) > MOST_SHAPES}
    look |= {"markersize": 3, "alpha": 0.6} if len(ok) >= MANY_RUNS else {}
    for label, rows, colour in _told_apart(unmarked(ok)):
        axes.plot(place[rows], relative[rows], label=label, **look, **colour)
    for label, part, mark in marked(ok):
        axes.plot(place[part.index], relative[part.index], label=label, **mark)
    if len(ok) >= MANY_RUNS:
        middle = relative[ok["set_aside"].isna()].rolling(WINDOW, center=True, min_periods=WINDOW // 2).median()
        axes.plot(place[middle.index], middle, color=BEST, linewidth=1.2, label=f"median of {WINDOW} runs")
    axes.axhline(1, color="0.4", linewidth=1, linestyle=":")
    axes.set(xlabel="order of execution", ylabel="time over its setting's mean")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    return Drawn(
        figure,
        "Order",
        "Each run's time over the mean of its setting, as executed. A slope or a step comes from the machine, not "
        "from the setting." + (f" The line is the median of {WINDOW} runs." if len(ok) >= MANY_RUNS else ""),
        f"Relative time of {len(ok)} runs in the order of execution, "
        f"from {relative.min():.2f} to {relative.max():.2f}.",
    )


def _told_apart(plain: pd.DataFrame) -> list[tuple[str, "pd.Index[Any]", dict[str, Any]]]:
    """Return the runs by block where the colours suffice, else by start, else as one; each with its label and look."""
    starts = "session " + plain["session"].astype(int).astype(str)
    for names in (starts + ", block " + plain["block"].astype(str), starts):
        distinct = list(dict.fromkeys(names))
        if len(distinct) <= len(COLOURS):
            looks = [{"color": COLOURS[at], "marker": MARKERS[at]} for at in range(len(distinct))]
            return [(name, names.index[names == name], look) for name, look in zip(distinct, looks, strict=True)]
    return [(f"a run of {starts.nunique()} sessions", plain.index, {"color": COLOURS[0], "marker": MARKERS[0]})]
