"""The schedule that both loops follow: fastai's ``fine_tune``, written out as numbers.

Source: fastai 2.8, ``fastai/callback/schedule.py`` (``fine_tune``, ``fit_one_cycle``) and
``fastai/optimizer.py`` (``set_hyper``, ``Adam``). A test compares these numbers with what fastai does.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from study.config import Settings
from study.data.images import ImageSet
from study.measure.arithmetic import Flops, flops_of_step
from study.measure.clock import EpochTimes
from study.measure.samples import Epoch, Step, mark_warm_up
from study.models import State, input_channels
from study.weights import Weights

WEIGHT_DECAY, EPSILON, SQUARE_MOMENTUM = 0.01, 1e-5, 0.99
MOMENTA = (0.95, 0.85, 0.95)
FINAL_DIVISOR = 1e5

Losses = list[tuple[torch.Tensor, int]]
"""Mean loss of each step, still on the device, and the step's images."""
Progress = Callable[[int, int, str], None]
"""Called with steps done, steps of the whole schedule, and where that is in words."""


@dataclass(frozen=True)
class TrainingJob:
    """All that a loop needs; values only, no files."""

    settings: Settings
    images: ImageSet
    weights: Weights
    state: State | None
    device: torch.device
    seed: int
    progress: Progress


@dataclass(frozen=True)
class Stage:
    """A run of epochs with one learning-rate cycle."""

    name: Literal["frozen", "unfrozen"]
    epochs: int
    peak_rates: tuple[float, ...]
    """Highest learning rate of each layer group, the head's last."""
    warm_fraction: float
    start_divisor: float

    def rates(self, progress: float) -> tuple[float, ...]:
        """The learning rate of each group at ``progress``, 0 to 1, of the stage."""
        return tuple(
            one_cycle(progress, self.warm_fraction, (peak / self.start_divisor, peak, peak / FINAL_DIVISOR))
            for peak in self.peak_rates
        )

    def momentum(self, progress: float) -> float:
        """Adam's first beta at ``progress``."""
        return one_cycle(progress, self.warm_fraction, MOMENTA)


def one_cycle(progress: float, turn: float, values: tuple[float, float, float]) -> float:
    """Cosine from the first value to the second at ``turn``, then to the third."""
    start, middle, end = values
    if progress < turn:
        return _cosine(start, middle, progress / turn)
    return _cosine(middle, end, (progress - turn) / (1 - turn))


def _cosine(start: float, end: float, part: float) -> float:
    return start + (1 + math.cos(math.pi * (1 - part))) * (end - start) / 2


def stages(settings: Settings, groups: int) -> list[Stage]:
    """The stages of a schedule for a model of so many layer groups."""
    training = settings.training
    rate = training.learning_rate
    if groups == 1:  # no head of its own, nothing to freeze: fastai's `fit_one_cycle`
        return [Stage("unfrozen", training.epochs, (rate,), 0.25, 25.0)]
    low, high = rate / 2 / 100, rate / 2
    step = (high / low) ** (1 / (groups - 1))
    unfrozen = tuple(low * step**group for group in range(groups))
    frozen = (rate / 10,) * (groups - 1) + (rate,)
    both = [
        Stage("frozen", training.freeze_epochs, frozen, 0.99, 25.0),
        Stage("unfrozen", training.epochs, unfrozen, 0.3, 5.0),
    ]
    return [stage for stage in both if stage.epochs]


def stage_names(settings: Settings) -> list[str]:
    """The stage of each epoch of the whole schedule."""
    return ["frozen"] * settings.training.freeze_epochs + ["unfrozen"] * settings.training.epochs


@dataclass(frozen=True)
class Reached:
    """What an epoch reached, and how long the validation of it took."""

    valid_seconds: float
    losses: Losses
    valid_loss: float | None
    accuracy: float | None


def epochs_of(times: list[EpochTimes], reached: list[Reached], names: list[str]) -> tuple[list[Epoch], list[Step]]:
    """The epochs of a schedule whose stages are ``names``, and all their steps with the warm-up marked."""
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
            train_loss=mean_loss(outcome.losses),
            valid_loss=outcome.valid_loss,
            accuracy=outcome.accuracy,
        )
        for name, time, outcome in zip(names, times, reached, strict=True)
    ]
    return epochs, mark_warm_up([step for time in times for step in time.steps], names)


def mean_loss(losses: Losses) -> float | None:
    """Mean over images of (batch mean, batch size); None where that is no finite number. Read in one go."""
    if not losses:
        return None
    values = torch.stack([loss for loss, _ in losses]).tolist()
    counts = [count for _, count in losses]
    return finite(sum(value * count for value, count in zip(values, counts, strict=True)) / sum(counts))


def count_flops(model: nn.Module, job: TrainingJob, freeze: Callable[[bool], None]) -> dict[str, Flops]:
    """Arithmetic of a full step in each stage; empty for a model whose step cannot be counted.

    ``freeze`` freezes the model as a stage has it. Call this after training, and after the peaks were read.
    """
    settings = job.settings
    size, batch = settings.dataset.image_size, min(settings.training.batch_size, len(job.images.train))
    fed = input_channels(settings.model.name, settings.dataset.channels)
    channels = next((m.in_channels for m in model.modules() if isinstance(m, nn.Conv2d)), fed)
    inputs = torch.empty(batch, channels, size, size, device="meta")
    labels = torch.zeros(batch, dtype=torch.int64, device="meta")
    counted: dict[str, Flops] = {}
    for stage in dict.fromkeys(stage_names(settings)):
        freeze(stage == "frozen")
        try:
            counted[stage] = flops_of_step(model, inputs, labels, nn.functional.cross_entropy)
        except (RuntimeError, NotImplementedError):  # the forward pass reads values: torch cannot count it
            return {}
    return counted


def finite(value: float) -> float | None:
    """The value, or None where JSON has no name for it."""
    return value if math.isfinite(value) else None
