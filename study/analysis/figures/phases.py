"""The parts of each mean of a study, for the page and as a file."""

import pandas as pd
from matplotlib.patches import Patch

from study.analysis.analysis import Analysis
from study.analysis.figures import bars
from study.analysis.figures.bars import Bar, BarsChart
from study.analysis.figures.style import PALETTE, WIDE, Drawn
from study.analysis.rows import Levelled, graph_warm_up_sentence, level_rows, parts_of
from study.analysis.words import number, place_words
from study.artifacts.plan import Plan

CAPTION = (
    "The mean of each setting, by the shares of its runs' time, all on one scale. Rest is the time outside the steps: "
    "ends of epochs, start and end of the loader's workers."
)
KEY_COLUMNS, KEY_ROW = 4, 18.0
"""The key of the file: its columns, and the pixels of a row."""
ON_A_GPU = " On a GPU the parts of a step are in the device's own timeline: it waits where it has no data."


def phases_of(groups: Levelled, analysis: Analysis) -> BarsChart:
    """Return the parts of each mean over the runs that count: a bar is as long as the mean in the tables."""
    found = {
        place_words(group.setting): tuple(Bar(*one) for one in parts_of(group, rows, analysis.y).items())
        for group, rows in groups
    }
    told = CAPTION + ON_A_GPU * any((rows["device"] == "cuda").any() for _, rows in groups)
    told += graph_warm_up_sentence(pd.concat([rows for _, rows in groups])) if groups else ""
    return BarsChart({group: own for group, own in found.items() if own}, "Where the time goes", caption=told)


def draw(plan: Plan, frame: pd.DataFrame, analysis: Analysis) -> Drawn | None:
    """Return the same chart as a file; None where the study's time is no sum of parts."""
    chart = phases_of(level_rows(plan.study, frame, analysis.groups), analysis)
    if not chart.bars:
        return None
    told = []
    for group, own in chart.groups.items():
        for bar in own:
            largest = max(bar.parts, key=bar.parts.__getitem__)
            told.append(f"{group}, {bar.label}: {number(sum(bar.parts.values()))} s, most {chart.parts[largest][0]}")
    key = [Patch(facecolor=PALETTE[colour], label=words) for words, colour in map(chart.parts.__getitem__, chart.shown)]
    figure = bars.draw(chart, WIDE, below=KEY_ROW * (1 + -(-len(key) // KEY_COLUMNS)))
    figure.set_frameon(True)
    figure.legend(handles=key, loc="lower left", ncols=KEY_COLUMNS, frameon=False)
    return Drawn(figure, chart.title, chart.caption, f"Bars of parts. {'; '.join(told)}.")
