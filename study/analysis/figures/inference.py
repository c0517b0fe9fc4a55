"""Throughput and latency of inference against batch size: one row for each device, one line for each setting."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.analysis import Analysis
from study.analysis.figures.style import COLOURS, MARKERS, Drawn, batch_axis, log_y_axis
from study.analysis.rows import group_rows
from study.analysis.words import device_words, number, short_key
from study.artifacts.plan import Plan

LATENCIES = ["latency_p50_seconds", "latency_p99_seconds"]
STROKES = ("-", "--", "-.", ":")
APART = 0.02
"""Share of the axis between the marks of two lines at one batch size, so that bars do not overlap."""
Lines = dict[str, pd.DataFrame]


def draw(plan: Plan, frame: pd.DataFrame, analysis: Analysis) -> Drawn | None:
    """Return medians over the runs; None in a study without inference, or without a numeric factor of the curve."""
    curve = plan.study.curve
    if curve is None or not pd.api.types.is_numeric_dtype(frame[curve.x]):
        return None
    panels = _panels(plan, frame, analysis, curve.x)
    if not panels:
        return None
    figure = Figure(figsize=(9.5, 4.3 * len(panels)))
    rows: Any = figure.subplots(len(panels), 2, squeeze=False)
    for (left, right), (device, lines) in zip(rows, panels.items(), strict=True):
        values = sorted({float(x) for table in lines.values() for x in table.index})
        for place, (label, table) in enumerate(lines.items()):
            left.plot(table.index, table["images_per_second"], label=label, **_look(place))
            _latency(right, table, (values[-1] / values[0]) ** (APART * (place - (len(lines) - 1) / 2)), place)
        left.set(title=f"{device_words(device)}: throughput", ylabel="images per second")
        right.set(title=f"{device_words(device)}: latency", ylabel="milliseconds a batch")
        for axes in (left, right):
            log_y_axis(axes)
            batch_axis(axes, values, short_key(curve.x))
        left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, frameon=False)
    return Drawn(figure, "Throughput and latency", _caption(), _alt(panels, short_key(curve.x)))


def _panels(plan: Plan, frame: pd.DataFrame, analysis: Analysis, x: str) -> dict[str, Lines]:
    """Return for each device the medians by batch size, by the levels that distinguish its line."""
    others = [key for key in plan.study.compared if key not in (x, "device")]
    panels: dict[str, Lines] = {}
    for _, rows in group_rows(plan.study, frame, analysis):
        ok = rows[rows["outcome"] == "ok"].dropna(subset=LATENCIES)
        if len(ok):
            setting = ", ".join(str(ok[key].iloc[0]) for key in others)
            label = f"{setting}: " * bool(setting) + f"accuracy {ok['accuracy'].mean():.1%}"
            medians = ok.groupby(x)[["images_per_second", *LATENCIES]].median()
            panels.setdefault(str(ok["device"].iloc[0]), {})[label] = medians
    return panels


def _latency(axes: Axes, table: pd.DataFrame, shift: float, place: int) -> None:
    """Draw the median with a bar up to the 99th percentile."""
    middle, high = (1000 * table[column] for column in LATENCIES)
    look = _look(place)
    axes.plot(table.index * shift, middle, **look)
    axes.errorbar(table.index * shift, middle, [0 * middle, high - middle], fmt="none", ecolor=look["color"], capsize=3)


def _look(place: int) -> dict[str, Any]:
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": MARKERS[place % len(MARKERS)],
        "linestyle": STROKES[place % len(STROKES)],
    }


def _caption() -> str:
    return (
        "A trained network takes one batch after another; the images lie on the device. Left: images over "
        "the time of all timed batches. Right: the median time of a batch, with a bar up to its 99th percentile; "
        "marks at one batch size are set apart to be seen. Each value is the median over the runs, and both scales are "
        "logarithmic. The accuracy is that of the converted network on the validation images."
    )


def _alt(panels: dict[str, Lines], name: str) -> str:
    parts = []
    for device, lines in panels.items():
        for label, table in lines.items():
            told = ", ".join(
                f"{x:g}: {number(row['images_per_second'])} images/s, {number(1000 * row[LATENCIES[0]])} ms"
                for x, row in table.iterrows()
            )
            parts.append(f"{device_words(device)}, {label}, by {name}: {told}")
    return f"Lines of throughput and of latency. {'; '.join(parts)}."
