"""The parts of a time: a stacked bar for each level, a panel for each group."""

from collections.abc import Callable
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.analysis import Analysis
from study.analysis.figures.style import COLOURS, LABEL_BOX, Drawn
from study.analysis.rows import CONSTRUCTION, level_rows, parts_of
from study.analysis.stats.usable import keys_of
from study.analysis.wording.steps import graph_warm_up_sentence
from study.analysis.words import TOTALS, number, place_words, short_key
from study.artifacts.plan import Plan
from study.artifacts.setting import Setting


@dataclass(frozen=True)
class Piece:
    """One part of a bar; plain parts differ in lightness, the others in their pattern, so that grey is enough."""

    label: str
    colour: str
    hatch: str = ""


WAITING = "data_wait_seconds"
PIECES = {
    CONSTRUCTION: Piece("building the model", "#c9d6c4", "||||"),
    WAITING: Piece("waiting for data", "#f0b060"),
    "transfer_seconds": Piece("host to device", "#b388a8", "////"),
    "graph_warm_up_seconds": Piece("warm-up before capture", "#d9d9d9", "++++"),
    "device_transform_seconds": Piece("transforms on the device", "#e9d5e4", "...."),
    "forward_seconds": Piece("forward", "#5b9bc8"),
    "backward_seconds": Piece("backward", COLOURS[0]),
    "optimizer_seconds": Piece("optimizer", "#7fc29b", "\\\\\\\\"),
    "other_seconds": Piece("other", "#f7f7f7"),
    "valid_seconds": Piece("validation", COLOURS[4], "xxxx"),
}
"""The parts from the bottom of a bar to its top: see ``stats.parts``."""
PANEL_WIDTH, PANEL_HEIGHT, LEGEND_WIDTH = 4.2, 3.4, 2.1
BARS_POINTS, HEIGHT_POINTS = 235, 165
"""Smallest width that the bars of one panel share; the layout is not known before it is drawn."""
BAR_WIDTH = 0.76
TEXT_POINTS, SHARE_POINTS = 9, 8
LETTER = 0.62
"""Width of a letter over the height of the text, rounded up."""
LEAST_SHARE = 0.05
MOST_UPRIGHT = 12
"""Bars of a panel that stand side by side; more lie below each other, where each has room for its words."""
LYING_WIDTH, LYING_HEIGHT, LETTERS = 8.0, 0.21, 2.2
"""Width of a panel of lying bars, their words included; height for each of them, and letters of upright text."""


def draw(plan: Plan, frame: pd.DataFrame, analysis: Analysis) -> Drawn | None:
    """Return the seconds of each part of each mean; None where the study's time is no sum of parts."""
    tables = [
        (group.setting, _table(parts_of(group, rows, analysis.y)))
        for group, rows in level_rows(plan.study, frame, analysis)
    ]
    panels = [(group, table) for group, table in tables if len(table)]
    if not panels:
        return None
    nowhere = [part for part in panels[0][1] if not any(table[part].any() for _, table in panels)]
    panels = [(group, table.drop(columns=nowhere)) for group, table in panels]
    counts, name = [len(table) for _, table in panels], ", ".join(map(short_key, keys_of(plan.study)[0] or ["device"]))
    lying = max(counts) > MOST_UPRIGHT
    figure, grid = _lying_panels(counts) if lying else _upright_panels(len(panels))
    for axes, (group, table) in zip(grid, panels, strict=False):  # the last place may stay empty
        (_lying if lying else _bars)(axes, table)
        words = [fill(name, round(LETTERS * len(table))) if lying else name, TOTALS[analysis.y]]
        axes.set(title=place_words(group), xlabel=words[lying], ylabel=words[not lying])
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", reverse=True, frameon=False)
    on_gpu = bool((frame["device"] == "cuda").any())
    caption = _caption(on_gpu, len(panels)) + graph_warm_up_sentence(frame)
    return Drawn(figure, "Where the time goes", caption, _alt(panels, name))


def _upright_panels(count: int) -> tuple[Figure, list[Axes]]:
    columns = min(2, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(columns * PANEL_WIDTH + LEGEND_WIDTH, rows * PANEL_HEIGHT))
    grid: Any = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[count:]:
        axes.set_axis_off()
    return figure, list(grid.flat)


def _lying_panels(bars: list[int]) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(LYING_WIDTH + LEGEND_WIDTH, sum(1 + LYING_HEIGHT * count for count in bars)))
    grid: Any = figure.subplots(len(bars), 1, squeeze=False, height_ratios=bars)
    return figure, list(grid.flat)


def _table(parts: dict[str, dict[str, float]]) -> pd.DataFrame:
    """Return the seconds of each part (a column) of each level (a row), a line of its label for each factor."""
    return pd.DataFrame(list(parts.values()), index=[label.replace(", ", "\n") for label in parts])


def _stacked(bar: Callable[..., Any], table: pd.DataFrame) -> None:
    """Draw a bar of pieces for each row by ``bar``, a method of the axes."""
    start = pd.Series(0.0, index=table.index)
    for column in table:
        piece = PIECES[str(column)]
        look = {"color": piece.colour, "hatch": piece.hatch, "edgecolor": "0.25", "linewidth": 0.4}
        bar(range(len(table)), table[column], BAR_WIDTH, start, label=piece.label, **look)
        start = start + table[column]


def _bars(axes: Axes, table: pd.DataFrame) -> None:
    _stacked(axes.bar, table)
    axes.set_xticks(range(len(table)), list(table.index), rotation=_rotation(list(table.index)))
    axes.set_xlim(-0.6, len(table) - 0.4)
    axes.grid(visible=False, axis="x")
    _numbers(axes, table)


def _lying(axes: Axes, table: pd.DataFrame) -> None:
    """Draw the bars from the top down, each with its words before it and its total behind it."""
    _stacked(axes.barh, table)
    axes.set_yticks(range(len(table)), [label.replace("\n", ", ") for label in table.index], fontsize=TEXT_POINTS)
    axes.set_ylim(len(table) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    totals = table.sum(axis=1)
    axes.set_xlim(0, 1.15 * totals.max())
    for place, total in enumerate(totals):
        axes.text(1.01 * total, place, f" {number(total)} s", ha="left", va="center", fontsize=TEXT_POINTS)


def _numbers(axes: Axes, table: pd.DataFrame) -> None:
    """Write each bar's total above it, and the share of waiting inside it where that part has room for the number."""
    totals, waits = table.sum(axis=1), table[WAITING]
    below = table[[CONSTRUCTION]].sum(axis=1) if CONSTRUCTION in table else 0.0 * waits
    words = [f"{number(total)} s" for total in totals]
    rotation = _rotation(words)
    room = max(map(len, words)) * TEXT_POINTS * LETTER if rotation else TEXT_POINTS
    top = totals.max() * HEIGHT_POINTS / (HEIGHT_POINTS - room - 8)
    axes.set_ylim(0, top)
    lift = top * 3 / HEIGHT_POINTS
    for place, (word, total, wait, base) in enumerate(zip(words, totals, waits, below, strict=True)):
        axes.text(
            place, total + lift, word, ha="center", va="bottom", rotation=rotation, fontsize=TEXT_POINTS, bbox=LABEL_BOX
        )
        share = f"{wait / total:.0%}"
        wide = BAR_WIDTH * BARS_POINTS / len(totals) >= len(share) * SHARE_POINTS * LETTER
        if wait >= LEAST_SHARE * total and wide and wait / top * HEIGHT_POINTS >= SHARE_POINTS * 1.1:
            axes.text(place, base + wait / 2, share, ha="center", va="center", fontsize=SHARE_POINTS)


def _rotation(labels: list[str]) -> int:
    """Turn labels upright where the longest line of one has no room above or below its bar."""
    longest = max(len(line) for label in labels for line in label.split("\n"))
    return 90 if (longest + 1) * TEXT_POINTS * LETTER > BARS_POINTS / len(labels) else 0


def _caption(on_gpu: bool, panels: int) -> str:
    text = (
        "The parts of the time, in the order of the legend from its bottom up. A bar is as long as the mean of its "
        "setting in the tables; its pieces have their shares of the time of all runs that count. A percentage inside a "
        "bar is the share of waiting for data in the whole bar, given from 5% up where it has room. Other is the time "
        "outside the steps: the epochs' ends, the start and the end of the loader's workers, the schedule's own work. "
        "A setting without a successful run has no bar."
    )
    if on_gpu:
        text += (
            " On a GPU the phases of a step are in the device's own timeline (CUDA events), so waiting for data is "
            "the time in which the device had no data to work on."
        )
    return text + (" Each panel has a scale of its own." if panels > 1 else "")


def _alt(panels: list[tuple[Setting, pd.DataFrame]], name: str) -> str:
    parts = []
    for group, table in panels:
        shares = table.div(table.sum(axis=1), axis=0)
        main = str(shares.mean().idxmax())
        words = f"{group.label}: the largest part is {PIECES[main].label}, {_range(shares[main])}"
        parts.append(words if main == WAITING else f"{words}; waiting for data is {_range(shares[WAITING])}")
    return f"Stacked bars of the parts of the time against {name}. {'. '.join(parts)}."


def _range(shares: "pd.Series[float]") -> str:
    low, high = f"{shares.min():.0%}", f"{shares.max():.0%}"
    return low if low == high else f"{low} to {high}"
