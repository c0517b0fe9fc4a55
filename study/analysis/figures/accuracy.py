"""Accuracy against the curve's factor: a time alone says nothing about the accuracy that was reached."""

import pandas as pd
from matplotlib.figure import Figure

from study.analysis.analysis import Analysis
from study.analysis.figures.style import COLOURS, MARKERS, Drawn, batch_axis
from study.analysis.words import place_words, short_key
from study.artifacts.plan import Plan
from study.config.study import TOTALS_OF_INFERENCE

RATES = {
    "constant": "is the same for every setting",
    "linear": "is proportional to the images of a step",
    "square_root": "is proportional to the root of the images of a step",
}
"""What the rule of a study makes of the learning rate."""


def draw(plan: Plan, frame: pd.DataFrame, analysis: Analysis) -> Drawn | None:
    """Return the final accuracy of every run, and the mean of each level.

    It is None in a study without a curve, and in one of inference, whose batch size is not that of the training.
    """
    curve = plan.study.curve
    if curve is None or curve.y in TOTALS_OF_INFERENCE or not frame["accuracy"].notna().any():
        return None
    figure = Figure(figsize=(7, 3.6))
    axes = figure.subplots()
    ok = frame[frame["accuracy"].notna()]
    axes.plot(ok[curve.x], 100 * ok["accuracy"], ".", color="0.45", label="one run")
    for index, group in enumerate(analysis.groups):
        levels = [level for level in group.levels if level.accuracy is not None]
        axes.plot(
            [level.x or 0 for level in levels],
            [100 * (level.accuracy or 0) for level in levels],
            f"-{MARKERS[index % 6]}",
            color=COLOURS[index % 6],
            label=f"mean: {place_words(group.setting)}",
        )
    batch_axis(axes, sorted({float(value) for value in ok[curve.x]}), short_key(curve.x))
    axes.set(ylabel="validation accuracy (%)", ylim=(0, 104))
    axes.legend(loc="lower left")
    text = "; ".join(
        f"{group.label} {level.label}: {level.accuracy:.0%}"
        for group in analysis.groups
        for level in group.levels
        if level.accuracy is not None
    )
    return Drawn(
        figure,
        "Accuracy",
        "Share of the validation images classified correctly after the last epoch; the learning rate "
        f"{RATES[plan.study.training.learning_rate_rule]}.",
        f"Validation accuracy. {text}.",
    )
