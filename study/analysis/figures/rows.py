"""A chart of rows: a row for each setting with every run as a dot, the mean, its interval, and the
words beside it.

Its axis is a time from zero, a logarithmic one, or a ratio with a line at 1. The name of a group
stands above its rows. A row's name stands left of its marks, or above them where it finds no room
there, as on a phone; none is cut.
"""

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.figures.style import SMALL, TEXT, WIDE, Chart, Marks, Sheet, ticks, width_of
from study.analysis.stats.estimate import Estimate
from study.analysis.words import three_digits

Look = Literal["answer", "other", "out"]
"""Faster than the others or tied for it; the rest; what did not learn as well."""
LINE, LOW, HIGH, PAIRED = 16.0, 19.0, 38.0, 56.0
"""Pixels of a line of letters, and of a row: of one line, of two, and where an arrow leads to the
next."""
TOP, GROUP, FOOT, GAP = 18.0, 15.0, 26.0, 12.0
RADIUS, LANE = 3.4, 0.65
"""Pixels of a dot, and how far a run is moved to the side, as a part of half the mean's bar."""
TICK = 55
"""Pixels for each line of a grid."""
NEAR = 1.5
"""An axis from 0 holds a claim up to so many times its longest time."""
MOST_WITH_ACCURACY = 8
"""Rows of a chart that has the accuracy under each verdict."""


class Dot(NamedTuple):
    """One run, or one pair of runs."""

    value: float
    link: str | None = None
    """The address of the run's row on the page; None for a pair."""
    excluded: bool = False
    """Whether it is in no number."""
    block: object = None
    """What the runs of one block share."""


@dataclass(frozen=True)
class Row:
    """One setting, or one ratio. The verdict of a setting that failed is its cause, and stands in
    place of its dots."""

    label: str
    dots: Sequence[Dot] = ()
    time: Estimate | None = None
    look: Look = "other"
    verdict: str = ""
    accuracy: str = ""
    ratio: str = ""
    """Its time over the best one's, as an interval."""
    claimed: float | None = None
    best: bool = False
    """Whether its mean is the smallest of its group."""
    unit: str = " s"

    @property
    def ink(self) -> str:
        """The colour of its words."""
        return {"answer": "answer", "out": "muted", "other": "ink"}[self.look]

    @property
    def mean(self) -> str:
        """Its mean in words."""
        return f"{three_digits(self.time.value)}{self.unit}" if self.time else ""


class RowGroup(NamedTuple):
    """The rows of one way, with its name. An ``arrow`` with so many lines of words leads from the
    first of two rows to the other."""

    rows: Sequence[Row]
    name: str = ""
    arrow: Sequence[str] = ()


@dataclass(frozen=True)
class RowsChart:
    """All that the chart shows."""

    groups: Sequence[RowGroup]
    title: str
    subtitle: str = ""
    axis: Literal["linear", "log", "ratio"] = "linear"

    @cached_property
    def rows(self) -> list[Row]:
        """The rows of all groups."""
        return list(chain.from_iterable(group.rows for group in self.groups))

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the axis."""
        low, high = ends_of(self.rows, self.axis != "linear")
        return (min(low, 1 / 1.15), max(high, 1.15)) if self.axis == "ratio" else (low, high)

    def words(self, row: Row, wide: bool) -> tuple[str, str]:
        """Return what stands beside a row, and small below it: the verdict; where there is
        room its ratio to the best; and the accuracy, which stands alone where it is the reason."""
        if row.look == "out" and row.accuracy:
            return row.accuracy, ""
        ratio = f"{row.ratio} times" if row.ratio and wide else ""
        under = ", ".join(filter(None, (ratio, row.accuracy)))
        return row.verdict, under if len(self.rows) <= MOST_WITH_ACCURACY else ""


def ends_of(rows: Sequence[Row], log: bool) -> tuple[float, float]:
    """Return both ends of an axis, which begins at 0 or is logarithmic: it holds the runs that
    count, the means, and claims that are near; a logarithmic one every interval and claim."""
    dots = chain.from_iterable(row.dots for row in rows)
    held = [dot.value for dot in dots if not dot.excluded]
    held += [row.time.value for row in rows if row.time]
    room = math.inf if log else NEAR * max(held)
    held += [row.claimed for row in rows if row.claimed is not None and row.claimed <= room]
    if not log:
        return 0.0, 1.1 * max(held)
    for row in rows:
        held += row.time.bounds or () if row.time else ()
    return min(held) / 1.15, 1.15 * max(held)


def key_of(rows: Sequence[Row], run: str = "one run") -> tuple[tuple[str, str], ...]:
    """Return the kinds of the rows' marks with their words; ``run`` is what a dot is."""
    dots = chain.from_iterable(row.dots for row in rows)
    bounds = any(row.time and row.time.bounds for row in rows)
    kinds = {
        "run": (run, True),
        "mean": ("mean, 95% interval", bounds),
        "bare": ("mean, no interval", not bounds),
        "out": ("did not learn as well", any(row.look == "out" for row in rows)),
        "excluded": ("excluded", any(dot.excluded for dot in dots)),
        "claim": ("the claim, in seconds", any(row.claimed is not None for row in rows)),
    }
    return tuple((kind, told) for kind, (told, shown) in kinds.items() if shown)


def rows_chart(chart: RowsChart) -> Chart | None:
    """Return the chart with the signs of its marks; None without a mean."""
    if not any(row.time for row in chart.rows):
        return None
    return Chart(
        title=chart.title,
        subtitle=f"{chart.subtitle}{'; logarithmic axis' if chart.axis != 'linear' else ''}",
        draw=partial(draw, chart),
        key=key_of(chart.rows, "one pair of settings" if chart.axis == "ratio" else "one run"),
    )


def _widest(texts: Iterable[str], weight: str = "bold") -> float:
    return max((width_of(text, TEXT, weight) for text in texts if text), default=0.0)


def lines_of(text: str, room: float, weight: str = "normal") -> list[str]:
    """Return a text in lines of ``room`` pixels, broken at its spaces, or within a word that is
    longer."""
    most = max(len(text), 1)
    while True:
        lines = textwrap.wrap(text, most, break_on_hyphens=False)
        if most == 1 or _widest(lines, weight) <= room:
            return lines
        most -= 1


def draw(chart: RowsChart, width: int) -> Figure:
    """Return the chart as a figure of ``width`` pixels."""
    # Labels stand at the left where that leaves a quarter of the width for the marks, which lie
    # between ``left`` and ``right``; the means end at ``mean``, and the words follow.
    wide = width == WIDE
    words = chain.from_iterable(chart.words(row, wide) for row in chart.rows if row.dots)
    mean = width - _widest(words) - GAP
    right = mean - _widest([row.mean for row in chart.rows]) - GAP
    left = _widest([row.label for row in chart.rows], "normal") + GAP + RADIUS
    beside = left <= right - width / 4
    left = left if beside else RADIUS
    end = TOP
    high = HIGH if any(chart.words(row, False)[1] for row in chart.rows) else LOW
    above = []
    placed = list[tuple[float, Row]]()
    arrows = []
    for group in chart.groups:
        end += GROUP * bool(placed)
        heads = [(line, True) for line in lines_of(group.name, width, "bold")]
        for place, row in enumerate(group.rows):
            if not beside:
                heads += [(line, False) for line in lines_of(row.label, width)]
            for line, bold in heads:
                end += LINE
                above.append((end - 3, line, bold))
            heads = []
            placed.append((end + high / 2, row))
            end += PAIRED if group.arrow and not place else high
        if group.arrow:
            arrows.append((group, placed[-2][0], placed[-1][0]))
    sheet = Sheet(width, end + FOOT)
    axes = sheet.axes(left, 0, right, sheet.height)
    axes.set_xscale("linear" if chart.axis == "linear" else "log")
    axes.set(xlim=chart.ends, ylim=(sheet.height, 0))
    _grid(chart, sheet, axes, end + 2)
    for group, top, bottom in arrows:
        _arrow(sheet, axes, group, top, bottom)
    for y, told, bold in above:
        sheet.text(0, y, told, bold=bold, over=True)
    sheet.text(mean, 10, "mean", "muted", SMALL, "right")
    marks = Marks(axes, upright=False)
    for y, row in placed:
        told, under = chart.words(row, wide)
        middle = y + 4.5
        if beside:
            sheet.text(left - GAP, middle, row.label, row.ink, align="right")
        sheet.text(mean, middle, row.mean, row.ink, align="right", bold=row.best)
        start = mean + GAP if row.dots else left
        sheet.text(start, y - 2 if under else middle, told, row.ink, bold=row.best)
        sheet.text(start, y + 13, under, "muted", SMALL)
        draw_row(marks, row, y, 6.5)
    return sheet.figure


def _grid(chart: RowsChart, sheet: Sheet, axes: Axes, bottom: float) -> None:
    most = int(axes.bbox.width / TICK)
    for value in ticks(*chart.ends, most, chart.axis != "linear"):
        x = sheet.pixel(axes, value, 0)[0]
        sheet.line([x, x], [TOP - 2, bottom], "grid", zorder=0)
        sheet.text(x, bottom + 15, f"{value:,.10g}", "muted", SMALL, "center")
    if chart.axis == "ratio":
        x = sheet.pixel(axes, 1, 0)[0]
        sheet.line([x, x], [TOP - 2, bottom], "muted", lw=1.6)


def draw_row(marks: Marks, row: Row, at: float, side: float) -> None:
    """Draw the marks of a row at its place, so far to each side of it. The runs lie in three lanes,
    so that none hides the next."""
    if row.time:
        marks.interval(at, row.time, [at - side, at + side], row.look)
    dots = sorted(row.dots, key=lambda dot: dot.value)
    for excluded in (False, True):
        shown = [dot for dot in dots if dot.excluded == excluded]
        places = [at + LANE * side * ((place + 1) % 3 - 1) for place in range(len(shown))]
        values, links = [dot.value for dot in shown], [dot.link for dot in shown]
        marks.dots("excluded" if excluded else row.look, places, values, links)
    if row.claimed is not None:
        marks.dots("claim", [at], [row.claimed])


def _arrow(sheet: Sheet, axes: Axes, group: RowGroup, top: float, bottom: float) -> None:
    """Draw an arrow from the mean of the first row to that of the last, with its words on it."""
    means = [row.time.value for row in group.rows if row.time]
    start, end = (sheet.pixel(axes, mean, 0)[0] for mean in means)
    middle = (top + bottom) / 2
    corners = [start, start, end, end], [top + 10, middle, middle, bottom - 13]
    sheet.line(*corners, "ink", lw=1.4)
    sheet.line([end], [bottom - 11], "ink", marker="v", ls="", ms=6, mew=0)
    for place, told in enumerate(group.arrow):
        y = middle - 7 + 19 * place
        sheet.text(
            (start + end) / 2, y, told, size=SMALL, align="center", bold=not place, over=True
        )
