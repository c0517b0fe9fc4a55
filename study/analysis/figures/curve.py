"""The curve: time over a numeric factor, with every run, the means, the law and its band, and the
words of each setting below the axis.

The axis of the sizes is logarithmic. That of the time begins at 0 for one curve, for only then are
areas seconds: what stays, what grows and what shrinks with the size. It is logarithmic for several.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.analysis import Analysis
from study.analysis.answers.context import Context, capital
from study.analysis.answers.curve import CurveFit, Term
from study.analysis.figures.rows import Row, draw_row, ends_of, key_of
from study.analysis.figures.settings import Rows
from study.analysis.figures.style import (
    PALETTE,
    SMALL,
    WIDE,
    Chart,
    Marks,
    Sheet,
    line,
    plain,
    ticks,
    width_of,
)
from study.analysis.stats.laws import by_name
from study.analysis.stats.mixed_model import Array
from study.analysis.words import interval, law_formula, short
from study.artifacts.plan import Plan
from study.config.settings import in_words

LEAST_SIZES, MOST_GROUPS, MOST_BLOCKS = 4, 3, 6
TOP, HIGH, LINE, BESIDE = 12.0, 300.0, 17.0, 150.0
"""Pixels above the axes, of their height, of a line of words, and right of the axes."""
AREAS = {"stays": ("other", 0.5), "grows": ("grow", 0.85), "shrinks": ("answer", 0.15)}
"""Colour of each part of the time, and the place of its name from the left to the right."""


class Beside(NamedTuple):
    """Words right of the axes."""

    seconds: float
    told: str
    colour: str = "muted"


@dataclass(frozen=True)
class Series:
    """One group."""

    name: str
    rows: Mapping[float, Row]
    """The sizes that have a time."""
    curve: CurveFit | None

    @property
    def fit(self) -> CurveFit | None:
        """The law that is drawn; None where there is none."""
        return self.curve if self.curve and self.curve.line else None

    @cached_property
    def blocks(self) -> list[list[tuple[float, float]]]:
        """The runs of each block that count, where a few blocks differ by more than twice the
        noise: log of the size, and seconds."""
        spreads = self.curve.spreads if self.curve else {}
        found: dict[object, list[tuple[float, float]]] = {}
        for x, row in self.rows.items():
            for dot in row.dots:
                if not dot.excluded:
                    found.setdefault(dot.block, []).append((np.log(x), dot.value))
        far = spreads.get("block", 0.0) > 2 * spreads.get("noise", 0.0)
        return list(found.values()) if far and len(found) <= MOST_BLOCKS else []

    @property
    def style(self) -> str:
        """How the law is drawn: as ``law`` or as ``doubt``."""
        return "doubt" if self.fit and self.fit.verdict.kind == "falls" else "law"


@dataclass(frozen=True)
class Curve:
    """All that the chart shows."""

    series: Sequence[Series]
    x: str
    """The factor in words."""

    @property
    def alone(self) -> bool:
        """Whether there is one group."""
        return len(self.series) == 1

    @cached_property
    def rows(self) -> list[Row]:
        """The rows of all groups."""
        return list(chain.from_iterable(one.rows.values() for one in self.series))

    @cached_property
    def sizes(self) -> list[float]:
        """Every measured size, the smallest first."""
        return sorted({*chain.from_iterable(one.rows for one in self.series)})

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Both ends of the axis of the time."""
        return ends_of(self.rows, log=not self.alone)

    @property
    def published(self) -> CurveFit | None:
        """The fit whose published law is drawn beside the one that turns; None where none is."""
        fit = self.series[0].fit if self.alone else None
        return fit if fit and fit.verdict.kind == "turns" else None


def curve_chart(plan: Plan, found: Rows, analysis: Analysis) -> Chart | None:
    """Return the curve of a study; None without one of four sizes or more, or of more than three
    groups."""
    if plan.study.curve is None or not 1 <= len(analysis.groups) <= MOST_GROUPS:
        return None
    context = Context(plan.study, analysis.groups)
    series = []
    for group in analysis.groups:
        rows = {
            level.x or 0: found[group.label, level.label] for level in group.levels if level.time
        }
        name = capital(context.who(group.setting).removeprefix("the "))
        series.append(Series(name, rows, group.curve))
    curve = Curve(series, in_words(plan.study.curve.x))
    if len(curve.sizes) < LEAST_SIZES or min(curve.sizes) <= 0:
        return None
    styles = {one.style for one in series if one.fit}
    laws = {
        "law": ("the law, 95% band", "law" in styles),
        "doubt": ("a law, not determined, 95% band", "doubt" in styles),
        "block": ("runs of one block", any(one.blocks for one in series)),
        "published": ("the published law, at its closest", curve.published),
    }
    kinds = [(kind, words) for kind, (words, shown) in laws.items() if shown]
    return Chart(
        title=analysis.screen.chart,
        subtitle=f"Seconds by {curve.x}{'' if curve.alone else '; both axes logarithmic'}",
        draw=partial(draw, curve),
        key=(*key_of(curve.rows), *kinds),
    )


def draw(curve: Curve, width: int) -> Figure:
    """Return the chart as a figure of ``width`` pixels."""
    wide = width == WIDE
    strip = _strip(curve, wide)
    left = max(width_of(name, SMALL) for name in strip) + (28 if wide else 14)
    sheet = Sheet(width, TOP + HIGH + 6 + LINE * len(strip))
    axes = sheet.axes(left, TOP, width - (BESIDE if wide else 8), TOP + HIGH)
    first, last = np.log([curve.sizes[0], curve.sizes[-1]])
    step = (last - first) / (len(curve.sizes) - 1)
    axes.set_yscale("linear" if curve.alone else "log")
    axes.set(xlim=(first - step / 2, last + step / 2), ylim=curve.ends, xticks=[])
    plain(axes)
    found = ticks(*curve.ends, most=6, log=not curve.alone)
    axes.set_yticks(found, [f"{seconds:,.10g} s" for seconds in found])
    axes.minorticks_off()
    for place, (name, cells) in enumerate(strip.items(), 1):
        y = TOP + HIGH + LINE * place
        sheet.text(0, y, name, "muted", SMALL)
        for x, (told, colour, bold) in cells.items():
            at = sheet.pixel(axes, np.log(x), found[-1])[0]
            sheet.text(at, y, told, colour, SMALL, "center", bold)
    beside = []
    marks = Marks(axes, upright=True)
    for place, one in enumerate(curve.series):
        shift = 0.12 * (place - (len(curve.series) - 1) / 2)
        beside += _law(curve, axes, one)
        claims = {x: row.claimed for x, row in one.rows.items() if row.claimed is not None}
        if claims:  # a dashed line where a claim puts the sizes
            seconds = np.clip(list(claims.values()), *curve.ends)
            line(axes, "claims", np.log(list(claims)) + shift * step, seconds)
            beside.append(Beside(seconds[-1], "the claim", "contra"))
        for points in one.blocks:
            line(axes, "block", *zip(*points, strict=True))
        for x, row in one.rows.items():
            draw_row(marks, row, np.log(x) + shift * step, 0.14 * step)
    if curve.published:
        xs = [point.x for point in curve.published.band]
        seconds = by_name("power").seconds(curve.published.power.coefficients, xs)
        line(axes, "published", np.log(xs), seconds)
        beside.append(Beside(seconds[-1], "the published law"))
    y = 0.0  # right of the axes, near the seconds of each, one below the other
    for words in sorted(beside if wide else (), key=lambda one: one.seconds, reverse=True):
        y = max(sheet.pixel(axes, 0, words.seconds)[1] + 4, y + LINE - 2)
        sheet.text(sheet.width - BESIDE + 10, y, words.told, words.colour, SMALL)
    return sheet.figure


def _strip(curve: Curve, wide: bool) -> dict[str, dict[float, tuple[str, str, bool]]]:
    """Return the lines of words below the axis by their names: for each size its words, their
    colour, and whether they are bold."""
    found = {curve.x: {x: (f"{x:g}", "ink", False) for x in curve.sizes}}
    for one in curve.series:
        for x, row in one.rows.items():
            verdict = row.verdict.removesuffix(" as well")
            if not wide:
                verdict = "out" if row.look == "out" else verdict.partition(" within ")[0]
            accuracy = row.accuracy.removesuffix(" accurate")
            mean = row.mean if wide or row.time is None else short(row.time.value)
            words = {"mean": mean, "verdict": verdict, "accuracy": accuracy}
            if wide and row.ratio:
                words["times the best"] = row.ratio.replace(" to ", "\N{EN DASH}")
            for name, told in (words if curve.alone else {one.name: mean}).items():
                found.setdefault(name, {})[x] = told, row.ink, row.best
    return found


def _law(curve: Curve, axes: Axes, one: Series) -> list[Beside]:
    """Draw the law with its band, and for one curve the parts below it and what stays. Return the
    words beside them."""
    rows = list(one.rows.values())
    leads = not curve.alone and any(row.look == "answer" for row in rows)
    if one.fit is None or one.fit.line is None:
        last = rows[-1].time
        return [] if curve.alone or last is None else [Beside(last.value, one.name, "ink")]
    xs = [point.x for point in one.fit.band]
    places = np.log(xs)
    band = [(point.low, point.value, point.high) for point in one.fit.band]
    low, value, high = np.clip(band, *curve.ends).T
    _area(axes, places, low, high, "answer" if leads else "other")
    line(axes, "best" if leads else one.style, places, value, gid="law")
    if not curve.alone:
        return [Beside(value[-1], one.name, "answer" if leads else "ink")]
    terms = one.fit.terms(xs)
    words = [Beside(value[-1], law_formula(one.fit.line))]
    stays = terms[0]
    bounds = interval(stays.bounds.low, stays.bounds.high)
    name = f"{stays.coefficient} not determined"
    if one.style == "law":
        _parts(curve, axes, terms, places)
        line(axes, "doubt", places, stays.seconds, gid="floor")
        name = f"{stays.coefficient} = {short(stays.value)} s"
    if bounds:
        height = min(stays.value, curve.ends[1])
        words += [Beside(height, name, "ink"), Beside(height, f"95%: {bounds}")]
    return words


def _parts(curve: Curve, axes: Axes, terms: Sequence[Term], places: Array) -> None:
    """Fill what stays, grows and shrinks, one upon the other, each with its name where it is high
    enough."""
    base = np.zeros(len(places))
    for term in terms:
        colour, part = AREAS[term.part]
        top = base + term.seconds
        _area(axes, places, base, top, colour)
        at = int(part * len(places))
        if term.seconds[at] / curve.ends[1] * HIGH > LINE:
            told = f"does not depend on the {curve.x}" if term.part == "stays" else term.part
            look: Any = {"ha": "center", "va": "center", "size": SMALL, "weight": "bold"}
            height = (base[at] + top[at]) / 2
            axes.text(places[at], height, told, color=PALETTE[colour], **look)
        base = top


def _area(axes: Axes, places: Array, low: Array, high: Array, colour: str) -> None:
    axes.fill_between(places, low, high, color=PALETTE[colour], alpha=0.15, lw=0, zorder=1)
