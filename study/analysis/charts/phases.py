"""Why it takes that long: the parts of a time as stacked bars, all on one scale, and the sign of each kind of mark."""

from dataclasses import dataclass

from study.analysis.charts import phases
from study.analysis.charts.rows import Place, column, placed
from study.analysis.charts.svg import LINE, Chart, Scale, drawn, element, grid, linear, lines_of, paragraph, words
from study.analysis.words import number

ROW, HEAD, FOOT, BAR = 26, 12, 26, 16
PIECES = {
    "model_seconds": "building the model",
    "data_wait_seconds": "waiting for data",
    "transfer_seconds": "host to device",
    "graph_warm_up_seconds": "warm-up before capture",
    "device_transform_seconds": "transforms on the device",
    "forward_seconds": "forward",
    "backward_seconds": "backward",
    "optimizer_seconds": "optimizer",
    "other_seconds": "other",
    "valid_seconds": "validation",
}
"""Parts of a time from left to right, by their columns of the table of timings: see ``stats.parts``."""
LIFE = {
    "between_seconds": "between two runs",
    "start_seconds": "start and imports",
    "inputs_seconds": "data and weights checked",
    "device_start_seconds": "start of the device",
    "instruments_seconds": "reference workloads",
    "build_seconds": "loader and model built",
    "cold_seconds": "cold steps, beyond warm ones",
    "warm_seconds": "warm training",
    "valid_seconds": "validation",
    "end_seconds": "reading, writing, end",
}
"""Parts of the whole time of a run from left to right, from the end of the run before."""
LEAST_PIXELS = 0.4


@dataclass(frozen=True)
class Bar:
    """One level with the mean seconds of each part of its time."""

    label: str
    pieces: dict[str, float]


@dataclass(frozen=True)
class Bars:
    """The levels of a group."""

    title: str
    bars: tuple[Bar, ...]


def phases_chart(groups: list[Bars], title: str, caption: str, pieces: dict[str, str] = PIECES) -> Chart | None:
    """Return the stacked bars of all groups; None without one. ``pieces`` has the words of each part, in order."""
    shown = [group for group in groups if group.bars]
    if not shown:
        return None
    totals = [sum(bar.pieces.values()) for group in shown for bar in group.bars]

    def draw(width: int) -> tuple[float, list[str]]:
        names = column([bar.label for group in shown for bar in group.bars], width, "strong")
        scale = linear(totals, names.left, width - 66.0)
        top, parts = 0.0, []
        for group in shown:
            heading = lines_of(group.title, width, "title") if group.title else []
            parts += [paragraph(heading, 0, top + 17, "title")] if heading else []
            top += HEAD + (LINE * len(heading) + 3 if heading else 0)
            places, bottom = placed([bar.label for bar in group.bars], names, top, ROW)
            parts += grid(scale, top - 4, bottom, " s")
            for place, bar in zip(places, group.bars, strict=True):
                parts += _bar(bar, scale, place, pieces)
            top = bottom + FOOT
        return top, parts

    wide, narrow = drawn(draw, title)
    series = {key.removesuffix("_seconds"): told for key, told in pieces.items()}
    seen = {name: told for name, told in series.items() if f'piece {name}"' in wide + narrow}
    return Chart(title, wide, narrow, caption, seen)


def _bar(bar: Bar, scale: Scale, place: Place, pieces: dict[str, str]) -> list[str]:
    parts, y = [place.name], place.middle
    begin = 0.0
    for key in pieces:
        seconds = bar.pieces.get(key, 0.0)
        x, end = scale(begin), scale(begin + seconds)
        begin += seconds
        if end - x < LEAST_PIXELS:
            continue
        box = {"x": x, "y": y - BAR / 2, "width": end - x, "height": BAR}
        parts.append(element("rect", **box, class_=f"mark piece {key.removesuffix('_seconds')}"))
    parts.append(words(f"{number(begin)} s", scale(begin) + 6, y + 4, "small"))
    return parts


def _mean(tone: str) -> str:
    line = element("path", d="M0 7h16", class_=f"interval {tone}")
    return line + element("path", d="M8 1v12", class_=f"mean {tone}")


SIGNS = {
    "run": element("circle", cx=8, cy=7, r=4, class_="dot plain"),
    "disturbed": element("circle", cx=8, cy=7, r=4, class_="dot hollow"),
    "measured": element("circle", cx=8, cy=7, r=5, class_="dot plain measured"),
    "aside": element("path", d="M4 3l8 8m0 -8l-8 8", class_="cross"),
    "mean": _mean("plain"),
    "best": _mean("best"),
    "doubt": _mean("doubt"),
    "published": element("path", d="M8 0l6 7l-6 7l-6 -7z", class_="diamond"),
    "claim": element("path", d="M8 0v14", class_="claim"),
}


def legend_sign(name: str) -> str:
    """Return a small drawing of a kind of mark, or a box in the colour of a part of a time."""
    box = element("rect", x=1, y=1, width=14, height=12, class_=f"piece {name}")
    known = SIGNS.get(name) or (box if f"{name}_seconds" in phases.PIECES | phases.LIFE else "")
    return element("svg", known, viewBox="0 0 16 14", aria_hidden="true")
