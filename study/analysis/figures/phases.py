"""The phases of a curve's times: a small panel for each, with a bar for each size, on one scale.

They say why a curve falls or turns.
"""

from functools import partial
from math import ceil

import pandas as pd
from matplotlib.figure import Figure

from study.analysis.analysis import Analysis
from study.analysis.answers.context import capital
from study.analysis.answers.phases import MOSTLY, summed, with_parts
from study.analysis.figures.style import PALETTE, SMALL, WIDE, Chart, Sheet, plain
from study.analysis.words import listed, short
from study.artifacts.plan import Plan

LEAST_SIZES, PANELS = 4, 5
CHANGES = 1.25
"""A phase falls or rises where its first and its last seconds differ by more than this factor."""
DIGITS = 20.0
"""Seconds below which all bars have one decimal."""
GAP, HEAD, HIGH, FOOT = 26.0, 28.0, 92.0, 24.0
"""Pixels between panels, above them, of their height, and below."""


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
    title = capital("; ".join(told)) or "No phase changes much"
    seconds = [f"{name}: {', '.join(map(short, panels[name]))} s" for name in panels]
    return Chart(
        title=title,
        subtitle="Seconds of each phase, all on one scale: they add up to the mean",
        alt=f"{title}. {'. '.join(seconds)}.",
        draw=partial(_draw, panels),
    )


def _draw(panels: pd.DataFrame, width: int) -> Figure:
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
