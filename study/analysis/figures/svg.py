"""From a matplotlib figure to SVG as text for the page: real letters, colours of the page's style, links, no id.

It is a small backend. Colours of the palette become CSS variables, so that the page's style says what they are by day,
by night and on paper; whatever has the same look is one group, which keeps a thousand dots small.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from itertools import groupby
from typing import Any

from matplotlib import rc_context
from matplotlib.backend_bases import GraphicsContextBase, RendererBase
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Transform

from study.analysis.figures.style import NARROW, PALETTE, TEXT, WIDE, extent
from study.analysis.words import isolate_bidi

VARIABLES = {colour: f"var(--{name})" for name, colour in PALETTE.items()}
CIRCLE = 26
"""Vertices of a circle, which no other marker has."""
LETTERS = {1: "M", 2: "L", 3: "Q", 4: "C", 79: "Z"}


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


def in_both_widths(draw: Callable[[int], Figure], label: str) -> tuple[str, str]:
    """Return a chart as SVG for a desk and for a phone; ``draw`` takes the width, ``label`` says what it shows."""
    with rc_context({"text.parse_math": False}):
        return inline(draw(WIDE), label, "chart wide"), inline(draw(NARROW), label, "chart narrow")


def inline(figure: Figure, label: str = "", kind: str = "") -> str:
    """Return a figure as SVG of its size in pixels, hidden from a screen reader where it has no ``label``."""
    width, height = (72 * float(inches) for inches in figure.get_size_inches())
    renderer = _Inline(width, height)
    figure.draw(renderer)
    drawn = "".join(
        f"<g {look}>{''.join(element for _, element in elements)}</g>"
        for look, elements in groupby(renderer.elements, lambda one: one[0])
    )
    # What an image holds is hidden from a screen reader, so that no link may be in one.
    role = f'role="{"group" if "<a " in drawn else "img"}" aria-label="{escape(isolate_bidi(label))}"'
    told = f'class="{kind}" {role}' if label else 'aria-hidden="true"'
    return f'<svg viewBox="0 0 {width:g} {height:g}" {told} font-size="{TEXT}">{drawn}</svg>'


class _Inline(RendererBase):
    """What draws: it keeps each element with the attributes of its look."""

    def __init__(self, width: float, height: float) -> None:
        super().__init__()
        self.width, self.height = width, height
        self.elements: list[tuple[str, str]] = []
        self._classes: list[str] = []

    def get_canvas_width_height(self) -> tuple[float, float]:
        return self.width, self.height

    def get_text_width_height_descent(self, s: str, prop: FontProperties, ismath: Any) -> tuple[float, float, float]:
        return extent(s, prop.get_size_in_points(), str(prop.get_weight()))

    def open_group(self, s: str, gid: str | None = None) -> None:
        self._classes.append(gid or "")

    def close_group(self, s: str) -> None:
        self._classes.pop()

    def draw_path(self, gc: GraphicsContextBase, path: Path, transform: Transform, rgbFace: Any = None) -> None:
        fill = "none" if rgbFace is None or (len(rgbFace) == 4 and rgbFace[3] == 0) else _colour(rgbFace)
        stroke = _stroke(gc)
        if fill == "none" and not stroke:
            return
        if len(path) == CIRCLE:
            points = transform.transform(path.vertices)
            (left, low), (right, high) = points.min(axis=0), points.max(axis=0)
            middle = f'cx="{_short((left + right) / 2)}" cy="{_short(self.height - (low + high) / 2)}"'
            shape = f'<circle {middle} r="{_short((right - left) / 2)}"/>'
        else:
            shape = f'<path d="{self._outline(path, transform)}"/>'
        self._add([f'fill="{fill}"', *stroke], shape, gc)

    def _outline(self, path: Path, transform: Transform) -> str:
        parts = []
        for points, code in path.iter_segments(transform, simplify=False):
            told = " ".join(
                _short(self.height - value if place % 2 else value) for place, value in enumerate(points.tolist())
            )
            parts.append("Z" if code == Path.CLOSEPOLY else f"{LETTERS[int(code)]}{told}")
        return "".join(parts)

    def draw_text(
        self,
        gc: GraphicsContextBase,
        x: float,
        y: float,
        s: str,
        prop: FontProperties,
        angle: float,
        ismath: Any = False,
        mtext: Text | None = None,
    ) -> None:
        anchor = ""
        if mtext is not None and mtext.get_horizontalalignment() != "left":
            # The browser's letters have other widths than ours: it is to align them itself.
            x = float(mtext.get_transform().transform(mtext.get_unitless_position())[0])
            anchor = "middle" if mtext.get_horizontalalignment() == "center" else "end"
        size, bold = float(prop.get_size_in_points()), prop.get_weight() == "bold"
        told = [f'fill="{_colour(gc.get_rgb())}"', f'text-anchor="{anchor}"' * bool(anchor)]
        told += [f'font-size="{size:g}"' * (size != TEXT), 'font-weight="700"' * bold]
        self._add(told, f'<text x="{_short(x)}" y="{_short(y)}">{escape(isolate_bidi(s), quote=False)}</text>', gc)

    def _add(self, look: list[str], element: str, gc: GraphicsContextBase) -> None:
        url = gc.get_url()
        if url:
            name = escape(url.rpartition("/")[2])
            element = f'<a href="{escape(url)}" tabindex="-1" aria-label="{name}">{element}</a>'
        told = f'class="{self._classes[-1]}"' if self._classes and self._classes[-1] else ""
        self.elements.append((" ".join(filter(None, [told, *look])), element))


def _stroke(gc: GraphicsContextBase) -> list[str]:
    width = float(gc.get_linewidth())
    if not width:
        return []
    dashes: Any = gc.get_dashes()[1]
    told = [f'stroke="{_colour(gc.get_rgb())}"', f'stroke-width="{_short(width)}"' * (width != 1)]
    return [*told, f'stroke-dasharray="{" ".join(map(_short, dashes))}"' if dashes else ""]


def _colour(rgb: Sequence[float]) -> str:
    return _variable(rgb[0], rgb[1], rgb[2])


@lru_cache
def _variable(red: float, green: float, blue: float) -> str:
    told = to_hex((red, green, blue))
    return VARIABLES.get(told, told)


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
