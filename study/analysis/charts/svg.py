"""SVG as text: elements, escaped letters, axes, the marks that charts share, and a chart in its two widths."""

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from study.analysis.words import isolate_bidi

WIDE, NARROW = 720, 340
"""Widths of a chart in pixels, for a desk and for a phone."""
LETTER, STRONG = 0.58, 0.62
"""Width of a letter over the height of the text, rounded up, and of a bold one."""
LINE = 15.0
"""Pixels from a line of letters to the next."""


@dataclass(frozen=True)
class Chart:
    """A chart of the page: its drawing in both widths, and its words."""

    title: str
    wide: str
    narrow: str
    caption: str
    series: dict[str, str]
    """Words of each kind of mark, and of each colour that says more of one, by its name, for the legend."""


def element(name: str, *children: str, **attributes: object) -> str:
    """Return an element. Attributes that are None are left out, ``_`` in a name is ``-``; children are SVG already."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{told}>{''.join(children)}</{name}>" if children else f"<{name}{told}/>"


def _text(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def words(text: str, x: float, y: float, kind: str = "", anchor: str | None = None, room: float | None = None) -> str:
    """Return letters with their baseline at ``y``; what has no ``room`` (pixels) is cut, and shown whole on hover."""
    most = None if room is None else _letters(room, kind)
    cut = text if most is None or len(text) <= most else text[: most - 1] + "…"
    whole = [] if cut == text else [element("title", escape(isolate_bidi(text)))]
    return element("text", escape(isolate_bidi(cut)), *whole, x=x, y=y, class_=kind or None, text_anchor=anchor)


def paragraph(lines: Sequence[str], x: float, y: float, kind: str = "", anchor: str | None = None) -> str:
    """Return lines of letters below each other, the first with its baseline at ``y``, as one text."""
    if len(lines) == 1:
        return words(lines[0], x, y, kind, anchor)
    spans = [
        element("tspan", escape(isolate_bidi(line)), x=x, y=y + LINE * place if place else None)
        for place, line in enumerate(lines)
    ]
    space = element("tspan", " ", font_size=0)  # it parts the words of two lines, and moves no line
    return element("text", space.join(spans), x=x, y=y, class_=kind or None, text_anchor=anchor)


def lines_of(text: str, room: float, kind: str = "") -> list[str]:
    """Return a text in lines for ``room`` (pixels), broken at its spaces, or within a word that is longer."""
    return textwrap.wrap(text, _letters(room, kind), break_on_hyphens=False) or [""]


def width_of(text: str, kind: str = "") -> float:
    """Return the width of letters in pixels, rounded up."""
    return len(text) * _letter(kind)


def _letter(kind: str) -> float:
    bold = "strong" in kind or "title" in kind
    return (11 if "small" in kind else 13) * (STRONG if bold else LETTER)


def _letters(room: float, kind: str) -> int:
    return max(3, int(room / _letter(kind)))


@dataclass(frozen=True)
class Scale:
    """A scale from values to pixels, linear from zero or logarithmic."""

    low: float
    high: float
    left: float
    right: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the pixel of a value; one beyond the ends lies on the end."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.left + share * (self.right - self.left)

    def ticks(self) -> list[float]:
        """Return round values within the ends, at least 60 pixels apart unless that leaves a single one."""
        return _log_ticks(self) if self.log else _linear_ticks(self)


def _linear_ticks(scale: Scale) -> list[float]:
    most = max(2, int((scale.right - scale.left) / 60))
    rough = (scale.high - scale.low) / most
    unit = 10.0 ** math.floor(math.log10(rough))
    steps = [factor * unit for factor in (0.5, 1, 2, 5, 10)]
    wanted = next(place for place, step in enumerate(steps) if step >= rough)
    found = _multiples(scale, steps[wanted])
    return found if len(found) > 1 or wanted == 0 else _multiples(scale, steps[wanted - 1])


def _multiples(scale: Scale, step: float) -> list[float]:
    first = math.ceil(scale.low / step - 1e-9)
    return [place * step for place in range(first, int(scale.high / step + 1e-9) + 1)]


def _log_ticks(scale: Scale) -> list[float]:
    """Return the most of 1, 2, 5 or 1, 3 or 1 times powers of ten that leave 34 pixels between two ticks."""
    if scale.high < 4 * scale.low:  # too short for powers: the steps of a linear scale
        return _linear_ticks(scale)
    powers = range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [f * 10.0**p for p in powers for f in factors if scale.low <= f * 10.0**p <= scale.high]
        places = [scale(value) for value in found]
        if len(found) < 2 or min(b - a for a, b in pairwise(places)) >= 34:
            break
    return found


def linear(values: Sequence[float], left: float, right: float) -> Scale:
    """Return a scale from zero that holds ``values``."""
    return Scale(0.0, 1.04 * max([*values, 1e-12]), left, right)


def logarithmic(values: Sequence[float], left: float, right: float) -> Scale:
    """Return a logarithmic scale that holds ``values``, all positive, with room at both ends."""
    low, high = min(values), max(values)
    return Scale(low / 1.15, high * 1.15, left, right, log=True)


def time_scale(values: Sequence[float], left: float, right: float) -> Scale:
    """Return the scale of times: from zero, or logarithmic where they differ by more than a factor of twenty."""
    return logarithmic(values, left, right) if max(values) > 20 * min(values) else linear(values, left, right)


def tick_words(value: float) -> str:
    """Return a tick without an exponent."""
    return f"{value:,.10g}"


def grid(scale: Scale, top: float, bottom: float, unit: str) -> list[str]:
    """Return a line and a number for each tick, the numbers below the lines; the last one has the unit."""
    ticks = scale.ticks()
    drawn = []
    for value in ticks:
        x = scale(value)
        drawn.append(element("line", x1=x, x2=x, y1=top, y2=bottom, class_="grid"))
        told = f"{tick_words(value)}{unit}" if value == ticks[-1] else tick_words(value)
        drawn.append(words(told, x, bottom + 15, "small soft", "middle"))
    return drawn


def drawn(draw: Callable[[int], tuple[float, list[str]]], label: str) -> tuple[str, str]:
    """Return a drawing in both widths. ``draw`` returns height and elements for a width; ``label`` says what it is."""
    return _whole(draw, WIDE, label), _whole(draw, NARROW, label)


def _whole(draw: Callable[[int], tuple[float, list[str]]], width: int, label: str) -> str:
    height, children = draw(width)
    kind = "wide" if width == WIDE else "narrow"
    return element(
        "svg",
        *children,
        viewBox=f"0 0 {width} {_text(float(height))}",
        class_=f"chart {kind}",
        role="group",
        aria_label=label,
    )


def to_row(run: str, mark: str) -> str:
    """Return the mark of a run (study and run) as a link to its row, which the keyboard reaches in its table."""
    return element("a", mark, href=f"#run-{run}", tabindex=-1, aria_label=run.split("/")[-1])


def dot(x: float, y: float, radius: float, look: str) -> str:
    """Return a dot."""
    return element("circle", cx=x, cy=float(y), r=radius, class_=f"mark dot {look}")


def cross(x: float, y: float, half: int) -> str:
    """Return a cross, for what is in no number."""
    path = f"M{x - half:.1f} {y - half:.1f}l{2 * half} {2 * half}m0 -{2 * half}l-{2 * half} {2 * half}"
    return element("path", d=path, class_="mark cross")


def diamond(x: float, y: float) -> str:
    """Return a diamond, for what was published."""
    return element("path", d=f"M{x:.1f} {y - 7:.1f}l6 7l-6 7l-6 -7z", class_="mark diamond")


def interval(scale: Scale, low: float | None, high: float | None, y: float, look: str) -> list[str]:
    """Return a line from ``low`` to ``high``; none where a bound is missing."""
    if low is None or high is None:
        return []
    ends = {"x1": scale(low), "x2": scale(high), "y1": y, "y2": y}
    return [element("line", **ends, class_=f"mark interval {look}")]
