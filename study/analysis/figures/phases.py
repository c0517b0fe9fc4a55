"""The phases of a run's time: a stacked bar for each level of the curve's factor, a panel for each group."""

from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.figures.style import COLOURS, LABEL_BOX, Drawn
from study.analysis.stats.analysis import Analysis
from study.analysis.stats.rows import group_rows
from study.analysis.words import TOTALS, device_words, number, short_key
from study.artifacts.plan import Plan
from study.config.study import Study, shown


@dataclass(frozen=True)
class Piece:
    """One part of a bar; plain parts differ in lightness, the others in their pattern, so that grey is enough."""

    label: str
    colour: str
    hatch: str = ""


WAITING = "data_wait_seconds"
PIECES = {
    WAITING: Piece("waiting for data", "#f0b060"),
    "transfer_seconds": Piece("host to device", "#b388a8", "////"),
    "device_transform_seconds": Piece("transforms on the device", "#e9d5e4", "...."),
    "forward_seconds": Piece("forward", "#5b9bc8"),
    "backward_seconds": Piece("backward", COLOURS[0]),
    "optimizer_seconds": Piece("optimizer", "#7fc29b", "\\\\\\\\"),
    "other_seconds": Piece("other", "#f7f7f7"),
    "valid_seconds": Piece("validation", COLOURS[4], "xxxx"),
}
"""The parts from the bottom of a bar to its top; they add up to ``fit_seconds``."""
COLUMNS = list(PIECES)
PANEL_WIDTH, PANEL_HEIGHT, LEGEND_WIDTH = 4.2, 3.4, 2.1
BARS_POINTS, HEIGHT_POINTS = 235, 165
"""Smallest width that the bars of one panel share; the layout is not known before it is drawn."""
BAR_WIDTH = 0.76
TEXT_POINTS, SHARE_POINTS = 9, 8
LETTER = 0.62
"""Width of a letter over the height of the text, rounded up."""
LEAST_SHARE = 0.05


def draw(plan: Plan, frame: pd.DataFrame, analysis: Analysis) -> Drawn | None:
    """Return mean seconds of each phase; None where no successful run has them."""
    means = [(group.label, _means(plan.study, rows)) for group, rows in group_rows(plan.study, frame, analysis)]
    panels = [(label, table) for label, table in means if len(table)]
    if not panels:
        return None
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(columns * PANEL_WIDTH + LEGEND_WIDTH, rows * PANEL_HEIGHT))
    grid: Any = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    name = ", ".join(short_key(key) for key in _bar_keys(plan.study))
    for axes, (label, table) in zip(grid.flat, panels, strict=False):  # the last place may stay empty
        _bars(axes, table)
        axes.set(title=device_words(label), xlabel=name, ylabel=TOTALS["fit_seconds"])
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", reverse=True, frameon=False)
    on_gpu = bool((frame["device"] == "cuda").any())
    return Drawn(figure, "Where the time goes", _caption(on_gpu, len(panels)), _alt(panels, name))


def _bar_keys(study: Study) -> list[str]:
    """Return the factors in which the bars of a panel differ; each device has panels of its own."""
    return [study.curve.x] if study.curve else [key for key in study.compared if key != "device"] or ["device"]


def _means(study: Study, rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean seconds, a row for each bar by its label, a column for each piece; medians would not add up."""
    ok = rows[rows["outcome"] == "ok"].dropna(subset=COLUMNS)
    keys = _bar_keys(study)
    parts = [(level, part[COLUMNS].mean()) for level, part in ok.groupby(keys, dropna=False)]
    if study.curve is None:  # in every panel in the same order, that of the study's file; a curve's are sorted
        orders = [[_text(shown(study, key, level)) for level in study.factors.get(key, [])] for key in keys]
        parts.sort(key=lambda item: [_place(order, level) for order, level in zip(orders, item[0], strict=True)])
    labels = ["\n".join(map(_text, level)) for level, _ in parts]
    return pd.DataFrame([means for _, means in parts], columns=COLUMNS).set_axis(labels, axis=0)


def _text(level: Any) -> str:
    return f"{level:g}" if isinstance(level, float) else str(level)


def _place(order: list[str], level: Any) -> int:
    return order.index(_text(level)) if _text(level) in order else len(order)


def _bars(axes: Axes, table: pd.DataFrame) -> None:
    places = range(len(table))
    bottom = pd.Series(0.0, index=table.index)
    for column, piece in PIECES.items():
        axes.bar(
            places,
            table[column],
            BAR_WIDTH,
            bottom,
            color=piece.colour,
            hatch=piece.hatch,
            edgecolor="0.25",
            linewidth=0.4,
            label=piece.label,
        )
        bottom = bottom + table[column]
    axes.set_xticks(places, list(table.index), rotation=_rotation(list(table.index)))
    axes.set_xlim(-0.6, len(table) - 0.4)
    axes.grid(visible=False, axis="x")
    _numbers(axes, bottom, table[WAITING])


def _numbers(axes: Axes, totals: "pd.Series[float]", waits: "pd.Series[float]") -> None:
    """Write each bar's total above it, and the share of waiting inside it where that part has room for the number."""
    words = [f"{number(total)} s" for total in totals]
    rotation = _rotation(words)
    room = max(map(len, words)) * TEXT_POINTS * LETTER if rotation else TEXT_POINTS
    top = totals.max() * HEIGHT_POINTS / (HEIGHT_POINTS - room - 8)
    axes.set_ylim(0, top)
    lift = top * 3 / HEIGHT_POINTS
    for place, (word, total, wait) in enumerate(zip(words, totals, waits, strict=True)):
        axes.text(
            place, total + lift, word, ha="center", va="bottom", rotation=rotation, fontsize=TEXT_POINTS, bbox=LABEL_BOX
        )
        share = f"{wait / total:.0%}"
        wide = BAR_WIDTH * BARS_POINTS / len(totals) >= len(share) * SHARE_POINTS * LETTER
        if wait >= LEAST_SHARE * total and wide and wait / top * HEIGHT_POINTS >= SHARE_POINTS * 1.1:
            axes.text(place, wait / 2, share, ha="center", va="center", fontsize=SHARE_POINTS)


def _rotation(labels: list[str]) -> int:
    """Turn labels upright where the longest line of one has no room above or below its bar."""
    longest = max(len(line) for label in labels for line in label.split("\n"))
    return 90 if (longest + 1) * TEXT_POINTS * LETTER > BARS_POINTS / len(labels) else 0


def _caption(on_gpu: bool, panels: int) -> str:
    text = (
        "The parts of the training time, from the bottom up as in the legend. Each piece is its mean over the "
        "successful runs, so that the pieces add up to the mean training time, which stands above the bar. A "
        "percentage inside a bar is the share of waiting for data in the whole bar, validation included, given from "
        "5% up where it has room. Other is the time outside the steps: the epochs' ends, the start and the end of the "
        "loader's workers, the schedule's own work. "
        "A setting without a successful run has no bar."
    )
    if on_gpu:
        text += (
            " On a GPU the phases of a step are in the device's own timeline (CUDA events), so waiting for data is "
            "the time in which the device had no data to work on."
        )
    return text + (" Each panel has a scale of its own." if panels > 1 else "")


def _alt(panels: list[tuple[str, pd.DataFrame]], name: str) -> str:
    parts = []
    for label, table in panels:
        shares = table.div(table.sum(axis=1), axis=0)
        main = str(shares.mean().idxmax())
        words = f"{label}: the largest part is {PIECES[main].label}, {_range(shares[main])}"
        parts.append(words if main == WAITING else f"{words}; waiting for data is {_range(shares[WAITING])}")
    return f"Stacked bars of the phases of the training time against {name}. {'. '.join(parts)}."


def _range(shares: "pd.Series[float]") -> str:
    low, high = f"{shares.min():.0%}", f"{shares.max():.0%}"
    return low if low == high else f"{low} to {high}"
