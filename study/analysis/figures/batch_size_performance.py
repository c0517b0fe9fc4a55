"""The blog's figure: bars with their times beside the line with the optimum marked; one row for each device."""

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.analysis import Analysis, Group, Level
from study.analysis.figures.style import BEST, COLOURS, LABEL_BOX, Drawn, batch_axis, marked, unmarked
from study.analysis.rows import group_rows
from study.analysis.stats.fits import predict
from study.analysis.stats.laws import by_name
from study.analysis.words import TOTALS, accuracy_words, listed, number, place_words, short_key
from study.artifacts.plan import Plan


def draw(plan: Plan, frame: pd.DataFrame, analysis: Analysis) -> Drawn | None:
    """Return times against the curve's factor; None in a study without a curve or without a successful run."""
    curve = plan.study.curve
    found = [one for one in group_rows(plan.study, frame, analysis) if any(level.time for level in one[0].levels)]
    groups = [group for group, _ in found]
    if curve is None or not groups:
        return None
    figure = Figure(figsize=(9.5, 3.9 * len(groups)))
    rows: Any = figure.subplots(len(groups), 2, squeeze=False)
    name, y = short_key(curve.x), TOTALS[curve.y]
    for (bars, line), (group, own) in zip(rows, found, strict=True):
        levels = [level for level in group.levels if level.time]
        _bars(bars, levels, group)
        reached = ", and the accuracy reached" if any(level.accuracy is not None for level in levels) else ""
        bars.set(title=f"{place_words(group.setting)}: mean and 95% interval", xlabel=f"{name}{reached}", ylabel=y)
        _line(line, levels, group, _points(own, curve.x, curve.y))
        batch_axis(line, [float(level.x or 0) for level in levels], name)
        marked = ", the fastest mean marked" if group.best else ""
        line.set(title=f"{place_words(group.setting)}: every run{marked}", ylabel=y, ylim=(0, None))
        line.legend(loc="best", frameon=True)
    return Drawn(figure, f"{name.capitalize()} and time", _caption(groups), _alt(groups, name))


def _bars(axes: Axes, levels: list[Level], group: Group) -> None:
    values = [level.time.value for level in levels if level.time]
    colours = [BEST if level.label == group.best else COLOURS[0] for level in levels]
    sns.barplot(
        x=[level.label if level.accuracy is None else f"{level.label}\n{level.accuracy:.0%}" for level in levels],
        y=values,
        hue=list(range(len(levels))),
        palette=colours,
        legend=False,
        saturation=1,
        ax=axes,
    )
    tops = []
    for index, level in enumerate(levels):
        assert level.time is not None
        if level.time.low is not None and level.time.high is not None:
            reach = [[level.time.value - level.time.low], [level.time.high - level.time.value]]
            axes.errorbar(index, level.time.value, reach, color="black", capsize=4, linewidth=1.2)
        tops.append(level.time.high or level.time.value)
    room = max(tops) * 0.025
    for index, (value, top) in enumerate(zip(values, tops, strict=True)):
        axes.text(index, top + room, f"{number(value)} s", ha="center", va="bottom", fontsize=9, bbox=LABEL_BOX)
    axes.set_ylim(0, max(tops) * 1.13)


def _points(rows: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    return rows[rows["outcome"] == "ok"].rename(columns={x: "x", y: "y"})[["x", "y", "excluded", "disturbed"]]


def _line(axes: Axes, levels: list[Level], group: Group, points: pd.DataFrame) -> None:
    xs = [float(level.x or 0) for level in levels]
    means = [level.time.value for level in levels if level.time]
    plain = unmarked(points)
    axes.plot(plain["x"], plain["y"], ".", color="0.45", markersize=6, label="one run", zorder=2)
    for label, part, look in marked(points):
        axes.plot(part["x"], part["y"], label=label, markersize=5, zorder=2, **look)
    axes.plot(xs, means, "-o", color=COLOURS[0], label="geometric mean", zorder=3)
    if group.best:
        at = next(index for index, level in enumerate(levels) if level.label == group.best)
        star: dict[str, Any] = {"color": BEST, "markersize": 17, "markeredgecolor": "white", "zorder": 4}
        axes.plot(xs[at], means[at], "*", label=f"fastest mean: {group.best}", **star)
    if group.curve and group.curve.power.reported:
        grid = np.geomspace(min(xs), max(xs), 100)
        times = predict(by_name("power"), group.curve.power, grid)
        axes.plot(grid, times, "--", color=COLOURS[1], label="power law")


def _caption(groups: list[Group]) -> str:
    parts = []
    for group in groups:
        if group.best is None:
            parts.append(f"On {place_words(group.setting, article=True)} it cannot be said which is the fastest.")
            continue
        rest = [label for label in group.indistinguishable if label != group.best]
        parts.append(
            f"On {place_words(group.setting, article=True)} the smallest mean is at {group.best}; "
            + (f"the data do not separate {listed(rest)} from it." if rest else "every other candidate is slower.")
        )
    return (
        "Geometric means over processes, with 95% intervals from log time = setting + start + block + noise. "
    ) + " ".join(parts)


def _alt(groups: list[Group], name: str) -> str:
    parts = []
    for group in groups:
        times = ", ".join(
            f"{level.label}: {number(level.time.value)} s{accuracy_words(level.accuracy)}"
            for level in group.levels
            if level.time
        )
        parts.append(f"{group.label}: {times}")
    return f"Bars and a line of the time against {name}. {'. '.join(parts)}."
