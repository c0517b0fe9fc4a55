"""The schedule that both loops follow: fastai's ``fine_tune``, written out as numbers.

Source: fastai 2.8, ``fastai/callback/schedule.py`` (``fine_tune``, ``fit_one_cycle``) and
``fastai/optimizer.py`` (``set_hyper``, ``Adam``). A test compares these numbers with what fastai does.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch

from study.config import Settings
from study.data.images import ImageSet
from study.models import State
from study.weights import Weights

WEIGHT_DECAY, EPSILON, SQUARE_MOMENTUM = 0.01, 1e-5, 0.99
MOMENTA = (0.95, 0.85, 0.95)
FINAL_DIVISOR = 1e5
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

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
    low, high = rate / 2 / 100, rate / 2
    step = (high / low) ** (1 / (groups - 1)) if groups > 1 else 1.0
    unfrozen = tuple(low * step**group for group in range(groups)) if groups > 1 else (high,)
    frozen = (rate / 10,) * (groups - 1) + (rate,)
    both = [
        Stage("frozen", training.freeze_epochs, frozen, 0.99, 25.0),
        Stage("unfrozen", training.epochs, unfrozen, 0.3, 5.0),
    ]
    return [stage for stage in both if stage.epochs]


def stage_names(settings: Settings) -> list[str]:
    """The stage of each epoch of the whole schedule."""
    return ["frozen"] * settings.training.freeze_epochs + ["unfrozen"] * settings.training.epochs


def mean_loss(losses: list[tuple[torch.Tensor, int]]) -> float | None:
    """Mean over images of (batch mean, batch size); None where that is no finite number."""
    total = sum(float(loss) * count for loss, count in losses)
    images = sum(count for _, count in losses)
    return finite(total / images) if images else None


def finite(value: float) -> float | None:
    """The value, or None where JSON has no name for it."""
    return value if math.isfinite(value) else None
