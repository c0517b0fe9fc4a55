"""The ratio of times between two levels of the contrast, such as two devices, at each setting."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from study.analysis.figures.style import COLOURS, LABEL_BOX, MARKERS, Drawn, batch_axis
from study.analysis.stats.analysis import Analysis
from study.analysis.stats.contrasts import Ratio
from study.analysis.words import device_words, number, setting_words, short_key, total_words
from study.artifacts.plan import Plan


def draw(plan: Plan, frame: pd.DataFrame, analysis: Analysis) -> Drawn | None:
    """Return ratios of geometric means with intervals; None where nothing was compared."""
    if not analysis.ratios:
        return None
    figure = Figure(figsize=(7, 3.9))
    axes = figure.subplots()
    every = [(ratio.x if ratio.x is not None else float(place), ratio) for place, ratio in enumerate(analysis.ratios)]
    names = [setting_words(ratio.at.levels) or _levels(ratio) for _, ratio in every]
    named = any(ratio.at.levels for ratio in analysis.ratios)  # else the contrast is all that varies
    x_key = plan.study.curve.x if plan.study.curve else None
    lines = list(dict.fromkeys(_line(ratio, x_key) for ratio in analysis.ratios))
    for index, line in enumerate(lines):
        mine = [(x, ratio) for x, ratio in every if _line(ratio, x_key) == line]
        values = np.array([ratio.ratio.value for _, ratio in mine])
        low = np.array([ratio.ratio.low or ratio.ratio.value for _, ratio in mine])
        high = np.array([ratio.ratio.high or ratio.ratio.value for _, ratio in mine])
        axes.errorbar(
            [x for x, _ in mine],
            values,
            [values - low, high - values],
            fmt=("-" if mine[0][1].x is not None else "") + MARKERS[index % len(MARKERS)],
            capsize=4,
            color=COLOURS[index % len(COLOURS)],
            label=", ".join(filter(None, line)),
        )
        if len(lines) > 2 and named:
            continue  # the numbers would lie on each other; the table has them
        for (x, _), value, top in zip(mine, values, high, strict=True):
            axes.annotate(
                f"{number(value)}x",
                (x, top),
                (0, 5),
                textcoords="offset points",
                ha="center",
                fontsize=9,
                bbox=LABEL_BOX,
            )
    axes.axhline(1, color="0.4", linewidth=1, linestyle=":")
    if all(ratio.x is not None for ratio in analysis.ratios):
        batch_axis(axes, sorted({x for x, _ in every}), short_key(x_key))
    else:
        axes.set_xticks([x for x, _ in every], names)
        axes.set_xlim(-0.5, len(every) - 0.5)
    axes.set(ylabel="ratio of times", ylim=(0, max(ratio.ratio.high or ratio.ratio.value for _, ratio in every) * 1.18))
    if named:
        axes.legend(loc="best")
    text = ", ".join(f"{name}: {number(ratio.ratio.value)}" for name, (_, ratio) in zip(names, every, strict=True))
    return Drawn(
        figure,
        "Speedup",
        f"Ratio of the {total_words(analysis.y)}, paired within blocks, with 95% t intervals. The "
        "dotted line is no difference.",
        f"Ratio of times at each level. {text}.",
    )


def _levels(ratio: Ratio) -> str:
    """Return the two levels that a ratio compares."""
    return f"{device_words(ratio.slower)} over {device_words(ratio.faster)}"


def _line(ratio: Ratio, x_key: str | None) -> tuple[str, str]:
    """Return the levels that a ratio compares, and the other factors that are the same along its line."""
    others = {key: level for key, level in ratio.at.levels.items() if key != x_key} if x_key else {}
    return _levels(ratio), setting_words(others)
