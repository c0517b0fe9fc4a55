"""The marks that charts share."""

from study.analysis.charts.svg import Scale, element


def dot(x: float, y: float, radius: float, look: str, told: str = "", **data: object) -> str:
    """Return a dot; ``told`` is shown on hover, ``data`` are further attributes."""
    return element("circle", *_title(told), cx=x, cy=float(y), r=radius, class_=f"mark dot {look}", **data)


def cross(x: float, y: float, half: int, **data: object) -> str:
    """Return a cross, for what is in no number."""
    path = f"M{x - half:.1f} {y - half:.1f}l{2 * half} {2 * half}m0 -{2 * half}l-{2 * half} {2 * half}"
    return element("path", d=path, class_="mark cross", **data)


def diamond(x: float, y: float, told: str) -> str:
    """Return a diamond, for what was published."""
    path = f"M{x:.1f} {y - 7:.1f}l6 7l-6 7l-6 -7z"
    return element("path", *_title(told), d=path, class_="mark diamond", data_kind="published")


def interval(scale: Scale, low: float | None, high: float | None, y: float, look: str, kind: str) -> list[str]:
    """Return a line from ``low`` to ``high``; none where a bound is missing."""
    if low is None or high is None:
        return []
    ends = {"x1": scale(low), "x2": scale(high), "y1": y, "y2": y}
    return [element("line", **ends, class_=f"mark interval {look}", data_kind=kind)]


def _title(told: str) -> list[str]:
    return [element("title", told)] if told else []
