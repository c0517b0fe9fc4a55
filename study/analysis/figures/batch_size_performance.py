"""The blog's figure: bars with their times beside the line with the optimum marked; one row for
each device.

Of the study's law it shows the line.
"""

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.analysis import Analysis
from study.analysis.answers.group import Group, Level
from study.analysis.figures.rows import lines_of
from study.analysis.figures.style import COLOURS, LABEL_BOX, PALETTE, Drawn, printable
from study.analysis.rows import group_rows
from study.analysis.stats.fits import predict
from study.analysis.stats.laws import by_name
from study.analysis.words import TOTALS, accuracy_words, law_formula, number, place_words, short_key
from study.artifacts.plan import Plan

CAPTION = (
    "Geometric means over processes, with 95% intervals from log time = setting + "
    "start + block + noise."
)

COLUMN = 330
"""Width of a title, in pixels of the page's letters: the next column has a title, too."""


def draw(plan: Plan, frame: pd.DataFrame, analysis: Analysis) -> Drawn | None:
    """Return times against the curve's factor; None in a study without a curve or without a
    successful run."""
    curve = plan.study.curve
    found = [
        one
        for one in group_rows(plan.study, frame, analysis.groups)
        if any(level.time for level in one[0].levels)
    ]
    groups = [group for group, _ in found]
    if curve is None or not groups:
        return None
    figure = Figure(figsize=(9.5, 3.9 * len(groups)))
    rows: Any = figure.subplots(len(groups), 2, squeeze=False)
    name, y = short_key(curve.x), TOTALS[curve.y]
    for (bars, line), (group, own) in zip(rows, found, strict=True):
        levels = [level for level in group.levels if level.time]
        _bars(bars, levels, group)
        reached = (
            ", and the accuracy reached"
            if any(level.accuracy is not None for level in levels)
            else ""
        )
        title = f"{printable(place_words(group.setting))}: mean and 95% interval"
        bars.set_title("\n".join(lines_of(title, COLUMN)), loc="left")
        bars.set(xlabel=f"{name}{reached}", ylabel=y)
        _line(
            line, levels, group, own[own["outcome"] == "ok"].assign(x=own[curve.x], y=own[curve.y])
        )
        star = ", the fastest mean marked" if group.best else ""
        line.set_title(f"every run{star}", loc="left")
        line.set(xlabel=name, ylabel=y, ylim=(0, None))
        line.legend(loc="best", frameon=True)
    return Drawn(figure, f"{name.capitalize()} and time", CAPTION, _alt(groups, name))


def _bars(axes: Axes, levels: list[Level], group: Group) -> None:
    times = [level.time for level in levels if level.time]
    labels = [
        printable(level.label) + ("" if level.accuracy is None else f"\n{level.accuracy:.0%}")
        for level in levels
    ]
    colours = [
        PALETTE["answer"] if level.label == group.best else PALETTE["other"] for level in levels
    ]
    places = list(range(len(levels)))
    values = [time.value for time in times]
    sns.barplot(
        x=labels, y=values, hue=places, palette=colours, legend=False, saturation=1, ax=axes
    )
    tops = [time.high or time.value for time in times]
    for place, time, top in zip(places, times, tops, strict=True):
        if time.low is not None and time.high is not None:
            reach = [[time.value - time.low], [time.high - time.value]]
            axes.errorbar(place, time.value, reach, color=PALETTE["ink"], capsize=4, linewidth=1.2)
        told = f"{number(time.value)} s"
        axes.text(
            place,
            top + 0.025 * max(tops),
            told,
            ha="center",
            va="bottom",
            fontsize=9,
            bbox=LABEL_BOX,
        )
    axes.set_ylim(0, max(tops) * 1.13)


def _line(axes: Axes, levels: list[Level], group: Group, points: pd.DataFrame) -> None:
    xs = [float(level.x or 0) for level in levels]
    means = [level.time.value for level in levels if level.time]
    if min(xs) > 0:
        axes.set_xscale("log", base=2)
    aside = points["excluded"].notna()
    kinds = ((~aside, ".", "out", "one run"), (aside, "x", "ink", "excluded, in no number"))
    for chosen, marker, colour, label in kinds:
        part = points[chosen]
        if len(part):
            axes.plot(
                part["x"],
                part["y"],
                marker,
                color=PALETTE[colour],
                markersize=6,
                label=label,
                zorder=2,
            )
    axes.plot(xs, means, "-o", color=PALETTE["other"], label="geometric mean", zorder=3)
    if group.best:
        at = next(index for index, level in enumerate(levels) if level.label == group.best)
        star: dict[str, Any] = {
            "color": PALETTE["answer"],
            "markersize": 17,
            "markeredgecolor": "white",
            "zorder": 4,
        }
        axes.plot(xs[at], means[at], "*", label=f"fastest mean: {printable(group.best)}", **star)
    fit = group.curve
    if fit and fit.best and fit.best != "constant" and fit.models[fit.best].reported is not False:
        grid = np.geomspace(min(xs), max(xs), 100)
        times = predict(by_name(fit.best), fit.models[fit.best], grid)
        axes.plot(grid, times, "--", color=COLOURS[1], label=f"law: {law_formula(fit.best)}")
    axes.set_xticks(xs, [f"{x:g}" for x in xs])
    axes.minorticks_off()


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
