"""A chart of the page, drawn as SVG in pixels: real letters, colours of the page's style, links, no
id.

Colours are variables of the page's style, which says what they are by day, by night and on paper.
Whatever has the same look is one group, which keeps a thousand dots small.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import LogLocator, MaxNLocator

from study.analysis.words import isolate_bidi

WIDE, NARROW = 736, 343
"""Widths of a chart of the page in pixels, for a desk and for a phone."""
TEXT, SMALL = 13, 12
"""Heights of text in pixels."""
GRID, LINES, RUNS, MEANS, SIGNS, LETTERS = 0.0, 2.0, 3.0, 4.0, 5.0, 8.0
"""Layers of a drawing, from below."""
BELOW = 15.1
"""Pixels from the end of an axis to the letters below it."""


@dataclass(frozen=True)
class Chart:
    """A chart of the page: its drawing in both widths, and its words."""

    title: str
    subtitle: str
    caption: str
    wide: str
    narrow: str
    key: tuple[tuple[str, str], ...]
    """The sign of each kind of mark as SVG, with its words."""


class Drawing:
    """A drawing of some pixels, in layers: a higher one lies above a lower one."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._groups: dict[tuple[float, str, int], list[str]] = {}
        self._last, self._turn = (0.0, ""), 0

    def add(self, layer: float, look: str, element: str, link: str = "") -> None:
        """Add an element of SVG to those of its look, which are its attributes; ``link`` is where
        it leads."""
        if link:
            name = escape(link.rpartition("/")[2])
            element = f'<a href="{escape(link)}" tabindex="-1" aria-label="{name}">{element}</a>'
        is_text = element.startswith("<text")  # which is read in its order
        if is_text and (layer, look) != self._last:
            self._last, self._turn = (layer, look), self._turn + 1
        self._groups.setdefault((layer, look, self._turn * is_text), []).append(element)

    def line(
        self,
        layer: float,
        points: Sequence[tuple[float, float]],
        colour: str,
        width: float = 1,
        kind: str = "",
        more: str = "",
    ) -> None:
        """Add a line through some points; ``kind`` is its class, ``more`` are further
        attributes."""
        told = [f'class="{kind}"' * bool(kind), f'fill="none" stroke="var(--{colour})"']
        told += [f'stroke-width="{width:g}"' * (width != 1), more]
        self.add(layer, " ".join(filter(None, told)), f'<path d="{path(points)}"/>')

    def shape(self, layer: float, points: Sequence[tuple[float, float]], look: str) -> None:
        """Add a shape between some corners."""
        self.add(layer, look, f'<path d="{path(points)}Z"/>')

    def dot(self, x: float, y: float, radius: float, look: str, link: str = "") -> None:
        """Add a circle to the layer of the runs."""
        self.add(RUNS, look, f'<circle cx="{_short(x)}" cy="{_short(y)}" r="{radius}"/>', link)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        look: str = "",
        colour: str = "ink",
        layer: float = LETTERS,
    ) -> None:
        """Write a text from ``x`` with its baseline at ``y``, in a look of: small, bold, middle,
        end, over a grid."""
        if not text:
            return
        size = SMALL if "small" in look else TEXT
        anchor = next((word for word in ("middle", "end") if word in look), "")
        if "over" in look:
            _, height, descent = extent("lp", size, "normal")
            wide = width_of(text, look)
            left = x - {"": 0.0, "middle": 0.5, "end": 1.0}[anchor] * wide
            top, bottom = y + descent - height - 1, y + descent + 1
            corners = [
                (left - 1, top),
                (left + wide + 1, top),
                (left + wide + 1, bottom),
                (left - 1, bottom),
            ]
            self.shape(layer - 0.5, corners, 'fill="var(--bg)"')
        told = [f'fill="var(--{colour})"', f'text-anchor="{anchor}"' * bool(anchor)]
        told += [f'font-size="{size}"' * (size != TEXT), 'font-weight="700"' * ("bold" in look)]
        words = escape(isolate_bidi(text), quote=False)
        self.add(
            layer,
            " ".join(filter(None, told)),
            f'<text x="{_short(x)}" y="{_short(y)}">{words}</text>',
        )

    def svg(self, label: str = "", kind: str = "") -> str:
        """Return the drawing as text, hidden from a screen reader where it has no ``label``."""
        in_order = sorted(self._groups.items(), key=lambda group: group[0][0])
        drawn = "".join(f"<g {look}>{''.join(elements)}</g>" for (_, look, _), elements in in_order)
        # What an image holds is hidden from a screen reader, so that no link may be in one.
        role = (
            f'role="{"group" if "<a " in drawn else "img"}" '
            f'aria-label="{escape(isolate_bidi(label))}"'
        )
        told = f'class="{kind}" {role}' if label else 'aria-hidden="true"'
        return (
            f'<svg viewBox="0 0 {self.width:g} {self.height:g}" {told} '
            f'font-size="{TEXT}">{drawn}</svg>'
        )


@dataclass(frozen=True)
class Axis:
    """A horizontal axis from pixel ``left`` to ``right``, of the values from ``low`` to
    ``high``."""

    left: float
    right: float
    low: float
    high: float
    log: bool = False

    def pixel(self, value: float) -> float:
        """Return where a value lies."""
        low, high, at = (
            math.log(max(one, 1e-9)) if self.log else one for one in (self.low, self.high, value)
        )
        return self.left + (at - low) / (high - low) * (self.right - self.left)

    def ticks(self, unit: str) -> dict[float, str]:
        """Return values with their words, as many as have room; each has its unit on a logarithmic
        axis."""
        most = max(2, int((self.right - self.left) / 55))
        if not self.log or self.high < 4 * self.low:
            found = [
                float(one)
                for one in MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(self.low, self.high)
            ]
        else:
            for factors in ((1, 2, 5), (1, 3), (1,)):
                found = [
                    float(value)
                    for value in LogLocator(subs=factors).tick_values(self.low, self.high)
                ]
                if sum(self.low <= value <= self.high for value in found) <= most:
                    break
        shown = [
            value
            for value in found
            if self.low <= value * (1 + 1e-9) and value <= self.high * (1 + 1e-9)
        ]
        return {
            value: f"{value:,.10g}{unit if self.log or value == shown[-1] else ''}"
            for value in shown
        }

    def draw(self, drawing: Drawing, top: float, bottom: float, unit: str) -> None:
        """Draw a grid from ``top`` to ``bottom``, and the words of its lines below it."""
        for value, told in self.ticks(unit).items():
            x = self.pixel(value)
            drawing.line(GRID, [(x, bottom), (x, top)], "grid")
            drawing.text(x, bottom + BELOW, told, "small middle", "muted", GRID)


def in_both_widths(draw: Callable[[int], Drawing], label: str) -> tuple[str, str]:
    """Return a chart as SVG for a desk and for a phone; ``draw`` takes the width, ``label`` says
    what it shows."""
    return draw(WIDE).svg(label, "chart wide"), draw(NARROW).svg(label, "chart narrow")


@lru_cache(maxsize=4096)
def extent(text: str, size: float, weight: str) -> tuple[float, float, float]:
    """Return width, height and descent of a text in pixels."""
    letters = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    width, height, descent = text_to_path.get_text_width_height_descent(text, letters, ismath=False)
    return float(width), float(height), float(descent)


def width_of(text: str, look: str) -> float:
    """Return the width of a text in pixels."""
    return extent(text, SMALL if "small" in look else TEXT, "bold" if "bold" in look else "normal")[
        0
    ]


def path(points: Sequence[tuple[float, float]]) -> str:
    """Return a path through some points."""
    return "M" + "L".join(f"{_short(x)} {_short(y)}" for x, y in points)


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
