"""The marks of a chart: every run a dot, the mean a bar, its interval a line, what lies beyond the axis an arrow."""

import functools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from study.analysis.figures.style import LABEL_BOX, PALETTE, canvas, font, plot, width_of
from study.analysis.figures.svg import inline
from study.analysis.words import three_digits

Look = Literal["answer", "other", "out"]
"""Faster than the others or tied for it; the rest; what is out of the ranking."""
RADIUS, LANES, LEAST_TOLD = 3.4, (0.0, -4.2, 4.2), 250.0
"""Of a dot, how far it is moved where another has its place, and from which width of the axis on a cross is named."""


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
            told = f"{three_digits(row.claimed)}{self.unit}"
            self._tell(f"claimed: {told}", f"◇ {told}", self._pixel(most), y)

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
        x = min(max(self._pixel(dot.value), start), end - 6)
        self.dot(self._value(x), y, "aside", dot.run)
        told = f"{three_digits(dot.value)}{self.unit}"
        whole = told if end - start < LEAST_TOLD else f"{told}, excluded"
        self._tell(whole, f"\N{MULTIPLICATION SIGN} {whole}", x - 6, y)

    def _tell(self, text: str, alone: str, x: float, y: float) -> None:
        """Write a text where its row has no mark: left of pixel ``x``, right of it, or ``alone`` at the left end."""
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


def draw_arrow(axes: Axes, first: Row, last: Row, arrow: Arrow, places: Sequence[float]) -> None:
    """Draw an arrow from the mean of the first row to that of the last, at ``places``, with the ratio on it."""
    start, end = first.mean, last.mean
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


@functools.cache
def sign(kind: str) -> str:
    """Return a small drawing of a kind of mark as SVG, for the legend."""
    marks = Marks(axes := plot(figure := canvas(22, 12), 0, 22, 0, 12), "")
    axes.set(xlim=(0, 22), xticks=[])
    rows = {"mean": Row("", mean=11, low=1, high=21), "bare": Row("", mean=11)}
    rows |= {"claim": Row("", claimed=11), "tail": Row("", mean=2, tail=18)}
    marks.row(rows.get(kind, Row("", look="out" if kind == "out" else "other")), 6)
    if kind not in rows:
        marks.dot(11, 6, "aside" if kind == "aside" else "out" if kind == "out" else "other")
    marks.draw()
    return inline(figure)
