"""What every loop is given, what it tells, and the check that it trained."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch
from torch import nn

from study.artifacts.prepared import Weights
from study.artifacts.samples import Epoch, Measurement, Replica, Step, Target
from study.base.errors import StudyError
from study.config.settings import Settings
from study.data.decode import ImageSet
from study.training.instruments.clock import EpochTimes, mark_warm_up
from study.training.loops.replicas import Replicas
from study.training.models import build as models

Losses = list[tuple[torch.Tensor, int]]
"""Mean loss of each step, a scalar tensor still on the device, and the step's number of images.

With several processes each holds its part of the mean: that of its own images, weighted so that the
mean over processes is that of all images.
"""
Progress = Callable[[int, int, str], None]
"""Function called with the steps done, the steps of the whole schedule, and the current place in
words."""


@dataclass(frozen=True)
class TrainingJob:
    """All inputs of a loop, as values; no files."""

    settings: Settings
    images: ImageSet
    weights: Weights
    state: models.State | None
    device: torch.device
    seed: int
    progress: Progress
    replicas: Replicas = field(default_factory=Replicas)


def model_of(job: TrainingJob) -> nn.Module:
    """Return the job's network with its head, on the CPU; the body starts from the state or the
    settings' seed."""
    name = job.settings.model.name
    model = models.build(
        name,
        classes=len(job.images.classes),
        channels=job.settings.dataset.channels,
        seed=job.settings.seed,
        head_seed=job.seed,
        state=job.state,
    )
    if job.weights.parameters is not None:
        models.check_shapes(name, model, job.weights.parameters)
    return model


def stage_names(settings: Settings) -> list[str]:
    """Return the stage of each epoch of the whole schedule."""
    return ["frozen"] * settings.training.freeze_epochs + ["unfrozen"] * settings.training.epochs


def validates(settings: Settings, epoch: int) -> bool:
    """Return whether the model is validated after ``epoch`` of the whole schedule, counted from
    1."""
    return settings.training.validation == "epoch" or epoch == len(stage_names(settings))


def reaches_target(settings: Settings, accuracy: float | None) -> bool:
    """Return whether an epoch's validation ``accuracy`` (0 to 1) ends the training."""
    target = settings.training.target_accuracy
    return target is not None and accuracy is not None and accuracy >= target


@dataclass(frozen=True)
class EpochResult:
    """Results of an epoch, and the seconds of its validation: 0 without one."""

    valid_seconds: float
    losses: Losses
    valid_loss: float | None
    accuracy: float | None


def target_of(settings: Settings, reached: list[EpochResult], seconds: float) -> Target | None:
    """Return whether the last epoch reached the target accuracy; None for a training without one.

    ``seconds`` is the time from the start of the schedule to the end of the last epoch's
    validation.
    """
    if settings.training.target_accuracy is None:
        return None
    if not reaches_target(settings, reached[-1].accuracy):
        return Target(reached=False)
    return Target(reached=True, epochs=len(reached), seconds=seconds)


def epochs_of(
    times: list[EpochTimes],
    reached: list[EpochResult],
    names: list[str],
    replicas: Replicas = Replicas(),
) -> tuple[list[Epoch], list[Step]]:
    """Return the epochs of a schedule whose stages are ``names``, and all their steps with the
    warm-up marked.

    With several processes each has to call this, as their losses are added up.
    """
    told = [losses_of(outcome.losses, replicas) for outcome in reached]
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
            train_loss=mean,
            loss_sum=total,
            valid_loss=outcome.valid_loss,
            accuracy=outcome.accuracy,
        )
        for name, time, outcome, (mean, total) in zip(names, times, reached, told, strict=True)
    ]
    return epochs, mark_warm_up(list(chain.from_iterable(time.steps for time in times)), names)


def losses_of(losses: Losses, replicas: Replicas) -> tuple[float | None, float | None]:
    """Return the mean loss over the images of all processes, and the sum of the batches' mean
    losses.

    Many tutorials print the sum. Each is None if it is not finite, or if there is no image.
    """
    # Read from the device in one go.
    values = torch.stack([loss for loss, _ in losses]).tolist() if losses else []
    counts = [count for _, count in losses]
    weighted = sum(value * count for value, count in zip(values, counts, strict=True))
    total, images, sums = replicas.added([weighted, sum(counts), sum(values)])
    return (finite(total / images), finite(sums / replicas.count)) if images else (None, None)


def finite(value: float) -> float | None:
    """Return the value, or None if JSON has no name for it."""
    return value if math.isfinite(value) else None


class InitialWeights:
    """A model's parameters before the first step, kept on the host: the device's memory stays the
    training's."""

    def __init__(self, model: nn.Module) -> None:
        self.values = {
            name: parameter.detach().cpu().clone() for name, parameter in model.named_parameters()
        }

    def check(self, model: nn.Module, groups: Iterable[Sequence[str]]) -> None:
        """Raise :class:`StudyError` if no parameter of one of the trained ``groups`` of names has
        moved."""
        parameters = dict(model.named_parameters())
        for names in groups:
            if all(
                torch.equal(parameters[name].detach().cpu(), self.values[name]) for name in names
            ):
                raise StudyError(
                    f"training: no weight from {names[0]} to {names[-1]} has moved in the whole "
                    "training: its steps do not train them"
                )


def measured(
    job: TrainingJob,
    model: nn.Module,
    start: InitialWeights,
    groups: Sequence[Sequence[str]],
    times: list[EpochTimes],
    reached: list[EpochResult],
    images: int,
    **told: Any,
) -> Measurement:
    """Return the measurement of a training of ``model`` from ``start``, once each trained group of
    names has moved.

    This process trained on ``images``. ``told`` are the other fields, which the loop knows.
    """
    names = stage_names(job.settings)[: len(reached)]
    start.check(model, groups if "unfrozen" in names else groups[-1:])
    epochs, steps = epochs_of(times, reached, names, job.replicas)
    own = Replica(
        images=images,
        fit_seconds=told["fit_seconds"],
        data_wait_seconds=sum(step.data_wait_seconds for step in steps),
        memory=told["memory"],
    )
    return Measurement(
        epochs=epochs,
        steps=steps,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        threads=torch.get_num_threads(),
        trained_sha256=models.body_sha256(model.state_dict()),
        replicas=[own] if job.replicas.together else [],  # a single process's are the measurement's
        **told,
    )
