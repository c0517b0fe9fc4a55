"""The ratio of the answer by the length of the job: measured up to the study's own, and then a
forecast."""

from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from study.analysis.answers.length import Length
from study.analysis.figures.style import PALETTE, SMALL, Chart, Sheet, plain, ticks
from study.analysis.words import listed, setting_words, short

KEY = (
    ("law", "first epochs of the same runs, 95% band"),
    ("doubt", "their later epochs, carried on"),
    ("run", "this study"),
    ("out", "forecast"),
)


def length_chart(length: Length | None) -> Chart | None:
    """Return the ratios by epochs; None without any."""
    if length is None:
        return None
    told = [f"{name}: {' and '.join(ratios)}" for name, ratios in length.rows()]
    ends = listed([short(ratio.value) for ratio in length.points[-1].ratios])
    title = f"In a job without end it is {ends} times as fast"
    return Chart(
        title=title,
        subtitle="Times as fast, on a logarithmic axis, by epochs of the job",
        alt=f"{title}. {'; '.join(told)}.",
        draw=partial(_draw, length),
        key=KEY,
    )


def _draw(length: Length, width: int) -> Figure:
    sheet = Sheet(width, 260)
    axes = sheet.axes(34, 12, width - 20, 238)
    plain(axes)
    axes.semilogy()
    jobs = [str(point.epochs or "no end") for point in length.points]
    own = str(length.own)
    ends = [ratio.value for ratio in length.points[-1].ratios]
    for place, at in enumerate(length.at):
        ratios = [point.ratios[place].model_dump() for point in length.points]
        # A ratio without an interval has its value as both ends.
        rows = pd.DataFrame(ratios, jobs, dtype=float).ffill(axis=1)
        value = rows["value"]
        look: Any = {"color": PALETTE["answer" if ends[place] == max(ends) else "other"]}
        axes.fill_between(jobs, rows["low"], rows["high"], alpha=0.13, lw=0, **look)
        axes.plot(value.loc[own:], "--o", mfc=PALETTE["bg"], **look)
        axes.plot(value.loc[:own], "-o", lw=1.8, markevery=[-1], gid="measured", **look)
        look |= {"ha": "right", "va": "bottom", "size": SMALL, "weight": "bold"}
        for job, name in ((own, ""), (jobs[-1], setting_words(at))):
            axes.annotate(f"{short(value[job])} {name}", (job, value[job]), **look)
    axes.set_yticks(ticks(*axes.get_ylim(), 6, log=True))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    return sheet.figure
