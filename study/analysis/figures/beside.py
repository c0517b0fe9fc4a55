"""Ratios that a document published beside the same ratios measured here."""

from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.figures.style import COLOURS, Drawn, log_y_axis
from study.analysis.published.beside import SHARES, Row, Series, beside, varied
from study.analysis.stats.analysis import Analysis
from study.analysis.stats.rows import level_rows, means_of
from study.analysis.words import number
from study.artifacts.plan import Plan

LETTERS = 14
WIDE = 8.0
"""Largest ratio over the smallest, from which the axis is logarithmic."""


def draw(plan: Plan, frame: pd.DataFrame, analysis: Analysis) -> Drawn | None:
    """Return a panel for each published series with two or more figures measured here; None without one."""
    if plan.beside is None:
        return None
    means = means_of(level_rows(plan.study, frame, analysis))
    series = [one for one in varied(beside(plan.study, frame, plan.beside, means)) if one.metric not in SHARES]
    if not series:
        return None
    columns = min(2, len(series))
    lines = -(-len(series) // columns)
    figure = Figure(figsize=(4.9 * columns, 3.6 * lines + 0.4))
    panels: Any = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, one in zip(panels, series, strict=False):
        _panel(axes, one)
    for axes in panels[len(series) :]:
        axes.set_visible(False)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return Drawn(
        figure,
        "Beside the published figures",
        "Each figure over the first of its series, published (open) and measured here (filled, with a 95% t interval "
        "paired within blocks). The hardware differs, so only ratios are shown; the table has the figures "
        "themselves, and the other differences.",
        " ".join(f"{one.words}, {one.table}: {_words(one)}." for one in series),
    )


def _panel(axes: Axes, one: Series) -> None:
    rows = [row for row in one.rows if row.ours or row.label == one.base]
    places = np.arange(len(rows))
    axes.plot(
        places - 0.1,
        [row.published_ratio or np.nan for row in rows],
        "s",
        color=COLOURS[1],
        markerfacecolor="white",
        label="published",
    )
    values = np.array([row.ours_ratio.value if row.ours_ratio else 1.0 for row in rows])
    low = np.array(
        [(row.ours_ratio.low if row.ours_ratio else None) or value for row, value in zip(rows, values, strict=True)]
    )
    high = np.array(
        [(row.ours_ratio.high if row.ours_ratio else None) or value for row, value in zip(rows, values, strict=True)]
    )
    axes.errorbar(
        places + 0.1, values, [values - low, high - values], fmt="o", capsize=4, color=COLOURS[0], label="measured here"
    )
    axes.axhline(1, color="0.4", linewidth=1, linestyle=":")
    axes.set_xticks(places, [fill(row.label, LETTERS) for row in rows])
    axes.set_xlim(-0.5, len(rows) - 0.5)
    axes.set(title=f"{one.words}\n{one.table}", xlabel=one.setting, ylabel=f"over that at {one.base}")
    axes.tick_params(axis="x", labelsize=8.5)
    every = [*values, *(row.published_ratio for row in rows if row.published_ratio)]
    if max(every) > WIDE * min(every):
        log_y_axis(axes)
    else:
        axes.set_ylim(0, 1.15 * max(*every, *high))


def _words(one: Series) -> str:
    return "; ".join(f"{row.label} {_pair(row)}" for row in one.rows if row.ours_ratio)


def _pair(row: Row) -> str:
    ours = number(row.ours_ratio.value) if row.ours_ratio else "not measured"
    return f"{number(row.published_ratio or 0)} published, {ours} here"
