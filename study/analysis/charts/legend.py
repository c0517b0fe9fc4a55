"""The sign of each kind of mark, for the legend below a chart."""

from study.analysis.charts import phases
from study.analysis.charts.svg import element


def _mean(tone: str) -> str:
    line = element("path", d="M0 7h16", class_=f"interval {tone}")
    return line + element("path", d="M8 1v12", class_=f"mean {tone}")


SIGNS = {
    "run": element("circle", cx=8, cy=7, r=4, class_="dot plain"),
    "disturbed": element("circle", cx=8, cy=7, r=4, class_="dot hollow"),
    "measured": element("circle", cx=8, cy=7, r=5, class_="mark", data_kind="measured"),
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
