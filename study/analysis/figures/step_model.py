"""The step model: its step time beside the measured one, and the time of an epoch beyond its steps."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.analysis.analysis import Analysis
from study.analysis.answers.step_model import StepModel
from study.analysis.figures.style import COLOURS, Drawn, batch_axis
from study.analysis.wording.steps import step_sentence
from study.analysis.words import number, place_words, short_key
from study.artifacts.plan import Plan

PIECES = (
    ("model_epoch_seconds", "steps, by the model", COLOURS[0], ""),
    ("wait_seconds", "waiting for data", COLOURS[1], "//"),
    ("other_seconds", "rest", "0.85", ".."),
)


def draw(plan: Plan, frame: pd.DataFrame, analysis: Analysis) -> Drawn | None:
    """Return a row for each group; None where no step was measured at three batch sizes."""
    models = [(group.setting, group.step) for group in analysis.groups if group.step]
    if not models:
        return None
    figure = Figure(figsize=(9.5, 3.5 * len(models) + 0.4))
    rows: Any = figure.subplots(len(models), 2, squeeze=False)
    for (left, right), (group, model) in zip(rows, models, strict=True):
        _steps(left, model)
        left.set(title=f"{place_words(group)}: a step", ylabel="step time (ms)", ylim=(0, None))
        batch_axis(left, [level.batch_size for level in model.levels], short_key("training.batch_size"))
        _epochs(right, model)
        right.set(title=f"{place_words(group)}: an epoch", ylabel="training time of an epoch (s)")
        right.set_xlabel(short_key("training.batch_size"))
    figure.legend(*rows[0][1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return Drawn(
        figure,
        "What a step costs",
        "Left: the median steady step without its wait for data (points, geometric mean over the runs) and the model, "
        "the larger of a launch floor and t0 + t1 b. Right: an epoch of training in which all layers train, "
        "validation apart: the model's steps, waiting for data, and the rest (warm-up, slow steps, the loader's end); "
        "the line is the measured time.",
        " ".join(step_sentence(model, label) for label, model in models),
    )


def _steps(axes: Axes, model: StepModel) -> None:
    sizes = np.array([level.batch_size for level in model.levels])
    grid = np.geomspace(sizes.min(), sizes.max(), 200)
    line = np.maximum(model.launch_seconds or 0.0, model.step_seconds + model.image_seconds * grid)
    axes.plot(grid, 1000 * line, color=COLOURS[1], label="model")
    axes.plot(sizes, [1000 * level.step_seconds for level in model.levels], "o", color=COLOURS[0], label="measured")
    if model.bend is not None and model.launch_seconds is not None:
        axes.axvline(model.bend, color="0.4", linewidth=1, linestyle=":")
        axes.annotate(
            f"floor up to {number(model.bend)}",
            (model.bend, 1000 * float(line.max())),
            (-4, 0),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=9,
        )
    axes.legend(loc="lower right")


def _epochs(axes: Axes, model: StepModel) -> None:
    places = np.arange(len(model.levels))
    bottom = np.zeros(len(places))
    for name, label, colour, hatch in PIECES:
        heights = np.array([getattr(level, name) or 0.0 for level in model.levels])
        axes.bar(places, heights, 0.7, bottom=bottom, color=colour, hatch=hatch, edgecolor="white", label=label)
        bottom += heights
    for index, level in enumerate(model.levels):
        axes.hlines(
            level.epoch_seconds,
            index - 0.4,
            index + 0.4,
            color="black",
            linewidth=1.5,
            label="measured" if index == 0 else "_",
        )
        axes.annotate(
            level.bound,
            (index, max(level.epoch_seconds, bottom[index])),  # a noisy model's steps may reach above the measured time
            (0, 4),
            textcoords="offset points",
            ha="center",
            fontsize=9,
        )
    axes.set_xticks(places, [f"{level.batch_size:g}" for level in model.levels])
    axes.set_ylim(0, 1.15 * max(bottom.max(), max(level.epoch_seconds for level in model.levels)))
