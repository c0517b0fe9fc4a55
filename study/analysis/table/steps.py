"""Which steps count, and what they tell."""

from collections.abc import Sequence
from statistics import median

import numpy as np

from study.artifacts.samples import Measurement, Step


def percentile(seconds: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile in seconds: always a measured value, never interpolated."""
    return float(np.percentile(seconds, percent, method="inverted_cdf"))


def steady_steps(measured: Measurement) -> list[Step]:
    """Return the steps with a full batch in which everything is trained, without warm-up steps."""
    full = max((step.images for step in measured.steps), default=0)
    stages = [epoch.stage for epoch in measured.epochs]
    return [
        step
        for step in measured.steps
        if not step.warm_up and stages[step.epoch - 1] == "unfrozen" and step.images == full
    ]


def first_batches(measured: Measurement) -> list[float]:
    """Return the wait for the first batch of each epoch, in seconds."""
    first: dict[int, float] = {}
    for step in measured.steps:
        first.setdefault(step.epoch, step.data_wait_seconds)
    return list(first.values())


def warm_up_extra(measured: Measurement) -> float:
    """Return the seconds that warm-up steps took beyond the median steady step of their stage, without data waits.

    They include the first use of each kernel, cuDNN's search, the allocator and compilation.
    """
    extra = 0.0
    stages = [epoch.stage for epoch in measured.epochs]
    for stage in dict.fromkeys(stages):
        group = [step for step in measured.steps if stages[step.epoch - 1] == stage]
        steady = [step.seconds - step.data_wait_seconds for step in group if not step.warm_up]
        usual = median(steady) if steady else 0.0
        extra += sum(max(0.0, step.seconds - step.data_wait_seconds - usual) for step in group if step.warm_up)
    return extra
