"""The main chart: a row for each setting with every run as a dot, the mean, its interval, and the
words beside it.

Its axis is a time from zero, a logarithmic one, or a ratio with a line at 1. Names stand left of
the marks, or above them where they find no room there, as on a phone; none is cut.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from study.analysis.figures.marks import RADIUS, Arrow, Dot, Marks, Row, draw_arrow, sign
from study.analysis.figures.svg import GRID, LETTERS, Axis, Chart, Drawing, in_both_widths, width_of
from study.analysis.words import three_digits

LINE, LOW, HIGH, PAIRED = 16.0, 19.0, 38.0, 56.0
"""Pixels of a line of letters, and of a row: of one line, of two, and where an arrow leads to the
next."""
TOP, GROUP, FOOT, GAP = 18.0, 15.0, 24.0, 12.0
NEAR = 1.5
"""A linear axis holds a claim up to so many times its longest time; a farther one is told in
words."""
KEY = {
    "run": "one run",
    "mean": "mean, 95% interval",
    "bare": "mean, no interval",
    "out": "out of the ranking",
    "aside": "excluded, in no number",
    "claim": "where the claim puts it",
}


@dataclass(frozen=True)
class Group:
    """The rows of one way, with its name; ``arrow`` leads from the first row to the last."""

    rows: tuple[Row, ...]
    name: str = ""
    arrow: Arrow | None = None


@dataclass(frozen=True)
class RowsChart:
    """All that the chart shows. ``headings`` are those of the labels, the means and the
    verdicts."""

    groups: tuple[Group, ...]
    title: str
    subtitle: str = ""
    caption: str = ""
    headings: tuple[str, str, str] = ("", "mean", "")
    axis: Literal["linear", "log", "ratio"] = "linear"
    unit: str = " s"
    key: Mapping[str, str] = field(default_factory=dict)
    """Words for some kinds of marks, by their names in ``KEY``."""

    @property
    def rows(self) -> list[Row]:
        """The rows of all groups."""
        return list(chain.from_iterable(group.rows for group in self.groups))

    @property
    def dots(self) -> list[Dot]:
        """The dots of all rows."""
        return list(chain.from_iterable(row.dots for row in self.rows))


def rows_chart(chart: RowsChart) -> Chart | None:
    """Return the chart as SVG in both widths with the signs of its marks; None without a value."""
    if not _inside(chart):
        return None
    wide, narrow = in_both_widths(lambda width: draw(chart, width), chart.title)
    key = tuple(
        (sign(kind), told)
        for kind, told in (KEY | dict(chart.key)).items()
        if kind in _kinds(chart)
    )
    return Chart(chart.title, chart.subtitle, chart.caption, wide, narrow, key)


def draw(chart: RowsChart, width: int) -> Drawing:
    """Return the chart as a drawing of ``width`` pixels."""
    columns, y = _columns(chart, width), TOP
    drawing, axis = Drawing(width, 0), _axis(chart, columns)
    marks = Marks(drawing, axis, chart.unit)
    first, mean, verdict = chart.headings
    narrow = columns.left - GAP < width_of(first, "small")
    drawing.text(
        0 if narrow else columns.left - GAP, 10, first, "small" if narrow else "small end", "muted"
    )
    drawing.text(columns.mean, 10, mean, "small end", "muted")
    drawing.text(columns.verdict, 10, verdict, "small", "muted")
    height = HIGH if any(row.under for row in chart.rows) else LOW
    for group in chart.groups:
        if y > TOP:
            drawing.line(LETTERS - 1, [(0, y + GROUP / 2), (width, y + GROUP / 2)], "rule")
            y += GROUP
        name = "answer" if {row.look for row in group.rows} - {"out"} == {"answer"} else "ink"
        if columns.named:
            drawing.text(0, y + height / 2 + 4.5, group.name, "bold", name)
        else:
            y = _above(drawing, group.name, y, "bold", name)
        places = []
        for place, row in enumerate(group.rows):
            y = y if columns.beside else _above(drawing, row.label, y, "", _tone(row))
            places.append(y + height / 2)
            _words(drawing, row, chart, columns, places[-1])
            marks.row(row, places[-1])
            y += PAIRED if group.arrow and place < len(group.rows) - 1 else height
        if group.arrow:
            draw_arrow(drawing, axis, group.rows[0], group.rows[-1], group.arrow, places)
    axis.draw(drawing, TOP - 2, y + 2, chart.unit)
    if chart.axis == "ratio":
        drawing.line(
            GRID + 1, [(axis.pixel(1.0), y + 2), (axis.pixel(1.0), TOP - 2)], "muted", 1.6, "one"
        )
    drawing.height = y + 2 + FOOT
    return drawing


def _kinds(chart: RowsChart) -> set[str]:
    found = {"aside" if dot.aside else "run" for dot in chart.dots}
    found |= {"out" for row in chart.rows if row.look == "out" and (row.dots or row.mean)}
    told = (
        ("mean" if any(row.low for row in chart.rows) else "bare", "mean"),
        ("claim", "claimed"),
    )
    return found | {
        kind for kind, name in told if any(getattr(row, name) is not None for row in chart.rows)
    }


def _inside(chart: RowsChart) -> list[float]:
    """Return the values that the axis has to hold: the runs that count and the means, and a
    logarithmic one all."""
    counted = [dot.value for dot in chart.dots if not dot.aside]
    names = ("mean", "low", "high", "claimed") if chart.axis != "linear" else ("mean",)
    for name in names:
        counted += [getattr(row, name) for row in chart.rows if getattr(row, name) is not None]
    if chart.axis == "linear":
        near = NEAR * max(counted, default=0.0)
        counted += [
            row.claimed for row in chart.rows if row.claimed is not None and row.claimed <= near
        ]
    return counted or [dot.value for dot in chart.dots]


def _axis(chart: RowsChart, columns: "_Columns") -> Axis:
    values = _inside(chart) + [1.0] * (chart.axis == "ratio")
    if chart.axis == "linear":
        return Axis(columns.left, columns.right, 0, 1.1 * max(values) or 1.0)
    return Axis(columns.left, columns.right, min(values) / 1.15, max(values) * 1.15, log=True)


@dataclass(frozen=True)
class _Columns:
    """Where the words of a row stand, in pixels: its marks from ``left`` to ``right``, its mean
    before ``mean``."""

    named: bool
    """Whether a group's name stands left of its rows, else above them."""
    beside: bool
    """Whether a row's label stands left of its marks, else above them."""
    left: float
    right: float
    mean: float
    verdict: float


def _columns(chart: RowsChart, width: int) -> _Columns:
    """Return the columns; names stand at the left where that leaves a quarter of the width for the
    marks."""
    _, mean, verdict = chart.headings
    rows = chart.rows
    verdicts = _widest(
        [row.verdict for row in rows], "bold", [*(row.under for row in rows), verdict]
    )
    means = _widest([_mean(row, chart) for row in rows], "bold", [mean])
    labels = _widest([row.label for row in rows], "", []) + GAP
    names = _widest([group.name for group in chart.groups], "bold", [])
    end = width - (verdicts + GAP if verdicts else 0.0)
    right = end - means - GAP
    named, beside, left = next(
        (named, beside, left)
        for named, beside, left in (
            (True, True, names + GAP + labels),
            (False, True, labels),
            (False, False, 0.0),
        )
        if left + RADIUS <= right - width / 4 or not beside
    )
    return _Columns(named and bool(names), beside, left + RADIUS, right, end, end + GAP)


def _above(drawing: Drawing, text: str, y: float, look: str, colour: str) -> float:
    """Write a text above the marks, in lines of the whole width, and return where it ends."""
    for line in lines_of(text, drawing.width, look):
        y += LINE
        drawing.text(0, y - 3, line, f"{look} over", colour)
    return y


def lines_of(text: str, room: float, look: str = "") -> list[str]:
    """Return a text in lines of ``room`` pixels, broken at its spaces, or within a word that is
    longer."""
    most = max(1, int(len(text) * room / max(width_of(text, look), 1.0)))
    while True:
        lines = textwrap.wrap(text, most, break_on_hyphens=False)
        if most == 1 or all(width_of(line, look) <= room for line in lines):
            return lines
        most -= 1


def _words(drawing: Drawing, row: Row, chart: RowsChart, columns: _Columns, y: float) -> None:
    best = "answer" if row.look == "answer" else _tone(row)
    bold = "bold" if row.look == "answer" else ""
    if columns.beside:
        drawing.text(columns.left - GAP, y + 4.5, row.label, "end", _tone(row))
    drawing.text(columns.left, y + 4.5, row.cause, "small", "muted")
    means = ("bold end", best) if row.bold else ("end", _tone(row))
    drawing.text(columns.mean, y + 4.5, _mean(row, chart), *means)
    drawing.text(columns.verdict, y - 2 if row.under else y + 4.5, row.verdict, bold, best)
    drawing.text(columns.verdict, y + 13, row.under, "small", "muted")


def _tone(row: Row) -> str:
    return "muted" if row.look == "out" else "ink"


def _mean(row: Row, chart: RowsChart) -> str:
    return "" if row.mean is None else f"{three_digits(row.mean)}{chart.unit}"


def _widest(texts: Sequence[str], look: str, small: Sequence[str]) -> float:
    return max(
        [
            0.0,
            *(width_of(text, look) for text in texts),
            *(width_of(text, "small") for text in small),
        ]
    )
