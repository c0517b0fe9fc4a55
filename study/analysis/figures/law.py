"""The law that describes the times best, with the band of single runs, and its residuals."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.analysis import Analysis
from study.analysis.answers.curve import CurveFit
from study.analysis.figures.style import COLOURS, Drawn, batch_axis
from study.analysis.stats.fits import predict
from study.analysis.stats.laws import by_name
from study.analysis.words import TOTALS, law_formula, number, place_words, short_key
from study.artifacts.plan import Plan


def draw(plan: Plan, frame: pd.DataFrame, analysis: Analysis) -> Drawn | None:
    """Return a row for each group, with the law and its residuals; None where no law could be compared."""
    curve = plan.study.curve
    fits = [(group.setting, group.curve) for group in analysis.groups if group.curve and group.curve.best]
    if curve is None or not fits:
        return None
    name = short_key(curve.x)
    figure = Figure(figsize=(9.5, 3.5 * len(fits)))
    rows: Any = figure.subplots(len(fits), 2, squeeze=False)
    for (left, right), (group, fit) in zip(rows, fits, strict=True):
        _law(left, fit)
        left.set(title=f"{place_words(group)}: {law_formula(str(fit.best))}", ylabel=TOTALS[curve.y], ylim=(0, None))
        _residuals(right, fit)
        right.set(title=f"{place_words(group)}: residuals", ylabel="mean above the law (%)")
        for axes in (left, right):
            batch_axis(axes, fit.points.sizes, name)
    return Drawn(
        figure,
        "The law that describes the times best",
        "Points are the means at each level with the blocks taken out. The band holds 95% of single runs if the law is "
        "right. Right: each mean over the law; bars are 95% of its own noise, so a bar that misses zero is a deviation "
        "that the law does not describe.",
        "; ".join(f"{group.label}: {law_formula(str(fit.best))}, residuals {_range(fit)}" for group, fit in fits) + ".",
    )


def _law(axes: Axes, fit: CurveFit) -> None:
    law = by_name(str(fit.best))
    grid = np.geomspace(min(fit.points.sizes), max(fit.points.sizes), 200)
    if fit.band:
        axes.fill_between(
            fit.band.x, fit.band.low, fit.band.high, color=COLOURS[2], alpha=0.35, label="95% of single runs"
        )
    axes.plot(grid, predict(law, fit.models[law.name], grid), color=COLOURS[1], label="law")
    axes.plot(fit.points.sizes, fit.points.means, "o", color=COLOURS[0], label="mean")
    axes.legend(loc="lower left", frameon=True)


def _residuals(axes: Axes, fit: CurveFit) -> None:
    residuals = _percent(fit)
    errors = np.array(fit.points.errors or [0.0] * len(residuals))
    axes.axhline(0, color="0.4", linewidth=1, linestyle=":")
    axes.errorbar(fit.points.sizes, residuals, 196 * errors, fmt="o", color=COLOURS[0], capsize=4, linewidth=1.2)


def _percent(fit: CurveFit) -> "np.ndarray[Any, np.dtype[np.float64]]":
    law = by_name(str(fit.best))
    predicted = predict(law, fit.models[law.name], np.array(fit.points.sizes))
    percent: np.ndarray[Any, np.dtype[np.float64]] = 100 * (np.array(fit.points.means) / predicted - 1)
    return percent


def _range(fit: CurveFit) -> str:
    residuals = _percent(fit)
    return f"{number(float(residuals.min()))}% to {number(float(residuals.max()))}%"
