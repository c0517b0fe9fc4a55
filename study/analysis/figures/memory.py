"""Peak memory of the device and of its host against the curve's factor."""

from dataclasses import dataclass, field
from textwrap import fill
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.analysis import Analysis
from study.analysis.figures.style import BEST, COLOURS, MARKERS, Drawn, batch_axis
from study.analysis.rows import group_rows
from study.analysis.words import bytes_words, device_words, short_key
from study.artifacts.plan import Plan
from study.config.study import Study

DEVICE = {
    "peak_device_allocated_bytes": "allocated by tensors",
    "peak_device_reserved_bytes": "reserved by torch",
    "peak_device_used_bytes": "whole device, driver included, ten samples a second",
}
HOST = {"peak_host_resident_bytes": "training process, without the loader's workers"}
"""What the workers share with it counts in each of them, so that a sum with them says nothing of the host's memory."""
LINES = ("-", "--", ":", "-.")
CROSSES = ("x", "+", "1", "2")
"""Markers of the levels at which memory did not suffice, one for each line style."""
GIB = 2**30
WIDTH, PANEL_HEIGHT = 8.6, 3.2
LEGEND_LETTERS, LEGEND_LINE = 30, 0.19


@dataclass(frozen=True)
class Line:
    """One quantity of one group: its median against the curve's factor."""

    label: str
    medians: "pd.Series[float]"
    quantity: int
    level: int


@dataclass(frozen=True)
class Panel:
    """A panel with the memory of a device or of its host."""

    title: str
    lines: list[Line] = field(default_factory=list)
    failures: dict[str, list[float]] = field(default_factory=dict)
    """Levels at which memory did not suffice, by the outcome of their runs in words."""


def draw(plan: Plan, frame: pd.DataFrame, analysis: Analysis) -> Drawn | None:
    """Return medians of the peaks; None without data, or without a numeric factor of the curve."""
    curve = plan.study.curve
    if curve is None or not pd.api.types.is_numeric_dtype(frame[curve.x]):
        return None
    panels = [panel for panel in _panels(plan.study, frame, analysis, curve.x) if panel.lines]
    if not panels:
        return None
    labels = [[*(line.label for line in panel.lines), *panel.failures] for panel in panels]
    lines = [sum(fill(label, LEGEND_LETTERS).count("\n") + 1 for label in own) for own in labels]
    heights = [max(PANEL_HEIGHT, 0.9 + LEGEND_LINE * count) for count in lines]
    figure = Figure(figsize=(WIDTH, sum(heights)))
    places: Any = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    name = short_key(curve.x)
    for axes, panel in zip(places.flat, panels, strict=True):
        _draw_panel(axes, panel)
        values = {float(x) for line in panel.lines for x in line.medians.index}
        batch_axis(axes, sorted(values.union(*panel.failures.values())), name)
        axes.set(title=panel.title, ylabel="peak memory (GiB)")
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0, frameon=False)
    return Drawn(figure, "Peak memory", _caption(panels), _alt(panels, name))


def _panels(study: Study, frame: pd.DataFrame, analysis: Analysis, x: str) -> list[Panel]:
    """Return for each device a panel of its own memory, if it has some, and one of its host's."""
    parts = [rows for _, rows in group_rows(study, frame, analysis)]
    panels = []
    for device in dict.fromkeys(str(rows["device"].iloc[0]) for rows in parts):
        mine = [rows for rows in parts if rows["device"].iloc[0] == device]
        if device == "cuda":
            panels.append(_panel(study, f"{device_words(device)}: memory of the device", mine, DEVICE, x))
        panels.append(_panel(study, f"{device_words(device)}: memory of the host", mine, HOST, x))
    return panels


def _panel(study: Study, title: str, parts: list[pd.DataFrame], quantities: dict[str, str], x: str) -> Panel:
    panel = Panel(title)
    others = [key for key in study.compared if key not in (x, "device")]
    for level, rows in enumerate(parts):
        prefix = ", ".join(_level_words(key, rows[key].iloc[0]) for key in others)
        prefix = f"{prefix}: " if prefix else ""
        ok = rows[rows["outcome"] == "ok"]
        for quantity, (column, words) in enumerate(quantities.items()):
            medians = ok.groupby(x)[column].median()  # a line is broken where a level has none
            if medians.notna().any():
                panel.lines.append(Line(prefix + words, medians, quantity, level))
        failed = rows.loc[rows["outcome"] == "out_of_memory", x]
        if len(failed):
            panel.failures[f"{prefix}out of memory"] = sorted({float(value) for value in failed})
    return panel


def _level_words(key: str, level: Any) -> str:
    """Return a level in words: a name alone, a number with its key."""
    return level if isinstance(level, str) else f"{short_key(key)} {level}"


def _draw_panel(axes: Axes, panel: Panel) -> None:
    """Draw a panel: colour and marker stand for the quantity, the stroke for the levels of the other factors."""
    for line in panel.lines:
        axes.plot(
            line.medians.index,
            line.medians / GIB,
            LINES[line.level % len(LINES)],
            color=COLOURS[line.quantity],
            marker=MARKERS[line.quantity],
            markersize=5 + 3 * line.quantity,  # where two lines lie on each other, the one beneath still shows
            fillstyle="full" if line.level % 2 == 0 else "none",
            zorder=4 - 0.5 * line.quantity,
            label=fill(line.label, LEGEND_LETTERS),
        )
    # Crosses have a strip of their own above every line, a row for each level of the other factors.
    rows = len(panel.failures)
    axes.set_ylim(0, max(line.medians.max() for line in panel.lines) / GIB * 1.08 / (1 - 0.08 * rows))
    for row, (label, values) in enumerate(panel.failures.items()):
        axes.plot(
            values,
            [0.96 - 0.08 * row] * len(values),
            linestyle="none",
            marker=CROSSES[row % len(CROSSES)],
            markersize=8,
            markeredgewidth=2,
            color=BEST,
            transform=axes.get_xaxis_transform(),
            label=fill(label, LEGEND_LETTERS),
        )


def _caption(panels: list[Panel]) -> str:
    labels = tuple(line.label for panel in panels for line in panel.lines)
    text = "Each run's peak of memory, as the median over the successful runs of a setting."
    if any(label.endswith(tuple(DEVICE.values())) for label in labels):
        text += (
            " Tensors are allocated from what torch has reserved on the device; the whole device holds the driver "
            "and any other process, too."
        )
    if any(label.endswith(DEVICE["peak_device_used_bytes"]) for label in labels):
        text += " Runs whose samples missed the peak of the whole device are not in its line."
    if any(panel.failures for panel in panels):
        text += " A cross marks a setting with a run that ran out of memory; its height is no value."
    return text


def _alt(panels: list[Panel], name: str) -> str:
    parts = []
    for panel in panels:
        words = [
            f"{line.label} {bytes_words(line.medians.min())} to {bytes_words(line.medians.max())}"
            for line in panel.lines
        ]
        words += [f"{label} at {', '.join(f'{x:g}' for x in values)}" for label, values in panel.failures.items()]
        parts.append(f"{panel.title}: {'; '.join(words)}")
    return f"Lines of the peak memory against {name}. {'. '.join(parts)}."
