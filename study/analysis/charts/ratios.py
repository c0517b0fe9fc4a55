"""Against the publication: every ratio with its interval on one axis, the claimed one as a line."""

from dataclasses import dataclass

from study.analysis.charts.marks import diamond, dot, interval
from study.analysis.charts.svg import Chart, Scale, drawn, element, grid, logarithmic, width_of, words
from study.analysis.words import number

ROW, HEAD, FOOT = 30, 40, 24


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
    label_width = max(width_of(row.label) for row in rows) + 14

    def draw(width: int) -> tuple[float, list[str]]:
        left = min((0.34 if width < 500 else 0.4) * width, label_width)
        scale = logarithmic(values, left, width - 62.0)
        bottom = HEAD + ROW * len(rows)
        parts = grid(scale, HEAD - 8, bottom, "x")
        if claimed:
            x = scale(claimed)
            parts.append(element("line", x1=x, x2=x, y1=HEAD - 8, y2=bottom, class_="mark claim", data_kind="claim"))
            anchor = "end" if x > width - 110 else "middle"
            parts.append(words(f"claimed: {number(claimed)}", x, HEAD - 14, "small", anchor))
        for place, row in enumerate(rows):
            parts += _row(row, scale, HEAD + ROW * place + ROW / 2, left, width)
        return bottom + FOOT, parts

    wide, narrow = drawn(draw, title)
    series = {"measured": "measured here, 95% interval"}
    series |= {"published": "published"} if any(row.published for row in rows) else {}
    series |= {"claim": "the published claim"} if claimed else {}
    return Chart(title, wide, narrow, caption, series)


def _row(row: Measured, scale: Scale, y: float, left: float, width: int) -> list[str]:
    parts = [words(row.label, left - 10, y + 4, "", "end", left - 12)]
    told = number(row.value)
    if row.low is not None and row.high is not None:
        told += f", 95%: {number(row.low)} to {number(row.high)}"
    parts += interval(scale, row.low, row.high, y, "plain", "measured")
    parts.append(dot(scale(row.value), y, 5, "plain", told, data_kind="measured"))
    if row.published:
        parts.append(diamond(scale(row.published), y, f"published: {number(row.published)}"))
    return [*parts, words(f"{number(row.value)}x", width, y + 4, "strong", "end")]
