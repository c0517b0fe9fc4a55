"""The main chart of a study: every run as a dot, the mean with its interval, and the accuracy under each level."""

from dataclasses import dataclass
from typing import Literal

from study.analysis.charts.rows import GAP, Column, Place, column, placed
from study.analysis.charts.svg import (
    LINE,
    Chart,
    Scale,
    cross,
    diamond,
    dot,
    drawn,
    element,
    grid,
    interval,
    lines_of,
    paragraph,
    time_scale,
    to_row,
    width_of,
    words,
)
from study.analysis.words import number

ROW, HEAD, FOOT, NOTE = 38, 15, 24, 13
SPREAD = 8
"""Largest distance of a dot from the middle of its row, in pixels."""

Kind = Literal["run", "disturbed", "aside"]
SERIES = {
    "run": "one run",
    "disturbed": "disturbed run",
    "aside": "excluded, in no number",
    "mean": "mean and 95% interval",
    "published": "published, on other hardware",
}
TONES = {"best": "smallest mean of the candidates", "doubt": "no candidate for the fastest"}
"""What the colours of a mean say."""


@dataclass(frozen=True)
class Dot:
    """One run."""

    name: str
    """Study and run, as the page's links name it."""
    seconds: float
    kind: Kind


@dataclass(frozen=True)
class Row:
    """One level: its runs, its mean, and how well it learned."""

    label: str
    note: str
    """Under the label: its accuracy, or why there is none."""
    doubtful: bool
    """Whether it is no candidate for the fastest."""
    best: bool
    dots: tuple[Dot, ...]
    mean: float | None
    low: float | None
    high: float | None
    published: float | None = None


@dataclass(frozen=True)
class Panel:
    """The levels that are compared with each other."""

    title: str
    rows: tuple[Row, ...]


def times_chart(panels: list[Panel], title: str, caption: str) -> Chart | None:
    """Return the chart of all panels, one below the other; None without a run. Panels of similar times share a scale.

    Every panel has a scale of its own where the slowest of one takes more than three times that of another.
    """
    shown = [panel for panel in panels if _values(panel)]
    if not shown:
        return None
    ends = [max(_values(panel)) for panel in shown]
    shared = max(ends) <= 3 * min(ends)
    together = [value for panel in shown for value in _values(panel)]

    def draw(width: int) -> tuple[float, list[str]]:
        notes = max(width_of(row.note, "small") for panel in shown for row in panel.rows)
        labels = [row.label for panel in shown for row in panel.rows]
        names = column(labels, width, "strong", min(0.34 * width, notes))
        top, parts = 0.0, []
        for panel in shown:
            height, drawing = _panel(panel, names, width, together if shared else _values(panel))
            parts.append(element("g", *drawing, transform=f"translate(0 {top:g})"))
            top += height
        return top, parts

    wide, narrow = drawn(draw, title)
    kinds = {dot.kind for panel in shown for row in panel.rows for dot in row.dots} | {"mean"}
    kinds |= {"published"} if any(row.published for panel in shown for row in panel.rows) else set()
    note = " Each panel has a scale of its own." if len(shown) > 1 and not shared else ""
    tones = {_tone(row) for panel in shown for row in panel.rows if row.mean}
    return Chart(
        title,
        wide,
        narrow,
        caption + note,
        {key: told for key, told in (SERIES | TONES).items() if key in kinds | tones},
    )


def _values(panel: Panel) -> list[float]:
    every = [
        value
        for row in panel.rows
        for value in (row.mean, row.low, row.high, row.published, *(dot.seconds for dot in row.dots))
    ]
    return [value for value in every if value]


def _panel(panel: Panel, names: Column, width: int, values: list[float]) -> tuple[float, list[str]]:
    """Return height and elements of a panel: its title, its rows, and the axis below them."""
    heading = lines_of(panel.title, width - 40.0, "title")
    top = HEAD + LINE * len(heading)
    places, bottom = placed([row.label for row in panel.rows], names, top, ROW, NOTE)
    scale = time_scale(values, names.left, width - (70 if width < 500 else 76))
    parts = [paragraph(heading, 0, 17, "title"), words("mean", float(width), 17, "small soft", "end")]
    parts += grid(scale, top - 4, bottom, " s")
    for place, row in zip(places, panel.rows, strict=True):
        parts += _row(row, scale, place, names.left, width)
    return bottom + FOOT, parts


def _row(row: Row, scale: Scale, place: Place, left: float, width: int) -> list[str]:
    tone, y = _tone(row), place.middle
    note = f"small {'warn' if row.doubtful else 'soft'}"
    parts = [place.name, words(row.note, left - GAP, place.under, note, "end", left - GAP)]
    parts += [_dot(dot, scale, y, at, tone) for at, dot in enumerate(row.dots)]
    if row.published:
        parts.append(diamond(scale(row.published), y))
    if row.mean:
        parts += _mean(row, row.mean, scale, y, tone)
        parts.append(
            words(f"{number(row.mean)} s", float(width), y + 4, f"strong {'warn' if row.doubtful else ''}", "end")
        )
    return parts


def _tone(row: Row) -> str:
    return "doubt" if row.doubtful else "best" if row.best else "plain"


def _dot(run: Dot, scale: Scale, y: float, place: int, tone: str) -> str:
    x, height = scale(run.seconds), y + SPREAD * (0, -0.8, 0.8, -0.4, 0.4)[place % 5]
    if run.kind == "aside":
        return to_row(run.name, cross(x, height, 4))
    return to_row(run.name, dot(x, height, 4, "hollow" if run.kind == "disturbed" else tone))


def _mean(row: Row, mean: float, scale: Scale, y: float, tone: str) -> list[str]:
    bar = {"x1": scale(mean), "x2": scale(mean), "y1": y - 12, "y2": y + 12}
    return [
        *interval(scale, row.low, row.high, y, tone),
        element("line", **bar, class_=f"mark mean {tone}"),
    ]
