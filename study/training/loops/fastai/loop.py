"""Stock fastai, as a tutorial writes it, measured by a callback that changes nothing."""

import contextlib
import io
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastai.data.load
import numpy as np
import torchvision.models
from fastai.callback.core import Callback, CancelFitException
from fastai.callback.progress import ProgressCallback
from fastai.data.block import CategoryBlock, DataBlock
from fastai.data.transforms import IndexSplitter
from fastai.learner import Learner
from fastai.metrics import error_rate
from fastai.torch_core import set_seed
from fastai.vision.all import (
    ImageBlock,
    Normalize,
    PILImage,
    PILImageBW,
    Resize,
    create_body,
    imagenet_stats,
    vision_learner,
)
from fastai.vision.learner import _default_meta, model_meta
from PIL import Image

from study.artifacts.samples import Measurement
from study.base.devices import usable_cpus
from study.config.sections import is_own
from study.config.settings import Settings
from study.data.decode import Stored, to_channels
from study.training.instruments.clock import StepRecorder, clock_for
from study.training.instruments.in_force import Asked
from study.training.instruments.machine import peak, reset_peak
from study.training.loops.contract import (
    EpochResult,
    InitialWeights,
    Losses,
    TrainingJob,
    finite,
    measured,
    model_of,
    reaches_target,
    stage_names,
    target_of,
)
from study.training.loops.fastai.replicas import Together, replica_loader
from study.training.loops.replicas import ImageCount
from study.training.models import build as models
from study.training.models import own

ProgressCallback  # noqa: B018 - importing it is what makes a script's Learner show its bar, as `vision.all` does


class Measure(Callback):
    """Marks phases and counts images. It runs after every other callback, so that their work is
    inside the phases."""

    order = 1000

    def __init__(self, job: TrainingJob) -> None:
        self.job = job
        self.recorder = StepRecorder(clock_for(job.device))
        self.count = ImageCount(job.settings, len(job.images.train), job.replicas)
        self.stages = stage_names(job.settings)
        self.reached: list[EpochResult] = []
        self.losses: Losses = []
        self.done = 0
        self.marking = False

    def before_fit(self) -> None:
        """Do not begin the second fit of ``fine_tune`` if the first one has reached the target."""
        self._end_at_target()

    def before_train(self) -> None:
        """Start the epoch."""
        self.losses = []
        self.marking = True
        self.count.begin()
        self.recorder.begin()

    def before_batch(self) -> None:
        """Mark the end of the device transform: by now the loader has waited, moved and transformed
        the batch."""
        if self.marking:
            self.count.expect()
            self.recorder.mark("device_transform")

    def before_backward(self) -> None:
        """Mark the end of the forward phase: the loss exists."""
        self.recorder.mark("forward")

    def after_backward(self) -> None:
        """Mark the end of the backward phase: the gradients exist."""
        self.recorder.mark("backward")

    def after_batch(self) -> None:
        """End the step. ``zero_grad`` and fastai's own bookkeeping are in its last phase."""
        if self.marking:
            replicas, own = self.job.replicas, len(self.learn.yb[0])
            self.count.add(own)
            images = self.count.end_step()
            self.recorder.mark("optimizer")
            self.recorder.end_step(images)
            loss, weight = self.learn.loss.detach(), replicas.weight(own, images)
            self.losses.append((loss if weight == 1 else loss * weight, images))
            self.done += 1
            epoch = len(self.reached)
            total = self.learn.n_iter * len(self.stages)
            self.job.progress(self.done, total, f"epoch {epoch + 1} ({self.stages[epoch]})")

    def after_train(self) -> None:
        """End the epoch's training, once the device has finished it too."""
        self.marking = False
        self.recorder.end()
        self.count.end_epoch()

    def before_validate(self) -> None:
        """Start the clock of validation, which is timed separately."""
        self.valid_started = time.perf_counter()

    def after_validate(self) -> None:
        """Stop the clock of validation once every process has finished it."""
        self.recorder.clock.settle()
        self.job.replicas.meet()
        self.valid_ended = time.perf_counter()

    def after_epoch(self) -> None:
        """Take training loss, validation loss and error rate from fastai's recorder, and add them
        up over processes.

        Errors are added as whole numbers, so that all processes agree on whether the target is
        reached.
        """
        _, loss, errors = (float(value) for value in self.learn.recorder.values[-1])
        own = len(self.job.replicas.share.of(self.job.images.valid))
        loss, errors, images = self.job.replicas.added([loss * own, round(errors * own), own])
        valid_seconds, accuracy = self.valid_ended - self.valid_started, (images - errors) / images
        self.reached.append(
            EpochResult(valid_seconds, self.losses, finite(loss / images), accuracy)
        )
        self._end_at_target()

    def _end_at_target(self) -> None:
        """End fastai's current fit if the last epoch reached the target accuracy."""
        if self.reached and reaches_target(self.job.settings, self.reached[-1].accuracy):
            raise CancelFitException

    @contextlib.contextmanager
    def loader_marks(self) -> Iterator[None]:
        """Mark where the loader's iterator has waited and moved a batch: it does both before any
        batch event."""
        stock, iterators = fastai.data.load.to_device, fastai.data.load._loaders

        def timed(iterator: Any) -> Callable[[Any], Any]:
            def start(loader: Any) -> Any:
                if not self.marking:
                    return iterator(loader)
                with self.recorder.loader_start():
                    return iterator(loader)

            return start

        def marked(batch: Any, *args: Any, **kwargs: Any) -> Any:
            if self.marking:
                self.recorder.mark("data_wait")
            moved = stock(batch, *args, **kwargs)
            if self.marking:
                self.recorder.mark("transfer")
            return moved

        fastai.data.load.to_device = marked
        fastai.data.load._loaders = tuple(timed(iterator) for iterator in iterators)
        try:
            yield
        finally:
            fastai.data.load.to_device, fastai.data.load._loaders = stock, iterators


def make_dataloaders(job: TrainingJob) -> Any:
    """Return fastai's loaders from the tutorials' data block, with the run's images in the
    manifest's order."""
    images, settings = job.images, job.settings
    numbers = sorted([*images.train, *images.valid])
    block = DataBlock(
        blocks=(
            ImageBlock(PILImageBW if settings.dataset.channels == 1 else PILImage),
            CategoryBlock(images.classes),
        ),
        get_items=lambda numbers: numbers,
        get_x=lambda number: as_stored(images.stored[number], settings.dataset.channels),
        get_y=lambda number: images.classes[images.labels[number]],
        splitter=IndexSplitter([bisect_left(numbers, number) for number in images.valid]),
        item_tfms=[Resize(settings.dataset.image_size, method="squish")],
    )
    training, loader = settings.training, settings.loader
    own: dict[str, Any] = {} if loader.workers == "auto" else {"num_workers": loader.workers}
    if job.replicas.together:
        own = {
            "num_workers": settings.loader.workers_on(usable_cpus(), settings.training.replicas),
            "dl_type": replica_loader(job.replicas, settings),
        }
    own |= {} if loader.pin_memory == "auto" else {"pin_memory": loader.pin_memory}
    return block.dataloaders(
        numbers,
        bs=training.replica_batch_size,
        device=job.device,
        drop_last=training.drop_last,  # true is fastai's own default when it shuffles
        **own,
    )


def as_stored(stored: Stored, channels: int) -> Stored:
    """Return a path unchanged, as fastai opens it itself, or an array in the channels that the
    model sees.

    An array has shape (height, width) or (height, width, 3), uint8.
    """
    return (
        stored
        if isinstance(stored, Path)
        else np.asarray(to_channels(Image.fromarray(stored), channels))
    )


def make_learner(job: TrainingJob, dataloaders: Any) -> Learner:
    """Return the tutorials' learner, in the precision of the settings."""
    learner = (_learner if is_own(job.settings.model.name) else _transfer_learner)(job, dataloaders)
    precise = {"fp16": learner.to_fp16, "bf16": learner.to_bf16}.get(
        job.settings.training.precision
    )
    return precise() if precise else learner


def _learner(job: TrainingJob, dataloaders: Any) -> Learner:
    """Return a learner of a whole network on images in the network's own normalisation."""
    statistics = models.normalisation(job.settings.model.name, job.settings.dataset.channels)
    dataloaders.add_tfms([Normalize.from_stats(*statistics)], "after_batch")
    model, settings = model_of(job), job.settings
    groups = own.layer_groups(model, settings.model.name, settings.training.freeze_epochs)
    split = [[model.get_parameter(name) for name in names] for names in groups]
    return Learner(dataloaders, model, metrics=error_rate, splitter=lambda model: split)


def _transfer_learner(job: TrainingJob, dataloaders: Any) -> Learner:
    """Return a learner of torchvision's body with fastai's head.

    ``pretrained=False`` would silently omit the ImageNet normalisation, so that random weights
    would train on a different input. Here they get the same pipeline and the same frozen start.
    """
    architecture = getattr(torchvision.models, job.settings.model.name)
    one_channel = {"n_in": 1} if job.settings.dataset.channels == 1 else {}
    # others would get older weights
    stock = job.weights.kind == "imagenet" and architecture in model_meta
    learner = vision_learner(
        dataloaders, architecture, metrics=error_rate, pretrained=stock, **one_channel
    )
    if not stock:
        # With one channel fastai folds a given first layer into one of a single channel, and does
        # not normalise.
        learner.model[0].load_state_dict(_decided_body(job))
        if not one_channel:
            dataloaders.add_tfms([Normalize.from_stats(*imagenet_stats)], "after_batch")
        learner.freeze()
    return learner


def _decided_body(job: TrainingJob) -> models.State:
    """Return the tensors of the body that was decided for the run, cut as fastai cuts it."""
    full = models.backbone(job.settings.model.name, job.settings.seed, job.state)
    cut = model_meta.get(getattr(torchvision.models, job.settings.model.name), _default_meta)["cut"]
    channels = job.settings.dataset.channels
    body: models.State = create_body(full, channels, True, cut).state_dict()
    return body


def body_state(job: TrainingJob, learner: Learner) -> models.State:
    """Return the tensors of the model without its head: fastai keeps its own head apart from the
    body."""
    name = job.settings.model.name
    body: models.State = (
        models.body_state(learner.model, name) if is_own(name) else learner.model[0].state_dict()
    )
    return body


def layer_groups(learner: Learner) -> list[list[str]]:
    """Return the names of the parameters in the groups of one rate of a learner that has trained;
    none is empty."""
    names = {id(parameter): name for name, parameter in learner.model.named_parameters()}
    groups = [[names[id(parameter)] for parameter in group] for group in learner.opt.param_lists]
    return [group for group in groups if group]


def check_start(job: TrainingJob, body_sha256: str) -> None:
    """Raise :class:`RuntimeError` if stock fastai did not load the weights that were decided.

    Two cases are not compared: one channel, where fastai changes the first layer itself, and a
    network without transfer.
    """
    if job.settings.dataset.channels == 1 or is_own(job.settings.model.name):
        return
    if models.body_sha256(_decided_body(job)) != body_sha256:
        raise RuntimeError("fastai did not start from the weights that were decided for this run")


def fit(learner: Learner, settings: Settings) -> None:
    """Train by fastai's own method for the schedule."""
    training, rate = settings.training, settings.training.scaled_learning_rate
    if training.freeze_epochs or not is_own(settings.model.name):
        learner.fine_tune(training.epochs, base_lr=rate, freeze_epochs=training.freeze_epochs)
    elif training.schedule == "constant":
        learner.fit(training.epochs, rate)
    else:
        learner.fit_one_cycle(training.epochs, rate)


def train(job: TrainingJob) -> Measurement:
    """Train as ``job`` says, and return the measurement."""
    set_seed(job.seed)
    started = time.perf_counter()
    dataloaders = make_dataloaders(job)
    setup_seconds = time.perf_counter() - started
    workers, wanted = dataloaders.train.fake_l.num_workers, job.settings.loader.workers
    asked = Asked(job.settings, job.device, workers if wanted == "auto" else wanted)
    reset_peak(job.device)
    started = time.perf_counter()
    learner = make_learner(job, dataloaders)
    model_seconds = time.perf_counter() - started
    body_sha256 = models.body_sha256(body_state(job, learner))
    check_start(job, body_sha256)
    start = InitialWeights(learner.model)
    asked.check(learner.model, workers, moved=False)

    measure = Measure(job)
    epochs = len(measure.stages)
    measure.recorder.reserve(len(dataloaders.train) * epochs, epochs)
    learner.add_cb(measure)
    if job.replicas.together:
        learner.add_cb(Together(job.replicas, job.settings, len(job.images.train)))
    job.replicas.meet()
    # fastai's own bar and table
    with measure.loader_marks(), contextlib.redirect_stdout(io.StringIO()):
        fit_started, started = time.time(), time.perf_counter()
        fit(learner, job.settings)
        measure.recorder.clock.settle()
        fit_seconds = time.perf_counter() - started
    memory, trained = peak(job.device), measure.count.check()
    in_force = asked.check(learner.model, workers, "as the training ends")
    return measured(
        job,
        learner.model,
        start,
        layer_groups(learner),
        measure.recorder.read(),
        measure.reached,
        trained,
        setup_seconds=setup_seconds,
        model_seconds=model_seconds,
        fit_seconds=fit_seconds,
        fit_started=fit_started,
        target=target_of(job.settings, measure.reached, measure.valid_ended - started),
        memory=memory,
        body_sha256=body_sha256,
        workers=workers,
        in_force=in_force,
    )
