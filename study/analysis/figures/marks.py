"""The marks of a chart: every run a dot, the mean a bar, its interval a line, what lies beyond the
axis an arrow."""

import functools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from study.analysis.figures.svg import LINES, MEANS, RUNS, SIGNS, Axis, Drawing, path, width_of
from study.analysis.words import three_digits

Look = Literal["answer", "other", "out"]
"""Faster than the others or tied for it; the rest; what is out of the ranking."""
RADIUS, LANES, LEAST_TOLD = 3.4, (0.0, -4.2, 4.2), 250.0
"""Of a dot, how far it is moved where another has its place, and from which width of the axis on a
cross is named."""


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
    cause: str = ""
    """What stands in place of the dots of a setting that failed."""
    bold: bool = False


@dataclass(frozen=True)
class Arrow:
    """The ratio of the first row of a group over its last, with a second, small line: its
    interval."""

    told: str
    under: str


class Marks:
    """The marks of all rows on one axis."""

    def __init__(self, drawing: Drawing, axis: Axis, unit: str) -> None:
        """``unit`` follows the values at the marks."""
        self.drawing, self.axis, self.unit = drawing, axis, unit
        self._taken: dict[float, list[tuple[float, float]]] = defaultdict(list)
        """The pixels that each row's marks and words take."""

    def row(self, row: Row, y: float) -> None:
        """Draw the marks of a row whose middle is ``y``."""
        least, most, pixel = self.axis.low, self.axis.high, self.axis.pixel
        if row.low is not None and row.high is not None:
            dashes = 'stroke-dasharray="3 3"' if row.look == "out" else ""
            ends = [(pixel(max(row.low, least)), y), (pixel(min(row.high, most)), y)]
            self.drawing.line(LINES, ends, row.look, 1.6, "mark interval", dashes)
            if row.high > most:
                self._edge(y, row.look)
        if row.mean is not None:
            mean = pixel(row.mean)
            self.drawing.line(MEANS, [(mean, y - 6.5), (mean, y + 6.5)], row.look, 3.4, "mark mean")
        known = [value for value in (row.low, row.high, row.mean) if value is not None]
        for dot, lift in zip(row.dots, self._lifts(row.dots), strict=True):
            known.append(dot.value)
            if not dot.aside:
                self.dot(pixel(dot.value), y + lift, row.look, dot.run)
        if row.claimed is not None and least <= row.claimed <= most:
            self.dot(pixel(row.claimed), y, "claim")
            known.append(row.claimed)
        self._taken[y] = [(pixel(value) - 5, pixel(value) + 5) for value in known]
        if row.low is not None and row.high is not None:
            self._taken[y].append((pixel(row.low), pixel(row.high)))
        for dot in row.dots:
            if dot.aside:
                self._aside(dot, y)
        if row.claimed is not None and not least <= row.claimed <= most:
            self._edge(y, "contra")
            told = f"{three_digits(row.claimed)}{self.unit}"
            self._tell(f"claimed: {told}", f"◇ {told}", self.axis.right, y)

    def dot(self, x: float, y: float, kind: str, run: str = "") -> None:
        """Draw a dot, a cross (``aside``), a diamond (``claim``) or an arrow (``beyond`` and its
        colour) at a pixel."""
        link = f"#run-{run}" if run else ""
        if kind == "aside":
            cross = path([(x - 3.6, y - 3.6), (x + 3.6, y + 3.6)]) + path(
                [(x - 3.6, y + 3.6), (x + 3.6, y - 3.6)]
            )
            look = 'class="mark aside" fill="none" stroke="var(--ink)" stroke-width="1.8"'
            self.drawing.add(SIGNS, look, f'<path d="{cross}"/>', link)
        elif kind == "claim":
            look = 'class="mark claim" fill="var(--bg)" stroke="var(--contra)" stroke-width="1.6"'
            self.drawing.shape(
                SIGNS + 1, [(x, y - 4.6), (x + 4.6, y), (x, y + 4.6), (x - 4.6, y)], look
            )
        elif kind.startswith("beyond"):
            look = f'class="mark {kind}" fill="var(--{kind.removeprefix("beyond ")})"'
            self.drawing.shape(SIGNS, [(x + 3, y), (x - 3, y + 3), (x - 3, y - 3)], look)
        elif kind == "out":
            look = 'class="mark out" fill="var(--bg)" stroke="var(--out)" stroke-width="1.4"'
            self.drawing.dot(x, y, RADIUS, look, link)
        else:
            self.drawing.dot(
                x, y, RADIUS, f'class="mark {kind}" fill="var(--{kind})" stroke="var(--bg)"', link
            )

    def _edge(self, y: float, colour: str) -> None:
        """Draw an arrow at the right edge for what lies beyond it."""
        self.dot(self.axis.right + 4, y, f"beyond {colour}")

    def _aside(self, dot: Dot, y: float) -> None:
        """Draw a cross with its value; beside an arrow at the edge where it lies beyond."""
        start, end, at = self.axis.left, self.axis.right, self.axis.pixel(dot.value)
        if at > end:
            self._edge(y, "ink")
        x = min(max(at, start), end - 6)
        self.dot(x, y, "aside", dot.run)
        told = f"{three_digits(dot.value)}{self.unit}"
        whole = told if end - start < LEAST_TOLD else f"{told}, excluded"
        self._tell(whole, f"\N{MULTIPLICATION SIGN} {whole}", x - 6, y)

    def _tell(self, text: str, alone: str, x: float, y: float) -> None:
        """Write a text where its row has no mark: left of pixel ``x``, right of it, or ``alone`` at
        the left end."""
        start, end = self.axis.left, self.axis.right
        width, whole = width_of(text, "small") + 4, width_of(alone, "small") + 4
        for told, left, wide in (
            (text, x - width, width),
            (text, x + 12, width),
            (alone, start, whole),
        ):
            right = left + wide
            if (
                left >= start
                and right <= end
                and all(right < low or high < left for low, high in self._taken[y])
            ):
                self.drawing.text(left, y + 4.5, told, "small", "muted", RUNS)
                self._taken[y].append((left, right))
                return

    def _lifts(self, dots: Sequence[Dot]) -> list[float]:
        """Return how far each dot is moved up or down, so that it hides none where there is
        room."""
        lifts, ends = [0.0] * len(dots), dict.fromkeys(LANES, -math.inf)
        places = [self.axis.pixel(dot.value) for dot in dots]
        for index in sorted(range(len(dots)), key=places.__getitem__):
            free = [one for one in LANES if places[index] - ends[one] > 2 * RADIUS]
            lane = free[0] if free else min(ends, key=ends.__getitem__)
            lifts[index], ends[lane] = lane, places[index]
        return lifts


def draw_arrow(
    drawing: Drawing, axis: Axis, first: Row, last: Row, arrow: Arrow, places: Sequence[float]
) -> None:
    """Draw an arrow from the mean of the first row to that of the last, at ``places``, with the
    ratio on it."""
    if first.mean is None or last.mean is None:
        return
    start, end, middle = axis.pixel(first.mean), axis.pixel(last.mean), (places[0] + places[-1]) / 2
    corners = [(start, places[0] + 10), (start, middle), (end, middle), (end, places[-1] - 13)]
    drawing.line(LINES, corners, "ink", 1.4)
    tip = places[-1] - 7.7
    drawing.shape(
        SIGNS, [(end, tip), (end - 3.3, tip - 6.6), (end + 3.3, tip - 6.6)], 'fill="var(--ink)"'
    )
    drawing.text((start + end) / 2, middle - 6, arrow.told, "bold middle over", "ink", RUNS)
    drawing.text((start + end) / 2, middle + 14, arrow.under, "small middle over", "muted", RUNS)


@functools.cache
def sign(kind: str) -> str:
    """Return a small drawing of a kind of mark as SVG, for the legend."""
    marks = Marks(drawing := Drawing(22, 12), Axis(0, 22, 0, 22), "")
    rows = {"mean": Row("", mean=11, low=1, high=21), "bare": Row("", mean=11)}
    rows |= {"claim": Row("", claimed=11)}
    marks.row(rows.get(kind, Row("", look="out" if kind == "out" else "other")), 6)
    if kind not in rows:
        marks.dot(11, 6, kind if kind in ("aside", "out") else "other")
    return drawing.svg()
