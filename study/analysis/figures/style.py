"""One look for every chart and figure: the palette of the page, and the sizes of its type."""

from dataclasses import dataclass
from functools import lru_cache

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

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


@lru_cache(maxsize=4096)
def extent(text: str, size: float, weight: str) -> tuple[float, float, float]:
    """Return width, height and descent of a text in pixels."""
    letters = FontProperties(size=size, weight=weight)
    width, height, descent = text_to_path.get_text_width_height_descent(text, letters, ismath=False)
    return float(width), float(height), float(descent)


def width_of(text: str, look: str = "") -> float:
    """Return the width of a text in pixels."""
    return extent(text, SMALL if "small" in look else TEXT, "bold" if "bold" in look else "normal")[0]
