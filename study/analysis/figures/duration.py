"""Where the time of a job goes, and the answer's ratio by its length.

The phases of a curve's times have a small panel each, with a bar for each size, on one scale: they
say why a curve falls or turns. The ratio is measured up to the study's own length, and then a
forecast.
"""

from functools import partial
from math import ceil

import pandas as pd
from matplotlib.figure import Figure

from study.analysis.analysis import Analysis
from study.analysis.answers.context import capital
from study.analysis.answers.contrast import RatiosByLength
from study.analysis.answers.phases import MOSTLY, summed, with_parts
from study.analysis.figures.style import PALETTE, SMALL, WIDE, Chart, Sheet, plain, ticks
from study.analysis.words import listed, setting_words, short
from study.artifacts.plan import Plan

LEAST_SIZES, PANELS = 4, 5
CHANGES = 1.25
"""A phase falls or rises where its first and its last seconds differ by more than this factor."""
DIGITS = 20.0
"""Seconds below which all bars have one decimal."""
GAP, HEAD, HIGH, FOOT = 26.0, 28.0, 92.0, 24.0
"""Pixels between panels, above them, of their height, and below."""
KEY = (
    ("law", "first epochs of the same runs, 95% band"),
    ("doubt", "their later epochs, carried on"),
    ("run", "this study"),
    ("out", "forecast"),
)


def phases_chart(plan: Plan, analysis: Analysis) -> Chart | None:
    """Return the panels; None for other studies than those of one curve whose phases are known."""
    if plan.study.curve is None or len(analysis.groups) != 1:
        return None
    (group,) = analysis.groups
    phases = {level.label: level.phases for level in group.levels if level.phases}
    if len(phases) < LEAST_SIZES:
        return None
    best = summed(phases.get(group.best or "", {}))
    mostly = best.get("computing", 0.0) > MOSTLY * sum(best.values())
    split = with_parts if mostly else summed
    rows = pd.DataFrame({name: split(one) for name, one in phases.items()}).T.fillna(0.0)
    most = rows.max().drop("rest", errors="ignore").nlargest(PANELS - 1).index
    panels = rows[most].assign(**{"all else": rows.drop(columns=most).sum(axis=1)})
    change = panels[most].iloc[-1] / panels[most].iloc[0]
    told = []
    for word, ways in (("falling", 1 / change > CHANGES), ("rising", change > CHANGES)):
        if ways.any():
            told.append(f"{word}: {listed(list(most[ways]))}")
    return Chart(
        title=capital("; ".join(told)) or "No phase changes much",
        subtitle="Seconds of each phase, all on one scale: they add up to the mean",
        draw=partial(_draw_phases, panels),
    )


def _draw_phases(panels: pd.DataFrame, width: int) -> Figure:
    columns = PANELS if width == WIDE else 2
    most = panels.max().max()
    high = HEAD + HIGH + FOOT
    wide = (width + GAP) / columns
    sheet = Sheet(width, high * ceil(len(panels.columns) / columns))
    for place, name in enumerate(map(str, panels)):
        row, column = divmod(place, columns)
        left = wide * column
        top = high * row + HEAD
        axes = sheet.axes(left, top, left + wide - GAP, top + HIGH)
        plain(axes)
        axes.set(ylim=(0, 1.2 * most), yticks=[])
        axes.tick_params(labelsize=10)
        colour = PALETTE.get(f"p-{name.replace(' ', '-')}", PALETTE["p-rest"])
        bars = axes.bar(panels.index, panels[name], color=colour)
        form = "{:.1f}" if most < DIGITS else short
        axes.bar_label(bars, fmt=form, color=PALETTE["ink"], size=SMALL)
        sheet.text(left, top - 8, name, size=SMALL, bold=True)
    return sheet.figure


def length_chart(length: RatiosByLength | None) -> Chart | None:
    """Return the ratios by epochs; None without any."""
    if length is None:
        return None
    ends = listed([short(ratio.value) for ratio in length.points[-1].ratios])
    return Chart(
        title=f"In a job without end it is {ends} times as fast",
        subtitle="Times as fast, on a logarithmic axis, by epochs of the job",
        draw=partial(_draw_length, length),
        key=KEY,
    )


def _draw_length(length: RatiosByLength, width: int) -> Figure:
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
        look = {"color": PALETTE["answer" if ends[place] == max(ends) else "other"]}
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
