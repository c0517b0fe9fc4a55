"""The schedule that both loops follow: fastai's ``fine_tune``, written out as numbers.

Source: fastai 2.8, ``fastai/callback/schedule.py`` (``fine_tune``, ``fit_one_cycle``) and
``fastai/optimizer.py`` (``set_hyper``, ``Adam``). A test compares these numbers with those of
fastai.
"""

import math
from dataclasses import dataclass
from typing import Literal

from study.config.settings import Settings

WEIGHT_DECAY, EPSILON, SQUARE_MOMENTUM = 0.01, 1e-5, 0.99
MOMENTUM = 0.9
MOMENTA = (0.95, 0.85, 0.95)
"""Momentum at the start, the peak and the end of the one-cycle schedule."""
FINAL_DIVISOR = 1e5
STEPS, STEP_FACTOR = 3, 0.1
"""Number of equal parts of a stage in the schedule `step`, and the factor on the learning rate
after each part."""


@dataclass(frozen=True)
class Stage:
    """A sequence of epochs with one course of the learning rate.

    In one cycle the rate rises and falls, and the momentum falls and rises. In any other schedule
    the rate stays or falls, and the momentum stays the optimizer's own.
    """

    name: Literal["frozen", "unfrozen"]
    epochs: int
    peak_rates: tuple[float, ...]
    """Highest learning rate of each layer group; the head's is last."""
    schedule: Literal["one_cycle", "constant", "step", "cosine"] = "one_cycle"
    warm_fraction: float = 0.25
    start_divisor: float = 25.0

    def rates(self, progress: float) -> tuple[float, ...]:
        """Return the learning rate of each group at ``progress`` (0 to 1) of the stage."""
        return tuple(self._rate(peak, progress) for peak in self.peak_rates)

    def momentum(self, progress: float) -> float | None:
        """Return the optimizer's momentum (Adam's first beta) at ``progress``; None if the
        optimizer keeps its own."""
        return (
            one_cycle(progress, self.warm_fraction, MOMENTA)
            if self.schedule == "one_cycle"
            else None
        )

    def _rate(self, peak: float, progress: float) -> float:
        if self.schedule == "one_cycle":
            return one_cycle(
                progress,
                self.warm_fraction,
                (peak / self.start_divisor, peak, peak / FINAL_DIVISOR),
            )
        if self.schedule == "cosine":
            return _cosine(peak, 0.0, progress)
        return (
            peak * STEP_FACTOR ** int(STEPS * progress + 1e-9) if self.schedule == "step" else peak
        )


def one_cycle(progress: float, turn: float, values: tuple[float, float, float]) -> float:
    """Return the value at ``progress``: a cosine from the first value to the second at ``turn``,
    then to the third."""
    start, middle, end = values
    if progress < turn:
        return _cosine(start, middle, progress / turn)
    return _cosine(middle, end, (progress - turn) / (1 - turn))


def _cosine(start: float, end: float, part: float) -> float:
    return start + (1 + math.cos(math.pi * (1 - part))) * (end - start) / 2


def stages(settings: Settings, groups: int) -> list[Stage]:
    """Return the stages of a schedule for a model of ``groups`` layer groups: 1 for a model that is
    trained whole."""
    training, rate = settings.training, settings.training.scaled_learning_rate
    if training.schedule != "one_cycle":
        rates, kind = (rate,) * groups, training.schedule
        both = [
            Stage("frozen", training.freeze_epochs, rates, kind),
            Stage("unfrozen", training.epochs, rates, kind),
        ]
    elif groups == 1:  # no separate head, nothing to freeze: fastai's `fit_one_cycle`
        both = [Stage("unfrozen", training.epochs, (rate,))]
    else:  # fastai's `fine_tune`: the head alone, then all layers with lower rates for the body
        low = rate / 2 / 100
        high = rate / 2
        step = (high / low) ** (1 / (groups - 1))
        unfrozen = tuple(low * step**group for group in range(groups))
        frozen = (rate / 10,) * (groups - 1) + (rate,)
        both = [
            Stage("frozen", training.freeze_epochs, frozen, warm_fraction=0.99),
            Stage("unfrozen", training.epochs, unfrozen, warm_fraction=0.3, start_divisor=5.0),
        ]
    return [stage for stage in both if stage.epochs]
