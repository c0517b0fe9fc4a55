"""The order of execution: each run's time over the mean of its setting. A slope or a step comes from the machine."""

from dataclasses import dataclass

from study.analysis.charts.svg import Chart, Scale, cross, dot, drawn, element, linear, to_row, words

HEIGHT, TOP, BOTTOM = 190, 12, 28


@dataclass(frozen=True)
class Executed:
    """One run in the order of execution."""

    name: str
    """Study and run, as the page's links name it."""
    over_mean: float
    """Its time over the mean of its setting."""
    session: int
    aside: bool


def order_chart(runs: list[Executed], title: str, caption: str) -> Chart | None:
    """Return the runs from the first to the last; None with fewer than three. A line marks each new start."""
    if len(runs) < 3:
        return None
    far = max(0.05, *(abs(run.over_mean - 1) for run in runs))

    def draw(width: int) -> tuple[float, list[str]]:
        across = Scale(0.0, float(len(runs)), 46.0, width - 8.0)
        up = Scale(1 - 1.1 * far, 1 + 1.1 * far, HEIGHT - BOTTOM, TOP)
        parts = []
        for value in linear([far], 0, HEIGHT / 2).ticks():
            for side in {1 + value, 1 - value}:
                y = up(side)
                parts.append(element("line", x1=46, x2=width - 8, y1=y, y2=y, class_="grid"))
                parts.append(words(f"{100 * (side - 1):+.3g}%" if value else "mean", 40, y + 4, "small soft", "end"))
        for place, run in enumerate(runs):
            x, y = across(place + 0.5), up(run.over_mean)
            if place and run.session != runs[place - 1].session:
                edge = across(float(place))
                parts.append(element("line", x1=edge, x2=edge, y1=TOP, y2=HEIGHT - BOTTOM, class_="start"))
            parts.append(to_row(run.name, cross(x, y, 3) if run.aside else dot(x, y, 3, "plain")))
        parts.append(words("runs as they were executed", width - 8, HEIGHT - 8, "small soft", "end"))
        return HEIGHT, parts

    wide, narrow = drawn(draw, title)
    series = {"run": "one run"} | ({"aside": "excluded, in no number"} if any(run.aside for run in runs) else {})
    caption += " A dashed line is a new start." if len({run.session for run in runs}) > 1 else ""
    return Chart(title, wide, narrow, caption, series)
