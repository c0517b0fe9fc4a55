"""Against the publication: every ratio with its interval on one axis, the claimed one as a line."""

from dataclasses import dataclass

from study.analysis.charts.rows import Place, column, placed
from study.analysis.charts.svg import Chart, Scale, diamond, dot, drawn, element, grid, interval, logarithmic, words
from study.analysis.words import number

ROW, HEAD, CLAIM, FOOT = 30, 12, 28, 24


@dataclass(frozen=True)
class Measured:
    """One ratio."""

    label: str
    value: float
    low: float | None
    high: float | None
    published: float | None = None


def ratios_chart(rows: list[Measured], claimed: float | None, title: str, caption: str) -> Chart | None:
    """Return the ratios below each other on a logarithmic axis, ``claimed`` as a line; None without a ratio."""
    if not rows:
        return None
    values = [value for row in rows for value in (row.value, row.low, row.high, row.published) if value]
    values += [1.0, *([claimed] if claimed else [])]
    head = HEAD + (CLAIM if claimed else 0)

    def draw(width: int) -> tuple[float, list[str]]:
        labels = [row.label for row in rows]
        names = column(labels, width)
        places, bottom = placed(labels, names, head, ROW)
        scale = logarithmic(values, names.left, width - 62.0)
        # The line of the ratio 1: on one side of it a time is longer, on the other it is shorter.
        as_long = element("line", x1=scale(1.0), x2=scale(1.0), y1=head - 8, y2=bottom, class_="one")
        parts = [*grid(scale, head - 8, bottom, "x"), as_long]
        if claimed:
            x = scale(claimed)
            parts.append(element("line", x1=x, x2=x, y1=head - 8, y2=bottom, class_="mark claim"))
            anchor = "end" if x > width - 110 else "middle"
            parts.append(words(f"claimed: {number(claimed)}", x, head - 14, "small", anchor))
        for place, row in zip(places, rows, strict=True):
            parts += _row(row, scale, place, width)
        return bottom + FOOT, parts

    wide, narrow = drawn(draw, title)
    series = {"measured": "measured here, 95% interval"}
    series |= {"published": "published"} if any(row.published for row in rows) else {}
    series |= {"claim": "the published claim"} if claimed else {}
    return Chart(title, wide, narrow, caption, series)


def _row(row: Measured, scale: Scale, place: Place, width: int) -> list[str]:
    parts, y = [place.name], place.middle
    parts += interval(scale, row.low, row.high, y, "plain")
    parts.append(dot(scale(row.value), y, 3.5, "plain measured"))
    if row.published:
        parts.append(diamond(scale(row.published), y))
    return [*parts, words(f"{number(row.value)}x", width, y + 4, "strong", "end")]
