"""The roofline: the rate of each configuration under the measured ceilings (Williams, Waterman, Patterson 2009)."""

import math
from itertools import cycle, product

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from study.analysis.figures.style import COLOURS, MARKERS, PALETTE, Drawn
from study.analysis.words import number
from study.artifacts.machine import Ceilings

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
    _points(axes, shown)
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
    axes.plot([left, ridge], [left * copy, product], color=PALETTE["muted"], linewidth=1.8, linestyle="--", zorder=2)
    axes.plot([ridge, right], [product, product], color=PALETTE["muted"], linewidth=1.8, zorder=2)
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


def _points(axes: Axes, points: list[tuple[str, float, float]]) -> None:
    """Draw each point with a sign of its own, named beside the axes from the highest to the lowest."""
    signs = cycle(product(MARKERS, COLOURS))
    for (label, x, y), (marker, colour) in zip(sorted(points, key=lambda point: -point[2]), signs, strict=False):
        axes.plot(x, y, marker, color=colour, markeredgecolor="white", markersize=8, linestyle="none", label=label)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8 if len(points) > 16 else 9)


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
