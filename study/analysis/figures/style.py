"""One look for every chart and figure: the palette of the page, its type, and the axes that they share."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import LogLocator, MaxNLocator

PALETTE = {
    "bg": "#ffffff",
    "ink": "#16202a",
    "muted": "#54606c",
    "rule": "#d5dbe1",
    "grid": "#e6eaee",
    "answer": "#00707a",
    "other": "#4a6076",
    "out": "#8a949e",
    "contra": "#b3261e",
    "p-start": "#8a6a14",
    "p-warm": "#a04a4a",
    "p-wait": "#b4521b",
    "p-move": "#9a4a78",
    "p-prep": "#66702c",
    "p-comp2": "#217c9b",
    "p-comp": "#2b67ad",
    "p-comp3": "#5560bf",
    "p-val": "#7753a5",
    "p-rest": "#6b7681",
}
"""The colours by day, by the names that the page's style gives them."""
NIGHT = {
    "bg": "#12171c",
    "ink": "#e7ebef",
    "muted": "#a5b0bb",
    "rule": "#36414b",
    "grid": "#28323b",
    "answer": "#4cc5c2",
    "other": "#a9bacb",
    "out": "#76828e",
    "contra": "#ff8f86",
}
"""Those that are others by night."""
COLOURS = tuple(PALETTE[name] for name in ("p-comp", "p-wait", "p-comp2", "p-val", "p-start", "p-rest"))
LABEL_BOX = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
"""A white box that keeps grid lines out of a number."""
WIDE, NARROW = 736, 343
"""Widths of a chart of the page in pixels, for a desk and for a phone."""
TEXT, SMALL = 13, 12
"""Heights of text in pixels."""


@dataclass(frozen=True)
class Drawn:
    """A figure with its title, its caption, and a text for readers who cannot see it."""

    figure: Figure
    title: str
    caption: str
    alt: str


def canvas(width: float, height: float) -> Figure:
    """Return an empty figure in pixels, one for each point."""
    with rc_context({"figure.constrained_layout.use": False}):
        return Figure(figsize=(width / 72, height / 72), dpi=72, frameon=False)


def plot(figure: Figure, left: float, right: float, top: float, bottom: float) -> Axes:
    """Return axes between these pixels, counted from the left and from above; y is in pixels as well."""
    width, height = 72 * figure.get_size_inches()
    box = (left / width, 1 - bottom / height, (right - left) / width, (bottom - top) / height)
    axes = figure.add_axes(box, frameon=False, ylim=(bottom, top))
    axes.yaxis.set_visible(False)
    axes.tick_params(length=0, pad=6, labelsize=SMALL, labelcolor=PALETTE["muted"])
    axes.grid(visible=True, axis="x", color=PALETTE["grid"], linewidth=1)
    axes.set_axisbelow(True)
    return axes


@lru_cache
def font(look: str) -> FontProperties:
    """Return the letters of a ``look``, which may hold the words small and bold."""
    return FontProperties(size=SMALL if "small" in look else TEXT, weight="bold" if "bold" in look else "normal")


def letters(figure: Figure, text: str, x: float, y: float, look: str = "", colour: str = "ink") -> None:
    """Write a text from pixel ``x`` with its baseline at ``y``, in a ``look`` of: small, bold, end, over (a grid)."""
    width, height = 72 * figure.get_size_inches()
    style: dict[str, Any] = {"color": PALETTE[colour], "fontproperties": font(look), "va": "baseline"}
    style |= {"bbox": LABEL_BOX} if "over" in look else {}
    figure.text(x / width, 1 - y / height, text, ha="right" if "end" in look else "left", **style)


@lru_cache(maxsize=4096)
def extent(text: str, size: float, weight: str) -> tuple[float, float, float]:
    """Return width, height and descent of a text in pixels."""
    letters = FontProperties(size=size, weight=weight)
    width, height, descent = text_to_path.get_text_width_height_descent(text, letters, ismath=False)
    return float(width), float(height), float(descent)


def width_of(text: str, look: str = "") -> float:
    """Return the width of a text in pixels."""
    return extent(text, SMALL if "small" in look else TEXT, "bold" if "bold" in look else "normal")[0]


def ticks(axes: Axes, unit: str, log: bool = False) -> None:
    """Set round ticks on the axis of ``plot``, as many as have room; each has its unit on a logarithmic axis."""
    low, high = axes.get_xlim()
    most = max(2, int(axes.bbox.width / 55))
    if not log or high < 4 * low:
        found = [float(value) for value in MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(low, high)]
    else:
        for factors in ((1, 2, 5), (1, 3), (1,)):
            found = [float(value) for value in LogLocator(subs=factors).tick_values(low, high)]
            if sum(low <= value <= high for value in found) <= most:
                break
    shown = [value for value in found if low <= value * (1 + 1e-9) and value <= high * (1 + 1e-9)]
    axes.set_xticks(shown, [f"{value:,.10g}{unit if log or value == shown[-1] else ''}" for value in shown])
    axes.minorticks_off()
