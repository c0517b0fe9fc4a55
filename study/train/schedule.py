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
MOMENTUM = 0.9
MOMENTA = (0.95, 0.85, 0.95)
"""Of the cycle: its start, its peak, its end."""
FINAL_DIVISOR = 1e5
MOMENTS = {"adamw": 2, "adam": 2, "sgd": 1}
"""Values that the optimizer keeps for each trained parameter."""
STEPS, STEP_FACTOR = 3, 0.1
"""Of the schedule `step`: equal parts of a stage, and what the learning rate is multiplied by after each."""

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
class Cycle:
    """A learning rate that rises and falls, and a momentum that does the contrary."""

    warm_fraction: float
    start_divisor: float

    def rate(self, peak: float, progress: float) -> float:
        """The learning rate at ``progress``, 0 to 1, where ``peak`` is the highest."""
        return one_cycle(progress, self.warm_fraction, (peak / self.start_divisor, peak, peak / FINAL_DIVISOR))

    def momentum(self, progress: float) -> float | None:
        """The optimizer's momentum (Adam's first beta) at ``progress``."""
        return one_cycle(progress, self.warm_fraction, MOMENTA)


@dataclass(frozen=True)
class Decay:
    """A learning rate that stays or falls; the momentum is the optimizer's own."""

    kind: Literal["constant", "step", "cosine"]

    def rate(self, peak: float, progress: float) -> float:
        """The learning rate at ``progress``, 0 to 1, where ``peak`` is the first."""
        if self.kind == "cosine":
            return _cosine(peak, 0.0, progress)
        return peak * STEP_FACTOR ** int(STEPS * progress + 1e-9) if self.kind == "step" else peak

    def momentum(self, progress: float) -> float | None:
        """None: the optimizer keeps its own."""
        return None


@dataclass(frozen=True)
class Stage:
    """A run of epochs with one course of the learning rate."""

    name: Literal["frozen", "unfrozen"]
    epochs: int
    peak_rates: tuple[float, ...]
    """Highest learning rate of each layer group, the head's last."""
    course: Cycle | Decay

    def rates(self, progress: float) -> tuple[float, ...]:
        """The learning rate of each group at ``progress``, 0 to 1, of the stage."""
        return tuple(self.course.rate(peak, progress) for peak in self.peak_rates)

    def momentum(self, progress: float) -> float | None:
        """The optimizer's momentum (Adam's first beta) at ``progress``; None where it keeps its own."""
        return self.course.momentum(progress)


def one_cycle(progress: float, turn: float, values: tuple[float, float, float]) -> float:
    """Cosine from the first value to the second at ``turn``, then to the third."""
    start, middle, end = values
    if progress < turn:
        return _cosine(start, middle, progress / turn)
    return _cosine(middle, end, (progress - turn) / (1 - turn))


def _cosine(start: float, end: float, part: float) -> float:
    return start + (1 + math.cos(math.pi * (1 - part))) * (end - start) / 2


def stages(settings: Settings, groups: int) -> list[Stage]:
    """The stages of a schedule for a model of so many layer groups; of one group where it is trained whole."""
    training = settings.training
    if training.schedule != "one_cycle":
        rates, decay = (training.learning_rate,) * groups, Decay(training.schedule)
        both = [
            Stage("frozen", training.freeze_epochs, rates, decay),
            Stage("unfrozen", training.epochs, rates, decay),
        ]
    elif groups == 1:  # no head of its own, nothing to freeze: fastai's `fit_one_cycle`
        both = [Stage("unfrozen", training.epochs, (training.learning_rate,), Cycle(0.25, 25.0))]
    else:
        both = _fine_tune(training.learning_rate, training.freeze_epochs, training.epochs, groups)
    return [stage for stage in both if stage.epochs]


def _fine_tune(rate: float, freeze_epochs: int, epochs: int, groups: int) -> list[Stage]:
    """fastai's two stages: the head alone, then all with lower rates for the body."""
    low, high = rate / 2 / 100, rate / 2
    step = (high / low) ** (1 / (groups - 1))
    unfrozen = tuple(low * step**group for group in range(groups))
    frozen = (rate / 10,) * (groups - 1) + (rate,)
    return [
        Stage("frozen", freeze_epochs, frozen, Cycle(0.99, 25.0)),
        Stage("unfrozen", epochs, unfrozen, Cycle(0.3, 5.0)),
    ]


def stage_names(settings: Settings) -> list[str]:
    """The stage of each epoch of the whole schedule."""
    return ["frozen"] * settings.training.freeze_epochs + ["unfrozen"] * settings.training.epochs


def validates(settings: Settings, epoch: int) -> bool:
    """Whether the validation images are looked at after ``epoch``, from 1, of the whole schedule."""
    return settings.training.validation == "epoch" or epoch == len(stage_names(settings))


@dataclass(frozen=True)
class Reached:
    """What an epoch reached, and how long the validation of it took: none without one."""

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
            loss_sum=sum_of_losses(outcome.losses),
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


def sum_of_losses(losses: Losses) -> float | None:
    """Sum of the batches' means, as many a tutorial prints it; None where that is no finite number."""
    return finite(sum(torch.stack([loss for loss, _ in losses]).tolist())) if losses else None


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
            moments = MOMENTS[settings.training.optimizer]
            counted[stage] = flops_of_step(model, inputs, labels, nn.functional.cross_entropy, moments)
        except (RuntimeError, NotImplementedError):  # the forward pass reads values: torch cannot count it
            return {}
    return counted


def finite(value: float) -> float | None:
    """The value, or None where JSON has no name for it."""
    return value if math.isfinite(value) else None
