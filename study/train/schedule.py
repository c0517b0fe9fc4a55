"""The schedule that both loops follow: fastai's ``fine_tune``, written out as numbers.

Source: fastai 2.8, ``fastai/callback/schedule.py`` (``fine_tune``, ``fit_one_cycle``) and ``fastai/optimizer.py``
(``set_hyper``, ``Adam``). A test compares these numbers with those of fastai.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import nn

from study.config import Settings
from study.data.images import ImageSet
from study.measure.arithmetic import Flops, flops_of_step
from study.measure.clock import EpochTimes
from study.measure.samples import Epoch, Step, mark_warm_up
from study.models import State, input_channels
from study.train.replicas import Replicas
from study.weights import Weights

WEIGHT_DECAY, EPSILON, SQUARE_MOMENTUM = 0.01, 1e-5, 0.99
MOMENTUM = 0.9
MOMENTA = (0.95, 0.85, 0.95)
"""Momentum at the start, the peak and the end of the one-cycle schedule."""
FINAL_DIVISOR = 1e5
MOMENTS = {"adamw": 2, "adam": 2, "sgd": 1}
"""Number of values that the optimizer keeps for each trained parameter."""
STEPS, STEP_FACTOR = 3, 0.1
"""Number of equal parts of a stage in the schedule `step`, and the factor on the learning rate after each part."""

Losses = list[tuple[torch.Tensor, int]]
"""Mean loss of each step, a scalar tensor still on the device, and the step's number of images.

With several processes each holds its part of the mean: that of its own images, weighted so that the mean over processes
is that of all images.
"""
Progress = Callable[[int, int, str], None]
"""Function called with the steps done, the steps of the whole schedule, and the current place in words."""


@dataclass(frozen=True)
class TrainingJob:
    """All inputs of a loop, as values; no files."""

    settings: Settings
    images: ImageSet
    weights: Weights
    state: State | None
    device: torch.device
    seed: int
    progress: Progress
    replicas: Replicas = field(default_factory=Replicas)


@dataclass(frozen=True)
class Cycle:
    """A learning rate that rises and falls, and a momentum that falls and rises."""

    warm_fraction: float
    start_divisor: float

    def rate(self, peak: float, progress: float) -> float:
        """Return the learning rate at ``progress`` (0 to 1); ``peak`` is the highest rate."""
        return one_cycle(progress, self.warm_fraction, (peak / self.start_divisor, peak, peak / FINAL_DIVISOR))

    def momentum(self, progress: float) -> float | None:
        """Return the optimizer's momentum (Adam's first beta) at ``progress`` (0 to 1)."""
        return one_cycle(progress, self.warm_fraction, MOMENTA)


@dataclass(frozen=True)
class Decay:
    """A learning rate that stays or falls. The momentum stays the optimizer's own."""

    kind: Literal["constant", "step", "cosine"]

    def rate(self, peak: float, progress: float) -> float:
        """Return the learning rate at ``progress`` (0 to 1); ``peak`` is the first rate."""
        if self.kind == "cosine":
            return _cosine(peak, 0.0, progress)
        return peak * STEP_FACTOR ** int(STEPS * progress + 1e-9) if self.kind == "step" else peak

    def momentum(self, progress: float) -> float | None:
        """Return None: the optimizer keeps its own momentum."""
        return None


@dataclass(frozen=True)
class Stage:
    """A sequence of epochs with one course of the learning rate."""

    name: Literal["frozen", "unfrozen"]
    epochs: int
    peak_rates: tuple[float, ...]
    """Highest learning rate of each layer group; the head's is last."""
    course: Cycle | Decay

    def rates(self, progress: float) -> tuple[float, ...]:
        """Return the learning rate of each group at ``progress`` (0 to 1) of the stage."""
        return tuple(self.course.rate(peak, progress) for peak in self.peak_rates)

    def momentum(self, progress: float) -> float | None:
        """Return the optimizer's momentum (Adam's first beta) at ``progress``; None if the optimizer keeps its own."""
        return self.course.momentum(progress)


def one_cycle(progress: float, turn: float, values: tuple[float, float, float]) -> float:
    """Return the value at ``progress``: a cosine from the first value to the second at ``turn``, then to the third."""
    start, middle, end = values
    if progress < turn:
        return _cosine(start, middle, progress / turn)
    return _cosine(middle, end, (progress - turn) / (1 - turn))


def _cosine(start: float, end: float, part: float) -> float:
    return start + (1 + math.cos(math.pi * (1 - part))) * (end - start) / 2


def stages(settings: Settings, groups: int) -> list[Stage]:
    """Return the stages of a schedule for a model of ``groups`` layer groups: 1 for a model that is trained whole."""
    training = settings.training
    if training.schedule != "one_cycle":
        rates, decay = (training.learning_rate,) * groups, Decay(training.schedule)
        both = [
            Stage("frozen", training.freeze_epochs, rates, decay),
            Stage("unfrozen", training.epochs, rates, decay),
        ]
    elif groups == 1:  # no separate head, nothing to freeze: fastai's `fit_one_cycle`
        both = [Stage("unfrozen", training.epochs, (training.learning_rate,), Cycle(0.25, 25.0))]
    else:
        both = _fine_tune(training.learning_rate, training.freeze_epochs, training.epochs, groups)
    return [stage for stage in both if stage.epochs]


def _fine_tune(rate: float, freeze_epochs: int, epochs: int, groups: int) -> list[Stage]:
    """Return fastai's two stages: the head alone, then all layers with lower rates for the body."""
    low, high = rate / 2 / 100, rate / 2
    step = (high / low) ** (1 / (groups - 1))
    unfrozen = tuple(low * step**group for group in range(groups))
    frozen = (rate / 10,) * (groups - 1) + (rate,)
    return [
        Stage("frozen", freeze_epochs, frozen, Cycle(0.99, 25.0)),
        Stage("unfrozen", epochs, unfrozen, Cycle(0.3, 5.0)),
    ]


def stage_names(settings: Settings) -> list[str]:
    """Return the stage of each epoch of the whole schedule."""
    return ["frozen"] * settings.training.freeze_epochs + ["unfrozen"] * settings.training.epochs


def validates(settings: Settings, epoch: int) -> bool:
    """Return whether the model is validated after ``epoch`` of the whole schedule, counted from 1."""
    return settings.training.validation == "epoch" or epoch == len(stage_names(settings))


@dataclass(frozen=True)
class Reached:
    """Results of an epoch, and the seconds of its validation: 0 without one."""

    valid_seconds: float
    losses: Losses
    valid_loss: float | None
    accuracy: float | None


def epochs_of(
    times: list[EpochTimes], reached: list[Reached], names: list[str], replicas: Replicas = Replicas()
) -> tuple[list[Epoch], list[Step]]:
    """Return the epochs of a schedule whose stages are ``names``, and all their steps with the warm-up marked.

    With several processes each has to call this, as their losses are added up.
    """
    epochs = [
        Epoch(
            stage="frozen" if name == "frozen" else "unfrozen",
            train_seconds=time.train_seconds,
            valid_seconds=outcome.valid_seconds,
            loader_start_seconds=time.loader_start_seconds,
            loader_end_seconds=time.loader_end_seconds,
            synchronise_seconds=time.synchronise_seconds,
            images=sum(step.images for step in time.steps),
            steps=len(time.steps),
            train_loss=mean_loss(outcome.losses, replicas),
            loss_sum=sum_of_losses(outcome.losses, replicas),
            valid_loss=outcome.valid_loss,
            accuracy=outcome.accuracy,
        )
        for name, time, outcome in zip(names, times, reached, strict=True)
    ]
    return epochs, mark_warm_up([step for time in times for step in time.steps], names)


def mean_loss(losses: Losses, replicas: Replicas = Replicas()) -> float | None:
    """Return the mean loss over the images of all processes, read from the device in one go.

    The result is None if it is not finite, or if there is no image.
    """
    values, counts = _read(losses), [count for _, count in losses]
    total, images = replicas.added([sum(v * count for v, count in zip(values, counts, strict=True)), sum(counts)])
    return finite(total / images) if images else None


def sum_of_losses(losses: Losses, replicas: Replicas = Replicas()) -> float | None:
    """Return the sum of the batches' mean losses, which many tutorials print; None if it is not finite."""
    total, steps = replicas.added([sum(_read(losses)), len(losses)])
    return finite(total / replicas.count) if steps else None


def _read(losses: Losses) -> list[float]:
    return [float(value) for value in torch.stack([loss for loss, _ in losses]).tolist()] if losses else []


def count_flops(model: nn.Module, job: TrainingJob, freeze: Callable[[bool], None]) -> dict[str, Flops]:
    """Return the arithmetic of a full step in each stage; empty for a model whose step cannot be counted.

    ``freeze(True)`` has to freeze the model as in the stage "frozen". Call this after training, and after the peaks are
    read.
    """
    settings = job.settings
    size, batch = settings.dataset.image_size, min(settings.training.replica_batch_size, len(job.images.train))
    fed = input_channels(settings.model.name, settings.dataset.channels)
    channels = next((m.in_channels for m in model.modules() if isinstance(m, nn.Conv2d)), fed)
    inputs = torch.empty(batch, channels, size, size, device="meta")
    labels = torch.zeros(batch, dtype=torch.int64, device="meta")
    counted: dict[str, Flops] = {}
    for stage in dict.fromkeys(stage_names(settings)):
        freeze(stage == "frozen")
        try:
            moments = MOMENTS[settings.training.optimizer]
            counted[stage] = flops_of_step(model, inputs, labels, nn.functional.cross_entropy, moments)
        except (RuntimeError, NotImplementedError):  # the forward pass reads values: torch cannot count it
            return {}
    return counted


def finite(value: float) -> float | None:
    """Return the value, or None if JSON has no name for it."""
    return value if math.isfinite(value) else None
