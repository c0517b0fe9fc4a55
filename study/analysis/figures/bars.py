"""Where a time goes: its parts as stacked bars on one scale, with words where they find room."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from study.analysis.analysis import Analysis
from study.analysis.figures.rows import lines_of
from study.analysis.figures.style import PALETTE, canvas, font, letters, plot, width_of
from study.analysis.figures.svg import Chart, in_both_widths, inline
from study.analysis.rows import Levelled, graph_warm_up_sentence, parts_of
from study.analysis.words import place_words, three_digits

PARTS = {
    "model_seconds": ("building the model", "p-start"),
    "graph_warm_up_seconds": ("warm-up before capture", "p-warm"),
    "data_wait_seconds": ("waiting for data", "p-wait"),
    "transfer_seconds": ("host to device", "p-move"),
    "device_transform_seconds": ("transforms on the device", "p-prep"),
    "forward_seconds": ("forward", "p-comp2"),
    "backward_seconds": ("backward", "p-comp"),
    "optimizer_seconds": ("optimizer", "p-comp3"),
    "valid_seconds": ("validation", "p-val"),
    "other_seconds": ("rest", "p-rest"),
}
"""The words and the colour of each part of a time, from left to right, by its column of the table of timings."""
CAPTION = (
    "The mean of each setting, by the shares of its runs' time, all on one scale. Rest is the time outside the steps: "
    "ends of epochs, start and end of the loader's workers."
)
ON_A_GPU = " On a GPU the parts of a step are in the device's own timeline: it waits where it has no data."
BAR, LINE, GAP = 20.0, 16.0, 8.0
ROOM, LEAST = 26.0, 0.4
"""Pixels from which on a part has its seconds, and from which on it is drawn."""


@dataclass(frozen=True)
class Bar:
    """One time with the seconds of its parts."""

    label: str
    parts: Mapping[str, float]


@dataclass(frozen=True)
class BarsChart:
    """The times of each group, all on one scale; a group of its own has no title."""

    groups: Mapping[str, tuple[Bar, ...]]
    title: str
    caption: str = ""

    @property
    def bars(self) -> list[Bar]:
        """The bars of all groups."""
        return [bar for bars in self.groups.values() for bar in bars]

    @property
    def shown(self) -> list[str]:
        """The parts that take some time, in order."""
        return [part for part in PARTS if any(bar.parts.get(part) for bar in self.bars)]


def phases_of(groups: Levelled, analysis: Analysis) -> BarsChart:
    """Return the parts of each mean over the runs that count: a bar is as long as the mean in the tables."""
    found = {
        place_words(group.setting): tuple(Bar(*one) for one in parts_of(group, rows, analysis.y).items())
        for group, rows in groups
    }
    told = CAPTION + ON_A_GPU * any((rows["device"] == "cuda").any() for _, rows in groups)
    told += graph_warm_up_sentence(pd.concat([rows for _, rows in groups])) if groups else ""
    return BarsChart({group: own for group, own in found.items() if own}, "Where the time goes", told)


def bars_chart(chart: BarsChart) -> Chart | None:
    """Return the chart as SVG in both widths with its colours; None without a bar."""
    if not chart.bars:
        return None
    wide, narrow = in_both_widths(lambda width: draw(chart, width), chart.title)
    key = tuple((_box(PARTS[part][1]), PARTS[part][0]) for part in chart.shown)
    return Chart(chart.title, "", chart.caption, wide, narrow, key)


def draw(chart: BarsChart, width: int) -> Figure:
    """Return the chart as a figure of ``width`` pixels; each bar stands below its label."""
    totals = [f"{three_digits(sum(bar.parts.values()))} s" for bar in chart.bars]
    room = width - max(map(width_of, totals)) - GAP
    names = [lines_of(bar.label, room, "bold") for bar in chart.bars]
    titles = {title: lines_of(title, width) for title in chart.groups if title}
    height = sum(LINE * len(lines) + 2 + BAR + GAP for lines in names)
    height += sum(LINE * len(lines) + GAP for lines in titles.values())
    figure = canvas(width, height)
    axes = plot(figure, 0, width, 0, height)
    axes.set(xlim=(0, max(sum(bar.parts.values()) for bar in chart.bars)), xticks=[])
    y, told = 0.0, iter(zip(names, totals, strict=True))
    for title, bars in chart.groups.items():
        for place, line in enumerate(titles.get(title, []), 1):
            letters(figure, line, 0, y + LINE * place, "", "muted")
        y += (LINE * len(titles[title]) + GAP) if title else 0
        for bar in bars:
            lines, total = next(told)
            letters(figure, total, width, y + LINE - 3, "end")
            for place, line in enumerate(lines, 1):
                letters(figure, line, 0, y + LINE * place - 3, "bold")
            y += LINE * len(lines) + 2
            _bar(axes, bar, y, width)
            y += BAR + GAP
    return figure


def _bar(axes: Axes, bar: Bar, y: float, width: int) -> None:
    """Draw the parts of a bar one after the other, a pixel apart, each with its name and its seconds if they fit."""
    scale = width / axes.get_xlim()[1]
    begin = 0.0
    for part, (name, colour) in PARTS.items():
        seconds = bar.parts.get(part, 0.0)
        pixels = seconds * scale
        if pixels >= LEAST:
            size = max(pixels - 1, LEAST) / scale
            box = Rectangle((begin, y), size, BAR, facecolor=PALETTE[colour], linewidth=0)
            box.set_gid(f"mark piece {part.removesuffix('_seconds')}")
            axes.add_artist(box)
            told = [f"{name} {three_digits(seconds)} s", f"{three_digits(seconds)} s", three_digits(seconds)]
            fits = [text for text in told if width_of(text, "small") + 6 <= pixels and pixels >= ROOM]
            if fits:
                style: dict[str, Any] = {"fontproperties": font("small"), "ha": "center", "va": "baseline"}
                axes.text(begin + size / 2, y + BAR / 2 + 4.5, fits[0], color=PALETTE["on"], **style)
        begin += seconds


def _box(colour: str) -> str:
    figure = canvas(12, 12)
    figure.add_artist(Rectangle((0, 0), 1, 1, facecolor=PALETTE[colour], linewidth=0))
    return inline(figure)
