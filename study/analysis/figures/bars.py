"""Where a time goes: its parts as stacked bars on one scale, with words where they find room."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from study.analysis.figures.rows import lines_of
from study.analysis.figures.style import PALETTE, canvas, font, letters, plot, width_of
from study.analysis.figures.svg import Chart, in_both_widths, inline
from study.analysis.words import three_digits

Parts = Mapping[str, tuple[str, str]]
"""The words and the colour of each part, from left to right."""
TRAINING: Parts = {
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
"""Parts of a training time by their columns of the table of timings: see ``stats.rows``."""
BRIEF: Parts = {
    "start_up_seconds": ("start-up", "p-start"),
    "waiting_seconds": ("waiting for data", "p-wait"),
    "computing_seconds": ("computing", "p-comp"),
    "forward_seconds": ("forward", "p-comp2"),
    "backward_seconds": ("backward", "p-comp"),
    "optimizer_seconds": ("optimizer", "p-comp3"),
    "valid_seconds": ("validation", "p-val"),
    "rest_seconds": ("rest", "p-rest"),
}
"""Parts of a training time for the first screen; where computing is most of it, its three parts are told apart."""
COMPUTING = ("forward_seconds", "backward_seconds", "optimizer_seconds")
MOST = 0.6
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
    subtitle: str = ""
    caption: str = ""
    parts: Parts = field(default_factory=lambda: TRAINING)

    @property
    def bars(self) -> list[Bar]:
        """The bars of all groups."""
        return [bar for bars in self.groups.values() for bar in bars]

    @property
    def shown(self) -> list[str]:
        """The parts that take some time, in order."""
        return [part for part in self.parts if any(bar.parts.get(part) for bar in self.bars)]


def bars_chart(chart: BarsChart) -> Chart | None:
    """Return the chart as SVG in both widths with its colours; None without a bar."""
    if not chart.bars:
        return None
    wide, narrow = in_both_widths(lambda width: draw(chart, width), chart.title)
    key = tuple((_box(chart.parts[part][1]), chart.parts[part][0]) for part in chart.shown)
    return Chart(chart.title, chart.subtitle, chart.caption, wide, narrow, key)


def draw(chart: BarsChart, width: int, below: float = 0.0) -> Figure:
    """Return the chart as a figure of ``width`` pixels, with room ``below``; each bar stands below its label."""
    totals = [f"{three_digits(sum(bar.parts.values()))} s" for bar in chart.bars]
    room = width - max(map(width_of, totals)) - GAP
    names = [lines_of(bar.label, room, "bold") for bar in chart.bars]
    titles = {title: lines_of(title, width) for title in chart.groups if title}
    height = sum(LINE * len(lines) + 2 + BAR + GAP for lines in names)
    height += sum(LINE * len(lines) + GAP for lines in titles.values())
    figure = canvas(width, height + below)
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
            _bar(axes, bar, chart.parts, y, width)
            y += BAR + GAP
    return figure


def brief(bars: Sequence[Bar]) -> tuple[Bar, ...]:
    """Return the bars, whose parts are those of ``TRAINING``, with the parts of ``BRIEF``; the first decides which."""
    first = bars[0].parts
    split = sum(first.get(part, 0.0) for part in COMPUTING) >= MOST * sum(first.values())
    into = {"model_seconds": "start_up_seconds", "graph_warm_up_seconds": "start_up_seconds"}
    into |= {"data_wait_seconds": "waiting_seconds", "valid_seconds": "valid_seconds"}
    into |= {part: part if split else "computing_seconds" for part in COMPUTING}
    found = []
    for bar in bars:
        parts = dict.fromkeys(BRIEF, 0.0)
        for part, seconds in bar.parts.items():
            parts[into.get(part, "rest_seconds")] += seconds
        found.append(Bar(bar.label, parts))
    return tuple(found)


def _bar(axes: Axes, bar: Bar, parts: Parts, y: float, width: int) -> None:
    """Draw the parts of a bar one after the other, a pixel apart, each with its name and its seconds if they fit."""
    scale = width / axes.get_xlim()[1]
    begin = 0.0
    for part, (name, colour) in parts.items():
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
