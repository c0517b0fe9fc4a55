"""The step model: step time = max(launch floor, t0 + t1 b), and the time of an epoch beyond its steps.

Divided by b it is the law ``hinge`` of seconds an image, max(A/b, T1 + B/b), whose A is the floor, B t0 and T1 t1; so
it is fitted as the laws of T(b) are, on logarithms and with coefficients that are not negative. Where a bend is not
shown (2 AICc, as everywhere), the line t0 + t1 b is the model and there is no floor.
"""

from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from study.analysis.answers.curve import means_of
from study.analysis.stats.fits import Bounds, Fitted, fit_laws, predict
from study.analysis.stats.laws import CLOSE, Law, by_name
from study.analysis.stats.usable import model_of
from study.analysis.words import interval, listed, number, on_device
from study.artifacts.setting import Setting
from study.base.strict import Strict

COLUMNS = (
    "busy_step_seconds",
    "step_images",
    "unfrozen_epoch_seconds",
    "unfrozen_epoch_images",
    "unfrozen_epoch_wait_seconds",
)
Bound = Literal["launch", "compute", "loader"]
NAMES = {
    "inverse": {"step_seconds": "A", "image_seconds": "T0"},
    "hinge": {"launch_seconds": "A", "step_seconds": "B", "image_seconds": "T1", "bend": "bend"},
}
"""The coefficients of the step model, by those of the law of seconds an image."""


class StepLevel(Strict):
    """One batch size: geometric means over its runs, in epochs in which all layers train, validation apart."""

    batch_size: float
    step_seconds: float = Field(description="The median steady step without its wait for data.")
    model_step_seconds: float
    epoch_seconds: float
    model_epoch_seconds: float = Field(description="Steps times the model's step, and the remainder's smaller one.")
    wait_seconds: float = Field(description="Waiting for data in an epoch, arithmetic mean.")
    other_seconds: float | None
    """The rest: warm-up, slow steps, the loader's end. Null where the model's steps and the waiting are longer than the
    epoch, so that there is no rest."""
    bound: Bound
    """`loader`: the epoch waits for data longer than it computes. Else `launch`, where the cost of a step that does not
    depend on its size is the larger part, or `compute`."""


class StepModel(Strict):
    """Launch floor, t0 and t1 in seconds, with the batch sizes that they explain."""

    launch_seconds: float | None = Field(description="The floor; null where no bend is shown.")
    step_seconds: float = Field(description="t0: a step's own cost.")
    image_seconds: float = Field(description="t1: each image's cost.")
    bend: float | None = Field(description="The batch size at which the floor ends.")
    intervals: dict[str, Bounds] = Field(description="95% profile intervals; empty without a degree of freedom.")
    levels: list[StepLevel]


def step_model(frame: pd.DataFrame) -> StepModel | None:
    """Return the model of a group's usable runs; None without step times at three batch sizes."""
    if frame[list(COLUMNS)].isna().any(axis=None):
        return None
    sizes = frame["step_images"].astype(float)
    if sizes.nunique() < 3 or (frame["busy_step_seconds"] <= 0).any():
        return None
    runs = frame.assign(image_seconds=frame["busy_step_seconds"] / sizes)
    model = model_of(runs, "image_seconds", sizes.tolist())
    fits = fit_laws(means_of(model, model.levels), [by_name("inverse"), by_name("hinge")])
    law = _law(fits)
    names = NAMES[law.name]
    coefficients = {name: fits[law.name].coefficients[key] for name, key in names.items()}
    levels = [_level(size, rows, law, fits[law.name], coefficients) for size, rows in frame.groupby(sizes, sort=True)]
    return StepModel(
        launch_seconds=coefficients.get("launch_seconds"),
        step_seconds=coefficients["step_seconds"],
        image_seconds=coefficients["image_seconds"],
        bend=coefficients.get("bend"),
        intervals={name: found for name, key in names.items() if (found := fits[law.name].intervals.get(key))},
        levels=levels,
    )


def _law(fits: dict[str, Fitted]) -> Law:
    """Return the hinge where it beats the line, else the line."""
    line, hinge = fits["inverse"].aicc, fits["hinge"].aicc
    bent = hinge is not None and line is not None and hinge < line - CLOSE
    return by_name("hinge" if bent else "inverse")


def _level(size: object, rows: pd.DataFrame, law: Law, fit: Fitted, coefficients: dict[str, float]) -> StepLevel:
    batch = float(str(size))
    images = float(rows["unfrozen_epoch_images"].mean())
    full, rest = int(images // batch), images % batch

    def step(count: float) -> float:
        return float(predict(law, fit, np.array([count]))[0] * count)

    modelled = full * step(batch) + (step(rest) if rest >= 1 else 0.0)
    epoch, wait = _geometric(rows["unfrozen_epoch_seconds"]), float(rows["unfrozen_epoch_wait_seconds"].mean())
    rest_seconds = epoch - modelled - wait
    # The cost that does not depend on the images: the floor where it holds, t0 beyond.
    own = step(batch) - coefficients["image_seconds"] * batch
    launch = batch < coefficients.get("bend", 0.0) or own > step(batch) / 2
    bound: Bound = "loader" if wait > modelled else "launch" if launch else "compute"
    return StepLevel(
        batch_size=batch,
        step_seconds=_geometric(rows["busy_step_seconds"]),
        model_step_seconds=step(batch),
        epoch_seconds=epoch,
        model_epoch_seconds=modelled,
        wait_seconds=wait,
        other_seconds=rest_seconds if rest_seconds >= 0 else None,
        bound=bound,
    )


def _geometric(values: "pd.Series[float]") -> float:
    return float(np.exp(np.log(values.astype(float)).mean()))


COEFFICIENTS = {
    "launch_seconds": "launch floor",
    "step_seconds": "a step's own cost",
    "image_seconds": "an image",
    "bend": "bend",
}


def step_sentence(model: StepModel, group: Setting) -> str:
    """Return what a step costs in a group, and which batch sizes are bound by what, with the numbers behind."""
    own = f"{_milliseconds(model.step_seconds)} and {_milliseconds(model.image_seconds)} for each image"
    cost = f"{own}; a floor below which it never falls does not show"
    if model.launch_seconds is not None and model.bend is not None:
        floor = _milliseconds(model.launch_seconds)
        cost = f"{floor} whatever its size up to about {number(model.bend)} images, then {own}"
    parts = []
    for bound in dict.fromkeys(level.bound for level in model.levels):
        levels = [level for level in model.levels if level.bound == bound]
        sizes = listed([f"{level.batch_size:g}" for level in levels])
        parts.append(f"{bound}-bound at batch size {sizes} ({_epoch(levels[-1], named=len(levels) > 1)})")
    return f"{on_device(group)} a step takes {cost}. An epoch of training is {'; '.join(parts)}.{_no_rest(model)}"


def _no_rest(model: StepModel) -> str:
    """Return a sentence on the batch sizes whose model leaves no rest; nothing without one."""
    sizes = [f"{level.batch_size:g}" for level in model.levels if level.other_seconds is None]
    why = "the model's steps and the waiting are longer than the epoch"
    return f" At batch size {listed(sizes)} there is no rest: {why}." if sizes else ""


def _epoch(level: StepLevel, named: bool) -> str:
    """Return the parts of an epoch; ``named`` says at which batch size."""
    return (
        f"{f'at {level.batch_size:g} ' if named else ''}{number(level.model_epoch_seconds)} s of "
        f"{number(level.epoch_seconds)} s are steps, {number(level.wait_seconds)} s waiting for data"
    )


def _milliseconds(seconds: float) -> str:
    return f"{number(1000 * seconds)} ms"


def step_intervals(model: StepModel) -> str:
    """Return the intervals of the coefficients, in milliseconds except for the bend."""
    parts = []
    for name, words in COEFFICIENTS.items():
        if bounds := model.intervals.get(name):
            scale, unit = (1.0, "") if name == "bend" else (1000.0, " ms")
            told = interval(bounds.low, bounds.high, scale)
            parts.append(f"{words} {told}{unit}" if told else f"{words} not determined")
    return ", ".join(parts)
