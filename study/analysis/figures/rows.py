"""The main chart: a row for each setting with every run as a dot, the mean, its interval, and the words beside it.

Its axis is a time from zero, a logarithmic one, or a ratio with a line at 1. Names stand left of the marks, or above
them where they find no room there, as on a phone; none is cut.
"""

import functools
import math
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from study.analysis.figures.style import LABEL_BOX, PALETTE, canvas, font, letters, plot, ticks, width_of
from study.analysis.figures.svg import Chart, in_both_widths, inline
from study.analysis.words import three_digits

Look = Literal["answer", "other", "out"]
"""Faster than the others or tied for it; the rest; what is out of the ranking."""
LINE, LOW, HIGH, PAIRED = 16.0, 19.0, 38.0, 56.0
"""Pixels of a line of letters, and of a row: of one line, of two, and where an arrow leads to the next."""
TOP, GROUP, FOOT, GAP = 18.0, 15.0, 24.0, 12.0
RADIUS, LANES, LEAST_TOLD = 3.4, (0.0, -4.2, 4.2), 250.0
"""Of a dot, how far it is moved where another has its place, and from which width of the axis on a cross is named."""
KEY = {
    "run": "one run",
    "mean": "mean, 95% interval",
    "out": "out of the ranking",
    "aside": "excluded, in no number",
    "claim": "where the claim puts it",
    "tail": "99th percentile",
}


@dataclass(frozen=True)
class Dot:
    """One run, or one pair of runs."""

    value: float
    run: str = ""
    """Study and run, as the page's links name it; empty for a pair."""
    aside: bool = False
    """Whether it is in no number: a cross with its value."""


@dataclass(frozen=True)
class Row:
    """One setting, or one ratio."""

    label: str
    dots: tuple[Dot, ...] = ()
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    look: Look = "other"
    verdict: str = ""
    under: str = ""
    """A second, small line of the verdict."""
    claimed: float | None = None
    tail: float | None = None
    """The 99th percentile, of a latency."""
    cause: str = ""
    """What stands in place of the dots of a setting that failed."""
    bold: bool = False


@dataclass(frozen=True)
class Arrow:
    """The ratio of the first row of a group over its last, with a second, small line: its interval."""

    told: str
    under: str


@dataclass(frozen=True)
class Group:
    """The rows of one way, with its name and a small line under it; ``arrow`` leads from the first row to the last."""

    rows: tuple[Row, ...]
    name: str = ""
    under: str = ""
    arrow: Arrow | None = None

    @property
    def look(self) -> str:
        """The colour of its name."""
        return "answer" if self.name and any(row.look == "answer" for row in self.rows) else "ink"


@dataclass(frozen=True)
class RowsChart:
    """All that the chart shows. ``headings`` are those of the labels, the means and the verdicts."""

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
        return [row for group in self.groups for row in group.rows]


def rows_chart(chart: RowsChart) -> Chart | None:
    """Return the chart as SVG in both widths with the signs of its marks; None without a value."""
    if not _inside(chart):
        return None
    wide, narrow = in_both_widths(lambda width: draw(chart, width), chart.title)
    key = tuple((sign(kind), told) for kind, told in (KEY | dict(chart.key)).items() if kind in _kinds(chart))
    return Chart(chart.title, chart.subtitle, chart.caption, wide, narrow, key)


def draw(chart: RowsChart, width: int) -> Figure:
    """Return the chart as a figure of ``width`` pixels."""
    columns = _columns(chart, width)
    layout = _layout(chart, columns)
    figure = canvas(width, layout.bottom + FOOT)
    axes = plot(figure, columns.left, columns.right, TOP - 2, layout.bottom)
    _limit(axes, chart)
    for y in layout.separators:
        figure.add_artist(Line2D([0, 1], [1 - y / (layout.bottom + FOOT)] * 2, color=PALETTE["rule"], linewidth=1))
    for words in layout.texts:
        letters(figure, *words)
    marks = Marks(axes, chart.unit)
    for row, y in zip(chart.rows, layout.places, strict=True):
        marks.row(row, y)
    places = iter(layout.places)
    for group in chart.groups:
        spots = [next(places) for _ in group.rows]
        if group.arrow:
            _arrow(axes, group, group.arrow, spots)
    marks.draw()
    return figure


@functools.cache
def sign(kind: str) -> str:
    """Return a small drawing of a kind of mark as SVG, for the legend."""
    marks = Marks(axes := plot(figure := canvas(22, 12), 0, 22, 0, 12), "")
    axes.set(xlim=(0, 22), xticks=[])
    rows = {"mean": Row("", mean=11, low=1, high=21), "claim": Row("", claimed=11), "tail": Row("", mean=2, tail=18)}
    marks.row(rows.get(kind, Row("", look="out" if kind == "out" else "other")), 6)
    if kind not in rows:
        marks.dot(11, 6, "aside" if kind == "aside" else "out" if kind == "out" else "other")
    marks.draw()
    return inline(figure)


def _kinds(chart: RowsChart) -> set[str]:
    found = {"aside" if dot.aside else "run" for row in chart.rows for dot in row.dots}
    found |= {"out" for row in chart.rows if row.look == "out" and (row.dots or row.mean)}
    told = (("mean", "mean"), ("claim", "claimed"), ("tail", "tail"))
    return found | {kind for kind, name in told if any(getattr(row, name) is not None for row in chart.rows)}


def _inside(chart: RowsChart) -> list[float]:
    """Return the values that the axis has to hold: the runs that count and the means, and of ratios everything."""
    every = [dot for row in chart.rows for dot in row.dots]
    counted = [dot.value for dot in every if not dot.aside]
    names = ("mean", "tail", "low", "high", "claimed") if chart.axis == "ratio" else ("mean", "tail")
    counted += [value for row in chart.rows for name in names if (value := getattr(row, name)) is not None]
    return counted or [dot.value for dot in every]


def _limit(axes: Axes, chart: RowsChart) -> None:
    """Set the ends of the axis, and its ticks."""
    values = _inside(chart) + [1.0] * (chart.axis == "ratio")
    if chart.axis == "linear":
        axes.set_xlim(0, 1.1 * max(values) or 1.0)
    else:
        axes.set_xscale("log")
        axes.set_xlim(min(values) / 1.15, max(values) * 1.15)
    ticks(axes, chart.unit, log=chart.axis != "linear")
    if chart.axis == "ratio":
        axes.axvline(1.0, color=PALETTE["muted"], linewidth=1.6, zorder=1, gid="one")


@dataclass(frozen=True)
class _Columns:
    """Where the words of a row stand, in pixels: its marks from ``left`` to ``right``, its mean before ``mean``."""

    named: bool
    """Whether a group's name stands left of its rows, else above them."""
    beside: bool
    """Whether a row's label stands left of its marks, else above them."""
    left: float
    right: float
    mean: float
    verdict: float
    width: int


def _columns(chart: RowsChart, width: int) -> _Columns:
    """Return the columns; names stand at the left where that leaves a quarter of the width for the marks."""
    _, mean, verdict = chart.headings
    rows, groups = chart.rows, chart.groups
    verdicts = _widest([row.verdict for row in rows], "bold", [*(row.under for row in rows), verdict])
    means = _widest([_mean(row, chart) for row in rows], "bold", [mean])
    labels = _widest([row.label for row in rows], "", []) + GAP
    names = _widest([group.name for group in groups], "bold", [group.under for group in groups])
    end = width - (verdicts + GAP if verdicts else 0.0)
    right = end - means - GAP
    named, beside, left = next(
        (named, beside, left)
        for named, beside, left in ((True, True, names + GAP + labels), (False, True, labels), (False, False, 0.0))
        if left + RADIUS <= right - width / 4 or not beside
    )
    return _Columns(named and bool(names), beside, left + RADIUS, right, end, end + GAP, width)


@dataclass
class _Layout:
    """Everything in its place, from above: the words, the middle of each row, and the lines between groups."""

    texts: list[tuple[str, float, float, str, str]] = field(default_factory=list)
    """Text, x, baseline, look, colour."""
    places: list[float] = field(default_factory=list)
    separators: list[float] = field(default_factory=list)
    bottom: float = TOP


def _layout(chart: RowsChart, columns: _Columns) -> _Layout:
    layout, y = _Layout(), TOP
    first, mean, verdict = chart.headings
    narrow = columns.left - GAP < width_of(first, "small")
    heads = [(first, 0.0, "small") if narrow else (first, columns.left - GAP, "small end")]
    heads += [(mean, columns.mean, "small end")]
    layout.texts += [(text, x, 10.0, look, "muted") for text, x, look in [*heads, (verdict, columns.verdict, "small")]]
    height = HIGH if any(row.under for row in chart.rows) else LOW
    for group in chart.groups:
        if layout.places:
            layout.separators.append(y + GROUP / 2)
            y += GROUP
        name = "answer" if {row.look for row in group.rows} - {"out"} == {"answer"} else "ink"
        if columns.named:
            layout.texts.append((group.name, 0.0, y + height / 2 + 4.5, "bold", name))
            layout.texts.append((group.under, 0.0, y + height / 2 + 4.5 + LINE, "small", "muted"))
        else:
            y = _above(layout, columns, group.name, y, "bold", name)
            across = width_of(group.name, "bold") + GAP
            if group.name and across + width_of(group.under, "small") <= columns.width:
                layout.texts.append((group.under, across, y - 3, "small", "muted"))
            else:
                y = _above(layout, columns, group.under, y, "small", "muted")
        begin = y
        for place, row in enumerate(group.rows):
            tone = "muted" if row.look == "out" else "ink"
            y = y if columns.beside else _above(layout, columns, row.label, y, "", tone)
            middle = y + height / 2
            layout.places.append(middle)
            layout.texts += _row_words(row, chart, columns, middle, tone)
            y += PAIRED if group.arrow and place < len(group.rows) - 1 else height
        y = max(y, begin + 2 * LINE + 4) if columns.named and group.under else y
    layout.bottom = y + 2
    layout.texts = [words for words in layout.texts if words[0]]
    return layout


def _above(layout: _Layout, columns: _Columns, text: str, y: float, look: str, colour: str) -> float:
    """Write a text above the marks, in lines of the whole width, and return where it ends."""
    for line in lines_of(text, columns.width, look):
        y += LINE
        layout.texts.append((line, 0.0, y - 3, f"{look} over", colour))
    return y


def lines_of(text: str, room: float, look: str = "") -> list[str]:
    """Return a text in lines of ``room`` pixels, broken at its spaces, or within a word that is longer."""
    most = max(1, int(len(text) * room / max(width_of(text, look), 1.0)))
    return textwrap.wrap(text, most, break_on_hyphens=False)


def _row_words(
    row: Row, chart: RowsChart, columns: _Columns, y: float, tone: str
) -> Iterator[tuple[str, float, float, str, str]]:
    best, bold = "answer" if row.look == "answer" else tone, "bold" if row.look == "answer" else ""
    if columns.beside:
        yield row.label, columns.left - GAP, y + 4.5, "end", tone
    yield row.cause, columns.left, y + 4.5, "small", "muted"
    yield _mean(row, chart), columns.mean, y + 4.5, "bold end" if row.bold else "end", best if row.bold else tone
    yield row.verdict, columns.verdict, y - 2 if row.under else y + 4.5, bold, best
    yield row.under, columns.verdict, y + 13, "small", "muted"


def _mean(row: Row, chart: RowsChart) -> str:
    return "" if row.mean is None else f"{three_digits(row.mean)}{chart.unit}"


def _widest(texts: Sequence[str], look: str, small: Sequence[str]) -> float:
    return max([0.0, *(width_of(text, look) for text in texts), *(width_of(text, "small") for text in small)])


class Marks:
    """The marks of all rows, drawn together by their look."""

    def __init__(self, axes: Axes, unit: str) -> None:
        """Begin without a mark; ``unit`` follows the values at the marks."""
        self.axes, self.unit = axes, unit
        self._dots: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
        self._lines: dict[tuple[str, float], list[tuple[tuple[float, float], tuple[float, float]]]] = defaultdict(list)
        self._taken: dict[float, list[tuple[float, float]]] = defaultdict(list)
        """The pixels that each row's marks and words take."""

    def row(self, row: Row, y: float) -> None:
        """Add the marks of a row whose middle is ``y``."""
        least, most = self.axes.get_xlim()
        if row.low is not None and row.high is not None:
            low, high = max(row.low, least), min(row.high, most)
            self._lines[f"interval {row.look}", 1.6].append(((low, y), (high, y)))
            if row.high > most:
                self._edge(y, row.look)
        if row.tail is not None and row.mean is not None:
            self._lines[f"interval {row.look}", 1.6].append(((row.mean, y), (row.tail, y)))
            self._lines[f"mean {row.look}", 1.6].append(((row.tail, y - 4), (row.tail, y + 4)))
        if row.mean is not None:
            self._lines[f"mean {row.look}", 3.4].append(((row.mean, y - 6.5), (row.mean, y + 6.5)))
        known = [value for value in (row.low, row.high, row.mean, row.tail) if value is not None]
        for dot, lift in zip(row.dots, self._lifts(row.dots), strict=True):
            known.append(dot.value)
            if not dot.aside:
                self.dot(dot.value, y + lift, row.look, dot.run)
        if row.claimed is not None and least <= row.claimed <= most:
            self.dot(row.claimed, y, "claim")
            known.append(row.claimed)
        self._taken[y] = [(self._pixel(value) - 5, self._pixel(value) + 5) for value in known]
        if row.low is not None and row.high is not None:
            self._taken[y].append((self._pixel(row.low), self._pixel(row.high)))
        for dot in row.dots:
            if dot.aside:
                self._aside(dot, y)
        if row.claimed is not None and not least <= row.claimed <= most:
            self._edge(y, "contra")
            told = f"claimed: {three_digits(row.claimed)}{self.unit}"
            self._tell(told, told, self._pixel(most), y)

    def dot(self, x: float, y: float, kind: str, run: str = "") -> None:
        """Add a dot, a cross (``aside``) or a diamond (``claim``)."""
        self._dots[kind].append((x, y, f"#run-{run}" if run else ""))

    def draw(self) -> None:
        """Draw all marks."""
        for (name, width), lines in self._lines.items():
            kind, _, look = name.partition(" ")
            dashes: Any = (0, (1.9, 1.9)) if look == "out" and kind == "interval" else "solid"
            place: dict[str, Any] = {"zorder": 2 if kind == "interval" else 4, "clip_on": False, "gid": f"mark {kind}"}
            colour = PALETTE[look]
            self.axes.add_collection(
                LineCollection(lines, colors=colour, linewidths=width, linestyles=dashes, **place), autolim=False
            )
        for kind, dots in self._dots.items():
            x, y, urls = zip(*dots, strict=True)
            self.axes.scatter(x, y, **_look(kind), clip_on=False, urls=list(urls), gid=f"mark {kind}")

    def _edge(self, y: float, colour: str) -> None:
        """Draw an arrow at the right edge for what lies beyond it."""
        self._dots[f"beyond {colour}"].append((self._value(self._pixel(self.axes.get_xlim()[1]) + 4), y, ""))

    def _aside(self, dot: Dot, y: float) -> None:
        """Draw a cross with its value; beside an arrow at the edge where it lies beyond."""
        start, end = (self._pixel(value) for value in self.axes.get_xlim())
        if self._pixel(dot.value) > end:
            self._edge(y, "ink")
        x = min(self._pixel(dot.value), end - 6)
        self.dot(self._value(x), y, "aside", dot.run)
        told = f"{three_digits(dot.value)}{self.unit}"
        self._tell(told if end - start < LEAST_TOLD else f"{told}, excluded", f"excluded: {told}", x - 6, y)

    def _tell(self, text: str, alone: str, x: float, y: float) -> None:
        """Write a text where no mark of its row lies: left of pixel ``x``, right of it, or alone at either end."""
        start, end = (self._pixel(value) for value in self.axes.get_xlim())
        width, whole = width_of(text, "small") + 4, width_of(alone, "small") + 4
        for told, left, wide in ((text, x - width, width), (text, x + 12, width), (alone, start, whole)):
            right = left + wide
            if left >= start and right <= end and all(right < low or high < left for low, high in self._taken[y]):
                style: dict[str, Any] = {"fontproperties": font("small"), "color": PALETTE["muted"]}
                self.axes.text(self._value(left), y + 4.5, told, ha="left", va="baseline", **style)
                self._taken[y].append((left, right))
                return

    def _lifts(self, dots: Sequence[Dot]) -> list[float]:
        """Return how far each dot is moved up or down, so that it hides none where there is room."""
        lifts, ends = [0.0] * len(dots), dict.fromkeys(LANES, -math.inf)
        places = [self._pixel(dot.value) for dot in dots]
        for index in sorted(range(len(dots)), key=places.__getitem__):
            free = [one for one in LANES if places[index] - ends[one] > 2 * RADIUS]
            lane = free[0] if free else min(ends, key=ends.__getitem__)
            lifts[index], ends[lane] = lane, places[index]
        return lifts

    def _pixel(self, value: float) -> float:
        return float(self.axes.transData.transform((value, 0.0))[0])

    def _value(self, pixel: float) -> float:
        return float(self.axes.transData.inverted().transform((pixel, 0.0))[0])


def _look(kind: str) -> dict[str, Any]:
    """Return how matplotlib draws a kind of dot."""
    ground, size = PALETTE["bg"], (2 * RADIUS) ** 2
    if kind == "aside":
        return {"marker": "x", "s": 52, "c": PALETTE["ink"], "linewidths": 1.8, "zorder": 5}
    if kind == "claim":
        return {"marker": "D", "s": 42, "c": ground, "edgecolors": PALETTE["contra"], "linewidths": 1.6, "zorder": 6}
    if kind.startswith("beyond"):
        return {"marker": ">", "s": 36, "c": PALETTE[kind.removeprefix("beyond ")], "linewidths": 0, "zorder": 5}
    if kind == "out":
        return {"s": size, "c": ground, "edgecolors": PALETTE["out"], "linewidths": 1.4, "zorder": 3}
    return {"s": size, "c": PALETTE[kind], "edgecolors": ground, "linewidths": 1, "zorder": 3}


def _arrow(axes: Axes, group: Group, arrow: Arrow, places: Sequence[float]) -> None:
    """Draw an arrow from the mean of the first row to that of the last, with the ratio on it."""
    start, end = group.rows[0].mean, group.rows[-1].mean
    if start is None or end is None:
        return
    middle = (places[0] + places[-1]) / 2
    corners = [(start, places[0] + 10), (start, middle), (end, middle), (end, places[-1] - 13)]
    axes.add_artist(Line2D(*zip(*corners, strict=True), color=PALETTE["ink"], linewidth=1.4, zorder=2))
    axes.scatter([end], [places[-1] - 11], marker="v", s=44, c=PALETTE["ink"], linewidths=0, zorder=5)
    across = math.sqrt(start * end) if axes.get_xscale() == "log" else (start + end) / 2
    style: dict[str, Any] = {"ha": "center", "va": "baseline", "bbox": LABEL_BOX}
    axes.text(across, middle - 6, arrow.told, fontproperties=font("bold"), color=PALETTE["ink"], **style)
    axes.text(across, middle + 14, arrow.under, fontproperties=font("small"), color=PALETTE["muted"], **style)
