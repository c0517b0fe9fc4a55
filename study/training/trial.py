"""The trial of a user's model: before any run, each kind of run in small, on this machine's CPU."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch

from study.artifacts.prepared import Weights
from study.base.errors import StudyError
from study.config.sections import is_own
from study.config.settings import Settings, few_images, in_small
from study.data.decode import ImageSet
from study.data.sources import DatasetInfo
from study.training.common import loop_of, seed_everything
from study.training.instruments.in_force import Asked
from study.training.loops.contract import TrainingJob
from study.training.models import own
from study.training.models.build import State
from study.training.models.pretrained import decide, read_state

MOST_PIXELS = 2**20
"""Pixels of a batch of the trial: 64 images of 128 x 128. A batch with more is tried with fewer
images."""


def decide_and_try(
    runs: Iterable[tuple[Settings, DatasetInfo]], hub: Path, without: str | None = None
) -> Weights:
    """Return the decision about the weights that these runs share, and try a user's model as each
    kind of run does.

    ``without`` is the reason why ImageNet's weights could not be had. Raise :class:`StudyError`
    with key, model and line if one fails.
    """
    every = list(runs)
    # a network may be too deep for those
    settings, info = min(every, key=lambda one: one[0].dataset.image_size)
    model, images = settings.model, settings.dataset
    before = Asked(Settings.model_validate({"device": "cpu"}), torch.device("cpu"), 0)
    decision = decide(
        model.name,
        model.weights,
        settings.seed,
        hub,
        without,
        classes=info.classes,
        channels=images.channels,
        image_size=images.image_size,
    )
    if is_own(model.name):
        try:
            # a run compares them before its model is imported, and here it is by now
            before.check(None, 0)
        except StudyError as error:
            why = f"changes what a run is asked for: {error}"
            raise own.refused(
                model.name, why, allowed="a model that leaves the process as it is"
            ) from None
        state = read_state(Path(model.weights).expanduser()) if decision.kind == "file" else None
        kinds = {repr(small): small for small in (_small(*one) for one in every)}
        for kind in kinds.values():
            _try(decision, state, *kind)
    return decision


def _small(settings: Settings, info: DatasetInfo) -> tuple[Settings, int, int, int]:
    """Return the settings of a small run, and its numbers of training and validation images and of
    classes.

    It has a full batch, and the last one of an epoch if that has fewer images.
    """
    training, size = settings.training, settings.dataset.image_size
    precision = training.precision
    if training.loop == "fastai" or precision == "tf32":  # what a CPU does not have
        precision = "auto"
    values = {
        "training.batch_size": min(training.replica_batch_size, max(2, MOST_PIXELS // size**2)),
        "training.gradient_accumulation": min(training.gradient_accumulation, 2),
        "training.precision": "bf16" if precision == "fp16" else precision,
        "loader.kind": "workers" if training.loop == "fastai" else "device",
        "loader.workers": 0,
    }
    small = in_small(settings, values)
    counts = few_images(small, info.train_images // training.replicas, info.valid_images, steps=1)
    return small, *counts, info.classes


def _try(
    weights: Weights,
    state: State | None,
    settings: Settings,
    train: int,
    valid: int,
    classes: int,
) -> None:
    channels, size = settings.dataset.channels, settings.dataset.image_size
    shape = (size, size) if channels == 1 else (size, size, channels)
    pixels = np.random.default_rng(settings.seed).integers(
        0, 256, (train + valid, *shape), dtype=np.uint8
    )
    images = ImageSet(
        list(pixels),
        [number % classes for number in range(train + valid)],
        list(range(train)),
        list(range(train, train + valid)),
        [str(number) for number in range(classes)],
    )
    job = TrainingJob(
        settings=settings,
        images=images,
        weights=weights,
        state=state,
        device=torch.device("cpu"),
        seed=settings.seed,
        progress=lambda done, total, words: None,
    )
    seed_everything(settings.seed, settings.training.threads)
    try:
        loop_of(settings)(job)
    except (Exception, SystemExit) as error:  # a user's code can raise anything
        if isinstance(error, StudyError) and str(error).startswith(
            ("model.", "training.freeze_epochs")
        ):
            raise
        batch = f"training.batch_size {settings.training.batch_size}"
        why = (
            f"fails in a small run of the {settings.training.loop} loop with {batch}: "
            f"{own.words_of(error)}"
        )
        raise own.refused(
            settings.model.name, why, error, "a model that trains as the study says"
        ) from None
