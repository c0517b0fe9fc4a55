"""The roofline: the rate of each configuration under the measured ceilings (Williams, Waterman, Patterson 2009)."""

import math
from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from study.analysis.figures.style import BEST, COLOURS, LABEL_BOX, Drawn
from study.analysis.words import number
from study.artifacts.machine import Ceilings

LABEL_COLUMN = 1.03
"""Left edge of the labels, as a share of the axes' width."""
LABEL_GAP = 0.062
"""Distance between two labels, as a share of the axes' height: a line of small text at the figure's size."""
PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"))


def draw(points: list[tuple[str, float, float]], ceilings: Ceilings, device_name: str) -> Drawn | None:
    """Return points (label, FLOP per byte, FLOP/s) under the two ceilings.

    It is None without a point that has both, and where a point lies above the ceilings: they were measured on a slower
    machine, and no share of them holds.
    """
    shown = [point for point in points if all(math.isfinite(value) and value > 0 for value in point[1:])]
    if not shown or any(y > ceilings.attainable(x) for _, x, y in shown):
        return None
    figure = Figure(figsize=(8.5, 4.6))
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log", xlabel="arithmetic intensity, at most (FLOP per byte)", ylabel="FLOP/s")
    axes.grid(True, which="major", linewidth=0.6)
    axes.minorticks_off()
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_major_formatter(EngFormatter())
    _limits(axes, shown, ceilings)
    _roof(axes, ceilings)
    _points(axes, shown, ceilings.product_flop_per_second.best)
    axes.set_title(f"{device_name}, {arithmetic_words(ceilings)}")
    return Drawn(figure, "Roofline", _caption(shown, len(points), ceilings), _alt(shown, ceilings, device_name))


def rate_words(value: float, unit: str) -> str:
    """Return a rate in words: ``51.2 TFLOP/s``."""
    scale, prefix = next(((scale, prefix) for scale, prefix in PREFIXES if value >= scale), (1.0, ""))
    return f"{number(value / scale)} {prefix}{unit}"


def arithmetic_words(ceilings: Ceilings) -> str:
    """Return the precision, and the arithmetic of fp32 where that is another."""
    arithmetic = ceilings.product_arithmetic
    precision = "fp32" if ceilings.precision == "auto" else ceilings.precision
    return precision if arithmetic in (precision, "ieee") else f"{precision} computed as {arithmetic.upper()}"


def spread(heights: list[float], gap: float, top: float) -> list[float]:
    """Return the heights (shares of the axes, any order), moved until they lie a gap apart between 0 and ``top``.

    Their mean stays where the two ends allow; more labels than fit share the height evenly.
    """
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    gap = min(gap, top / max(1, len(heights) - 1))
    placed = [heights[index] for index in order]
    for at in range(1, len(placed)):
        placed[at] = max(placed[at], placed[at - 1] + gap)
    # All were moved up: together they go back down by the mean.
    drift = sum(new - heights[index] for new, index in zip(placed, order, strict=True)) / len(placed)
    placed = [height - drift for height in placed]
    placed = [max(height, at * gap) for at, height in enumerate(placed)]
    last = len(placed) - 1
    placed = [min(height, top - (last - at) * gap) for at, height in enumerate(placed)]
    result = list(heights)
    for index, height in zip(order, placed, strict=True):
        result[index] = height
    return result


def uncross(places: list[tuple[float, float]], heights: list[float]) -> list[float]:
    """Return the heights, dealt so that no two lines from a place to its label cross.

    Two lines that cross are longer together than the two that do not, so each swap shortens the whole, and it ends.
    """
    dealt, swapped = list(heights), True
    while swapped:
        swapped = False
        for i, j in combinations(range(len(dealt)), 2):
            if _cross(places[i], dealt[i], places[j], dealt[j]):
                dealt[i], dealt[j], swapped = dealt[j], dealt[i], True
    return dealt


def _cross(one: tuple[float, float], one_height: float, other: tuple[float, float], other_height: float) -> bool:
    """Return whether the lines from two places to their labels cross, at the start of the one further right."""
    if one[0] > other[0]:
        one, one_height, other, other_height = other, other_height, one, one_height
    there = one[1] + (one_height - one[1]) * (other[0] - one[0]) / (LABEL_COLUMN - one[0])
    return (there - other[1]) * (one_height - other_height) < 0


def _limits(axes: Axes, points: list[tuple[str, float, float]], ceilings: Ceilings) -> None:
    """Return limits with room for the ridge, part of both roofs, every point, and text above the product's roof."""
    product, copy = ceilings.product_flop_per_second.best, ceilings.copy_bytes_per_second.best
    ridge = product / copy
    left = min(ridge / 30, *(x / 2 for _, x, _ in points))
    right = max(ridge * 30, *(x * 3 for _, x, _ in points))
    bottom = min(left * copy, *(y / 2 for _, _, y in points))
    axes.set(xlim=(left, right), ylim=(bottom, max(product, *(y for _, _, y in points)) * 2.5))


def _roof(axes: Axes, ceilings: Ceilings) -> None:
    product, copy = ceilings.product_flop_per_second.best, ceilings.copy_bytes_per_second.best
    left, right = axes.get_xlim()
    ridge = product / copy
    axes.plot([left, ridge], [left * copy, product], color=BEST, linewidth=1.8, linestyle="--", zorder=2)
    axes.plot([ridge, right], [product, product], color=BEST, linewidth=1.8, zorder=2)
    axes.annotate(
        f"matrix product: {rate_words(product, 'FLOP/s')}",
        (right, product),
        xytext=(-4, 4),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=9,
    )
    # Left of the slope and above it: no point can lie there.
    middle = math.sqrt(left * ridge)
    axes.annotate(
        f"copy: {rate_words(copy, 'B/s')}",
        (middle, middle * copy),
        xytext=(-8, 2),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=9,
    )


def _points(axes: Axes, points: list[tuple[str, float, float]], roof: float) -> None:
    """Draw markers, and beside the axes one column of labels, each with a line to its point: a column cannot collide.

    The column ends below the roof, so that no line crosses the text above it.
    """
    low, high = np.log(axes.get_ylim())
    left, right = np.log(axes.get_xlim())
    places = [((math.log(x) - left) / (right - left), (math.log(y) - low) / (high - low)) for _, x, y in points]
    heights = uncross(places, spread([y for _, y in places], LABEL_GAP, (math.log(roof) - low) / (high - low)))
    axes.plot(
        [x for _, x, _ in points],
        [y for _, _, y in points],
        "o",
        color=COLOURS[0],
        markeredgecolor="white",
        markersize=7,
        zorder=4,
    )
    for (label, x, y), height in zip(points, heights, strict=True):
        axes.annotate(
            label,
            (x, y),
            xytext=(LABEL_COLUMN, height),
            textcoords="axes fraction",
            va="center",
            fontsize=9,
            bbox=LABEL_BOX,
            arrowprops={
                "arrowstyle": "-",
                "color": "0.55",
                "linewidth": 0.7,
                "shrinkA": 0,
                "shrinkB": 4,
                "relpos": (0, 0.5),
            },
            zorder=3,
        )


def _caption(points: list[tuple[str, float, float]], given: int, ceilings: Ceilings) -> str:
    shares = "; ".join(f"{label}: {number(100 * y / ceilings.attainable(x))}%" for label, x, y in points)
    parts = [
        "Both ceilings were measured on this machine, as the best of "
        f"{len(ceilings.product_flop_per_second.samples)} products of {ceilings.product_side} x "
        f"{ceilings.product_side} matrices and {len(ceilings.copy_bytes_per_second.samples)} copies, read plus write.",
        f"Share of the ceiling above each point: {shares}.",
        "A point is the median step: the wait for an epoch's first batch and for late batches is mostly left out. "
        "Bytes are a lower bound that leaves out the activations, so every point lies too far to the right, "
        "and a share of the product's ceiling does not say that arithmetic is the limit.",
    ]
    if given > len(points):
        parts.append(f"Left out: {given - len(points)} without a positive intensity and rate.")
    return " ".join(parts)


def _alt(points: list[tuple[str, float, float]], ceilings: Ceilings, device_name: str) -> str:
    each = "; ".join(f"{label}: {rate_words(y, 'FLOP/s')} at {number(x)} FLOP per byte" for label, x, y in points)
    return (
        f"Roofline of {device_name}: ceilings {rate_words(ceilings.product_flop_per_second.best, 'FLOP/s')} and "
        f"{rate_words(ceilings.copy_bytes_per_second.best, 'B/s')}. {each}."
    )
