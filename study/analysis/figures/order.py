"""The order of execution: each run's time over the mean of its setting. A slope or a step comes from the machine."""

from dataclasses import dataclass

from matplotlib.figure import Figure

from study.analysis.figures.marks import Dot, Marks, sign
from study.analysis.figures.style import PALETTE, canvas, letters, plot
from study.analysis.figures.svg import Chart, in_both_widths

HEIGHT, LEFT, TOP, BOTTOM = 190, 46, 12, 28
TITLE = "Order of execution"
CAPTION = "Each run's time over the mean of its setting. A slope or a step comes from the machine."


@dataclass(frozen=True)
class Executed:
    """One run in the order of execution; its value is its time over the mean of its setting."""

    dot: Dot
    session: int


def order_chart(runs: list[Executed]) -> Chart | None:
    """Return the runs from the first to the last; None with fewer than three. A dashed line marks each new start."""
    if len(runs) < 3:
        return None
    wide, narrow = in_both_widths(lambda width: draw(runs, width), TITLE)
    key = [(sign("run"), "one run")]
    key += [(sign("aside"), "excluded, in no number")] if any(run.dot.aside for run in runs) else []
    caption = CAPTION + " A dashed line is a new start." * (len({run.session for run in runs}) > 1)
    return Chart(TITLE, "", caption, wide, narrow, tuple(key))


def draw(runs: list[Executed], width: int) -> Figure:
    """Return the runs from the left to the right, the mean in the middle of the height."""
    far = 1.1 * max([0.05, *(abs(run.dot.value - 1) for run in runs if not run.dot.aside)])
    figure = canvas(width, HEIGHT)
    axes = plot(figure, LEFT, width - 8, TOP, HEIGHT - BOTTOM)
    axes.set(xlim=(0, len(runs)), xticks=[])

    def height(value: float) -> float:
        share = min(max((1 + far - value) / (2 * far), 0.0), 1.0)  # what was excluded may lie beyond
        return TOP + (HEIGHT - BOTTOM - TOP) * share

    for value in (1 - far / 1.1, 1.0, 1 + far / 1.1):
        axes.axhline(height(value), color=PALETTE["grid"], linewidth=1, zorder=1)
        told = f"{100 * (value - 1):+.0f}%" if value != 1 else "mean"
        letters(figure, told, LEFT - 6, height(value) + 4, "small end", "muted")
    marks = Marks(axes, "")
    for place, run in enumerate(runs):
        if place and run.session != runs[place - 1].session:
            axes.axvline(place, color=PALETTE["muted"], linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        marks.dot(place + 0.5, height(run.dot.value), "aside" if run.dot.aside else "other", run.dot.run)
    marks.draw()
    letters(figure, "runs as they were executed", width - 8, HEIGHT - 8, "small end", "muted")
    return figure
