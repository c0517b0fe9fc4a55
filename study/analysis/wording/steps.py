"""Steps in words: what a step costs, what bounds an epoch, and where the warm-up of captured steps lies."""

import pandas as pd

from study.analysis.answers.step_model import StepLevel, StepModel
from study.analysis.words import interval, listed, number, on_device
from study.artifacts.setting import Setting

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


def graph_warm_up_sentence(rows: pd.DataFrame) -> str:
    """Return where the warm-up of captured steps lies in the parts of ``rows``, which are of the table of timings.

    It is empty where it lies in a part of its own, or where no captured step is told by a factor of the study.
    """
    if "training.cuda_graph" not in rows:
        return ""
    captured = rows[rows["training.cuda_graph"] == "cuda graph"]  # as ``config.study.shown`` names the level
    if not captured["graph_warm_up_seconds"].eq(0).any():
        return ""
    return (
        " These records have no part for the warm-up before a step is captured as a CUDA graph: it is in the "
        "transforms on the device."
    )
