"""One look for every chart: the palette of the page, a sheet to draw on, marks, and matplotlib's
figures as SVG of the page.

A sheet is a figure of 72 dots an inch, so that a point is a pixel. On the page its colours are
variables, which the style sets by day, by night and on paper; its letters are text; nothing in it
has an id, so that many charts share a page.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from matplotlib import rc_context, rcdefaults, rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import Locator, LogLocator, MaxNLocator

from study.analysis.stats.estimate import Estimate
from study.analysis.words import isolate_bidi
from study.base.strict import Strict

STYLE = Path(__file__).parents[1] / "report" / "templates" / "report.css"
PALETTE = dict(re.findall(r"--(\S+): (#\w+);", STYLE.read_text().partition("{% endset %}")[0]))
"""The colours by day, by the names that the page's style gives them."""
NAMES = {colour: name for name, colour in PALETTE.items()}
WIDE, NARROW = 736, 343
"""Widths of a chart in pixels, for a desk and for a phone."""
TEXT, SMALL = 13, 12
"""Heights of letters in pixels."""
LOOK: Any = {
    "font.family": "DejaVu Sans",
    "font.size": TEXT,
    "svg.fonttype": "none",
    "svg.hashsalt": "study",
    # No text is a formula: a machine's name may hold any sign, and a broken formula ends the
    # drawing.
    "text.parse_math": False,
    "lines.solid_capstyle": "butt",
    "path.simplify": False,
}


@contextmanager
def our_look() -> Iterator[None]:
    """Draw with matplotlib's defaults and ours, and nothing of a ``matplotlibrc``: the same data
    give the same bytes. The caller's settings come back."""
    with rc_context():
        rcdefaults()
        rcParams.update(LOOK)
        yield


class Sheet:
    """A figure of some pixels, with axes over all of it whose units are pixels from its top
    left."""

    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height
        self.figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        self.page = self.axes(0, 0, width, height)
        self.page.set(xlim=(0, width), ylim=(height, 0))

    def axes(self, left: float, top: float, right: float, bottom: float) -> Axes:
        """Return axes between these pixels, without any line of its own; later ones lie above."""
        width = (right - left) / self.width
        height = (bottom - top) / self.height
        place = (left / self.width, 1 - bottom / self.height, width, height)
        found = self.figure.add_axes(place)
        found.patch.set_visible(False)
        found.set_axis_off()
        return found

    def text(
        self,
        x: float,
        y: float,
        told: str,
        colour: str = "ink",
        size: float = TEXT,
        align: str = "left",
        bold: bool = False,
        over: bool = False,
    ) -> None:
        """Write a text with its baseline at pixel ``y``; ``over`` keeps the grid out of it."""
        look: Any = {"size": size, "ha": align, "weight": "bold" if bold else "normal"}
        if over:
            look["bbox"] = {"fc": PALETTE["bg"], "ec": "none", "pad": 1}
        self.page.text(x, y, printable(told), color=PALETTE[colour], zorder=5, **look)

    def pixel(self, axes: Axes, x: float, y: float) -> tuple[float, float]:
        """Return the pixels of a point of some axes, from the top left."""
        across, up = axes.transData.transform((x, y))
        return across, self.height - up

    def line(self, xs: Sequence[float], ys: Sequence[float], colour: str, **look: Any) -> None:
        """Draw a line through some pixels."""
        self.page.plot(xs, ys, color=PALETTE[colour], **{"lw": 1, "zorder": 2, **look})


@lru_cache(maxsize=4096)
def width_of(text: str, size: float, weight: str = "normal") -> float:
    """Return the width of a text in pixels. DejaVu is wider than most fonts of a
    system: what fits here fits there."""
    letters = FontProperties(family="DejaVu Sans", size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, letters, ismath=False)[0])


def printable(text: str) -> str:
    """Return a text as a picture has it: no font has a shape for a control character."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def ticks(low: float, high: float, most: int, log: bool) -> list[float]:
    """Return round values between two, ``most`` of them at most."""
    locators: list[Locator] = [MaxNLocator(max(2, most), steps=[1, 2, 5, 10])]
    if log and high >= 4 * low:
        locators = [LogLocator(subs=factors) for factors in ((1, 2, 5), (1, 3), (1,))]
    for locator in locators:
        found = [float(one) for one in locator.tick_values(low, high)]
        inside = [one for one in found if low <= one * (1 + 1e-9) and one <= high * (1 + 1e-9)]
        if len(inside) <= most:
            break
    return inside


SIZE = 46
"""Square pixels of a mark."""
MARKS = {
    "answer": ("o", "answer", "bg", 1.0),
    "other": ("o", "other", "bg", 1.0),
    "out": ("o", "bg", "out", 1.4),
    "excluded": ("X", "ink", "bg", 0.5),
    "claim": ("D", "bg", "contra", 1.6),
}
"""Shape, colours of face and edge, and width of the edge of a run of the answer, of another
setting, of one out of the ranking; of a run that is excluded; of where a claim puts a setting. The
later ones lie above."""


class Marks:
    """The marks on some axes, whose values go up (``upright``) or to the right. What lies beyond
    the axis is a triangle at its end."""

    def __init__(self, axes: Axes, upright: bool) -> None:
        self.axes = axes
        self.upright = upright
        self.low, self.high = axes.get_ylim() if upright else axes.get_xlim()

    def interval(self, at: float, estimate: Estimate, sides: Sequence[float], look: str) -> None:
        """Draw a mean as a bar between two ``sides`` of its place, and its interval."""
        colour = PALETTE[look]
        if estimate.bounds:
            ends = self._places([at, at], estimate.bounds)
            dashes = (0, (3, 3)) if look == "out" else "-"
            self.axes.plot(*ends, color=colour, lw=1.6, ls=dashes, zorder=3, gid="mark interval")
            self._beyond([at, at], estimate.bounds, look)
        mean = self._places(sides, [estimate.value] * 2)
        self.axes.plot(*mean, color=colour, lw=3.2, zorder=4, gid="mark mean")

    def dots(
        self,
        kind: str,
        at: Sequence[float],
        values: Sequence[float],
        links: Sequence[str | None] = (),
    ) -> None:
        """Draw marks of a kind, each with its link to a run."""
        if not len(values):
            return
        shape, face, edge, width = MARKS[kind]
        self.axes.scatter(
            *self._places(at, values),
            s=SIZE,
            marker=shape,
            c=PALETTE[face],
            ec=PALETTE[edge],
            lw=width,
            urls=links or None,
            gid=f"mark {kind}",
            zorder=5 + list(MARKS).index(kind),
            clip_on=False,
        )
        self._beyond(at, values, "contra" if kind == "claim" else "ink")

    def _places(self, at: Sequence[float], values: Sequence[float]) -> tuple[Any, Any]:
        """Return both coordinates of values, each at its place on the other axis."""
        inside = np.clip(values, self.low, self.high)
        return (at, inside) if self.upright else (inside, at)

    def _beyond(self, at: Sequence[float], values: Sequence[float], colour: str) -> None:
        above, below = "^v" if self.upright else "><"
        look = {"color": PALETTE[colour], "gid": f"mark beyond {colour}", "zorder": 12}
        for place, value in zip(at, values, strict=True):
            if not self.low <= value <= self.high:
                sign = above if value > self.high else below
                end = self._places([place], [value])
                self.axes.plot(*end, marker=sign, ls="", ms=6, mew=0, clip_on=False, **look)


def plain(axes: Axes) -> None:
    """Show the ticks of axes, and their grid alone."""
    axes.set_axis_on()
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.spines["bottom"].set_color(PALETTE["rule"])
    axes.tick_params(length=0, pad=6, labelsize=SMALL, labelcolor=PALETTE["muted"])
    axes.grid(axis="y", color=PALETTE["grid"])


@dataclass(frozen=True)
class Chart:
    """A chart of the page, of the files and of ``import study``."""

    title: str
    subtitle: str
    draw: Callable[[int], Figure]
    """Returns the figure, so many pixels wide, within :func:`our_look`."""
    key: tuple[tuple[str, str], ...] = ()
    """The kinds of marks, each with its words."""
    width: int = WIDE
    """Pixels on a desk."""

    @property
    def figure(self) -> Figure:
        """The chart as on a desk."""
        with our_look():
            return self.draw(self.width)

    def kept(self, name: str, wide: Figure) -> "Kept":
        """Return the chart as the page has it; ``wide`` is the one for a desk."""
        with our_look():
            narrow = self.draw(NARROW)
        return Kept(
            name=name,
            title=self.title,
            subtitle=self.subtitle,
            key=[(sign(kind), words) for kind, words in self.key],
            wide=inline(wide, self.title, "chart wide"),
            narrow=inline(narrow, self.title, "chart narrow"),
        )


class Kept(Strict):
    """A chart as SVG of the page, for a desk and for a phone, as the step ``analyse`` keeps it."""

    name: str
    title: str
    subtitle: str
    key: list[tuple[str, str]]
    """Each sign as SVG, with its words."""
    wide: str
    narrow: str


@lru_cache(maxsize=64)
def sign(kind: str) -> str:
    """Return a small drawing of a kind of mark as SVG, for the key."""
    with our_look():
        sheet = Sheet(24, 12)
        marks = Marks(sheet.page, upright=False)
        if kind in LINES:
            line(sheet.page, kind, [1, 23], [6, 6])
        elif kind == "mean":
            marks.interval(6, Estimate(value=12, low=1, high=23), [0, 12], "other")
        elif kind == "bare":
            marks.interval(6, Estimate(value=12), [0, 12], "other")
        dot = {"run": "other", "learned": "other", "unlearned": "out"}.get(kind, kind)
        if dot in MARKS:
            marks.dots(dot, [6], [12])
    return inline(sheet.figure, "")


LINES: dict[str, tuple[str, float, Any]] = {
    "law": ("other", 1.8, "-"),
    "best": ("answer", 1.8, "-"),
    "doubt": ("other", 1.8, (0, (5, 3))),
    "published": ("muted", 1.3, (0, (1.2, 2.6))),
    "claims": ("contra", 1.0, (0, (3, 3))),
    "block": ("out", 0.9, "-"),
    "learned": ("other", 1.8, "-"),
    "unlearned": ("out", 1.8, "-"),
    "training": ("muted", 1.2, (0, (3, 2.4))),
    "within": ("answer", 6.0, "-"),
}
"""Colour, width in pixels and dashes of a law, that of the answer, and one that is not determined;
of the published law, a claim, a single run; of a setting that learned and one that did not, the
loss in training, and what is within the margin of the best, which the charts tint."""


def line(axes: Axes, kind: str, xs: Any, ys: Any, **more: Any) -> None:
    """Draw a line of a kind."""
    colour, width, dashes = LINES[kind]
    axes.plot(xs, ys, color=PALETTE[colour], lw=width, ls=dashes, zorder=2, **more)


NOTHING = dict.fromkeys(("Creator", "Date", "Format", "Type"))
"""What matplotlib else writes into each file."""
NAMESPACES = re.compile(r' xmlns\S*="[^"]*"|xlink:(?=href=)')
ATTRIBUTES = (
    "d",
    "x",
    "y",
    "fill",
    "fill-opacity",
    "stroke",
    "stroke-width",
    "opacity",
    "stroke-opacity",
    "stroke-dasharray",
    "font-size",
    "font-weight",
    "text-anchor",
    "transform",
)
NUMBERED = re.compile(r"_\d+$")
"""The names that matplotlib gives its groups."""
NUMBER = re.compile(r"-?\d+\.\d+")


def inline(figure: Figure, label: str, kind: str = "") -> str:
    """Return a figure as SVG of the page, in classes ``kind``; hidden from a screen reader where it
    has no ``label``."""
    buffer = StringIO()
    figure.patch.set_visible(False)  # the page is its ground
    with our_look():
        figure.savefig(buffer, format="svg", metadata=NOTHING)
    root = ElementTree.fromstring(NAMESPACES.sub("", buffer.getvalue()))  # noqa: S314 - its own
    # What an image holds is hidden from a screen reader, so that no link may be in one.
    role = "img" if root.find(".//a") is None else "group"
    told = {"class": kind, "role": role, "aria-label": isolate_bidi(label)}
    outer = {"viewBox": root.attrib["viewBox"]} | (told if label else {"aria-hidden": "true"})
    # Without the style and the clips, which stand beside the group of the figure.
    root[:] = root.findall("g")
    # A shape that is used has an id, which no two charts of a page may share.
    shapes = {path.get("id"): path.attrib["d"] for path in root.iter("path")}
    for use in root.iter("use"):
        use.tag, use.attrib["d"] = "path", shapes[use.attrib["href"][1:]]
        use.attrib["transform"] = f"translate({use.get('x')} {use.get('y')})"
    for parent in root.findall(".//defs/.."):
        parent.remove(parent.findall("defs")[0])
    for element in root.iter():
        element.attrib = _attributes(element)
        element.text = isolate_bidi((element.text or "").strip())
        element.tail = ""
    root.attrib = outer
    return ElementTree.tostring(root, encoding="unicode")


def _attributes(element: ElementTree.Element) -> dict[str, str]:
    """Return the attributes of an element as the page has them: those of its style, too, which the
    page's policy would refuse."""
    found = dict(element.attrib)
    for part in found.pop("style", "").split("; "):
        name, _, value = part.partition(": ")
        found[name] = value
    if element.tag == "a":
        link = found["href"]
        return {"href": link, "tabindex": "-1", "aria-label": link.rpartition("/")[2]}
    if element.tag == "g":
        name = found.get("id", "")
        return {"class": name} if name and not NUMBERED.search(name) else {}
    return {name: _value(found[name]) for name in ATTRIBUTES if name in found}


def _value(value: str) -> str:
    """Return a colour as a variable of the page, and numbers in four digits."""
    if value in NAMES:
        return f"var(--{NAMES[value]})"
    return NUMBER.sub(lambda one: f"{float(one.group()):.4g}", value)
