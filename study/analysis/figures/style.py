"""One look for every figure: colours that differ in lightness too, markers that differ without colour."""

from dataclasses import dataclass
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

COLOURS = ("#1f4e79", "#d9822b", "#7fb3d5", "#6b2d5c", "#b8b8b8", "#2e8b57")
MARKERS = ("o", "s", "^", "D", "v", "P")
BEST = "#b03a2e"
LABEL_BOX = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
"""A white box that keeps grid lines out of a number."""


@dataclass(frozen=True)
class Drawn:
    """A figure with its title, its caption, and a text for readers who cannot see it."""

    figure: Figure
    title: str
    caption: str
    alt: str


def marked(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame, dict[str, Any]]]:
    """Return the rows of a table of timings that are drawn apart, with their label and their look; none if empty.

    These are disturbed runs that count, hollow, and records that were excluded, crossed.
    """
    aside = rows["excluded"].notna()
    parts = [
        ("disturbed run", rows[rows["disturbed"].notna() & ~aside], {"marker": "o", "markerfacecolor": "none"}),
        ("excluded, in no number", rows[aside], {"marker": "x"}),
    ]
    return [(label, part, {"linestyle": "none", "color": "0.2"} | look) for label, part, look in parts if len(part)]


def unmarked(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table of timings that are drawn plainly: they count, and no one disturbed their runs."""
    return rows[rows["excluded"].isna() & rows["disturbed"].isna()]


def use_style() -> None:
    """Set seaborn's whitegrid and small text, and make the same data give the same bytes.

    No text is read as a formula: a machine's name or a class may hold any sign, and a broken formula ends the drawing.
    """
    sns.set_theme(
        context="notebook",
        style="whitegrid",
        palette=list(COLOURS),
        rc={
            "svg.hashsalt": "study",
            "text.parse_math": False,
            "axes.titlesize": 11,
            "axes.labelsize": 10,
            "xtick.labelsize": 9,
            "ytick.labelsize": 9,
            "legend.fontsize": 9,
            "figure.constrained_layout.use": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
        },
    )


def log_y_axis(axes: Axes) -> None:
    """Make the axis logarithmic, with ticks at 1, 2 and 5 in plain numbers: matplotlib's own labels are formulas."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def batch_axis(axes: Axes, values: list[float], label: str) -> None:
    """Make the axis logarithmic, with a tick at each level and no other."""
    if min(values) > 0:
        axes.set_xscale("log", base=2)
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.minorticks_off()
    axes.set_xlabel(label)
