"""One look for every chart and picture: the palette of the page."""

from dataclasses import dataclass

import seaborn as sns
from matplotlib import rcdefaults
from matplotlib.figure import Figure

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
COLOURS = tuple(
    PALETTE[name] for name in ("p-comp", "p-wait", "p-comp2", "p-val", "p-start", "p-rest")
)
LABEL_BOX = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
"""A white box that keeps grid lines out of a number."""


@dataclass(frozen=True)
class Drawn:
    """A figure with its title, its caption, and a text for readers who cannot see it."""

    figure: Figure
    title: str
    caption: str
    alt: str


def use_style() -> None:
    """Set seaborn's whitegrid, the palette of the page and small text, and nothing of a
    ``matplotlibrc``."""
    rcdefaults()
    # The same data give the same bytes. No text is read as a formula: a machine's name may hold any
    # sign, and a broken formula ends the drawing.
    whole = {
        "svg.hashsalt": "study",
        "text.parse_math": False,
        "figure.constrained_layout.use": True,
    }
    sizes = {
        "axes.titlesize": 11,
        "axes.labelsize": 10,
        "xtick.labelsize": 9,
        "ytick.labelsize": 9,
        "legend.fontsize": 9,
    }
    colours = {
        "text.color": PALETTE["ink"],
        "grid.color": PALETTE["grid"],
        "axes.edgecolor": PALETTE["rule"],
    }
    spines = {"axes.spines.top": False, "axes.spines.right": False}
    sns.set_theme(
        context="notebook",
        style="whitegrid",
        palette=list(COLOURS),
        rc=whole | sizes | colours | spines,
    )


def printable(text: str) -> str:
    """Return a text as a picture has it: no font has a shape for a control character."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
