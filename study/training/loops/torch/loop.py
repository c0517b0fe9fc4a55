"""Our own loop: plain PyTorch, the same schedule as fastai's ``fine_tune``, and a mark at the end
of every phase."""

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import torch
from torch import nn

from study.artifacts.samples import Measurement
from study.base.errors import StudyError
from study.config.sections import is_own
from study.training.instruments.clock import StepRecorder, clock_for
from study.training.instruments.in_force import MEMORY_FORMATS, Asked
from study.training.instruments.machine import peak, reset_peak
from study.training.loops.contract import (
    EpochResult,
    InitialWeights,
    Losses,
    TrainingJob,
    finite,
    losses_of,
    measured,
    model_of,
    reaches_target,
    stage_names,
    target_of,
    validates,
)
from study.training.loops.decoding import difference_from_pillow
from study.training.loops.loaders import Loaders, make_loaders
from study.training.loops.replicas import ImageCount
from study.training.loops.schedule import Stage, stages
from study.training.loops.torch.batch import Batch, Captured, Eager
from study.training.loops.torch.optimizer import layer_groups, make_optimizer, set_frozen
from study.training.models import build as models
from study.training.models import own


class Trainer:
    """One model with its optimizer and its loaders."""

    def __init__(self, job: TrainingJob, loaders: Loaders) -> None:
        self.job, self.loaders = job, loaders
        settings, device = job.settings, job.device
        name = settings.model.name
        model = model_of(job)
        self.memory_format = MEMORY_FORMATS[settings.training.memory_format]
        self.raw_model = model.to(device).to(memory_format=self.memory_format)
        self.groups = (
            own.layer_groups(model, name, settings.training.freeze_epochs)
            if is_own(name)
            else layer_groups(self.raw_model)
        )
        self.optimizer = make_optimizer(self.raw_model, self.groups, settings.training)
        # A wrapper around the same parameters: their names, and so the groups, are the eager
        # model's.
        self.compiled_model = (
            compiled(self.raw_model, device) if settings.training.compile else self.raw_model
        )
        self.model = self.compiled_model
        self.executor = (
            Captured(
                device, self.raw_model, (self.transform, self.forward, self.backward), self.judge
            )
            if settings.training.cuda_graph
            else Eager(device)
        )
        self.loss = nn.CrossEntropyLoss()
        self.scaler = torch.amp.GradScaler(
            device.type, enabled=settings.training.precision == "fp16"
        )
        self.recorder = StepRecorder(clock_for(device))
        self.mean, self.std = (
            torch.tensor(values, device=device).view(1, -1, 1, 1)
            for values in models.normalisation(name, settings.dataset.channels)
        )
        self.count = ImageCount(settings, len(job.images.train), job.replicas)
        self.total_steps = len(self.count.planned) * len(stage_names(settings))
        self.done = 0

    def prepare(self, images: torch.Tensor) -> torch.Tensor:
        """Return uint8 images (n, c, s, s) as normalised float32 (n, channels, s, s) on the device.

        The channels are those of the model's input.
        """
        values = images.to(torch.float32, memory_format=self.memory_format).div_(255)
        normalised = (values.expand(-1, self.mean.shape[1], -1, -1) - self.mean) / self.std
        return normalised.contiguous(memory_format=self.memory_format)

    def autocast(self) -> AbstractContextManager[object]:
        """Return a context of mixed precision if the settings ask for it, else an empty one.

        A graph that found weights cast already would never see them change, so it casts them
        itself.
        """
        training = self.job.settings.training
        kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(training.precision)
        if kind is None:
            return nullcontext()
        return torch.autocast(self.job.device.type, kind, cache_enabled=not training.cuda_graph)

    def enter(self, stage: Stage) -> None:
        """Freeze the parameters that the stage does not train, so that all processes exchange the
        same ones."""
        set_frozen(self.raw_model, self.groups, stage.name == "frozen")
        self.model = self.job.replicas.wrap(self.compiled_model)

    def train_epoch(self, stage: Stage, number: int, epoch: int) -> Losses:
        """Train epoch ``number`` of the stage, ``epoch`` of the schedule, and return its losses.

        The recorder has the times.
        """
        self.model.train()
        losses: Losses = []
        self.count.begin()
        self.recorder.begin()
        with self.recorder.loader_start():
            batches = iter(self.loaders.train)
        seen, loss = 0, torch.zeros(())
        steps, size = len(self.count.planned), self.job.settings.training.global_batch_size
        for images, labels in batches:
            self.recorder.mark("data_wait")
            whole = self.count.expect()
            last = -(-whole // size) - 1
            if seen == 0:
                self.set_rates(stage, (number + len(losses) / steps) / stage.epochs)
            with self.job.replicas.exchanging(self.model, now=seen == last):
                share = self.job.replicas.weight(len(images), whole)
                part = self.accumulate(images, labels, share, first=seen == 0)
            self.count.add(len(images))
            loss = part if seen == 0 else loss + part
            seen += 1
            if seen > last:
                self.update()
                trained = self.count.end_step()
                losses.append((loss, trained))
                self.recorder.end_step(trained)
                self.done, seen = self.done + 1, 0
                self.job.progress(self.done, self.total_steps, f"epoch {epoch} ({stage.name})")
        self.recorder.end()
        self.count.end_epoch()
        return losses

    def accumulate(
        self, images: torch.Tensor, labels: torch.Tensor, share: float, first: bool
    ) -> torch.Tensor:
        """Add the gradients of uint8 ``images`` (n, c, s, s) and int64 ``labels`` (n,), and return
        their loss.

        The micro-batch is the fraction ``share`` of its step, and maybe its ``first``. The result
        is its part of the step's mean loss, a scalar tensor still on the device. The backward phase
        includes the exchange of gradients, which runs beside it.
        """
        mark, executor = self.recorder.mark, self.executor
        batch = executor.batch(images, labels, share, first)
        mark("transfer")
        if executor.warm_up(batch):
            mark("graph_warm_up")
        executor.run(self.transform, batch)
        mark("device_transform")
        executor.run(self.forward, batch)
        mark("forward")
        executor.run(self.backward, batch)
        mark("backward")
        return executor.kept(batch.loss)

    def transform(self, batch: Batch) -> None:
        """Set the batch's inputs."""
        batch.inputs = self.prepare(batch.images)

    def forward(self, batch: Batch) -> None:
        """Set the batch's loss, its part of the step's mean."""
        with self.autocast():
            loss = self.loss(self.model(batch.inputs), batch.labels)
        batch.loss = loss if batch.share == 1 else loss * batch.share

    def backward(self, batch: Batch) -> None:
        """Add the batch's gradients to the parameters'."""
        self.scaler.scale(batch.loss).backward()

    def judge(self, batch: Batch) -> None:
        """Set the mean loss of a batch of validation, and its number of images that the model gets
        right."""
        self.transform(batch)
        with self.autocast():
            # unwrapped: shares may differ in their number of batches
            outputs = self.compiled_model(batch.inputs)
            batch.loss = self.loss(outputs, batch.labels)
        batch.right = (outputs.argmax(1) == batch.labels).sum()

    def update(self) -> None:
        """Do the optimizer's step on the gradients of all micro-batches."""
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.executor.forget_gradients(self.optimizer)
        self.recorder.mark("optimizer")

    def set_rates(self, stage: Stage, progress: float) -> None:
        """Set the schedule's learning rates for the next step, and the momentum if the schedule has
        one."""
        rates, momentum = stage.rates(progress), stage.momentum(progress)
        for group in self.optimizer.param_groups:
            group["lr"] = rates[group["layer_group"]]
            if momentum is not None and "betas" in group:
                group["betas"] = (momentum, group["betas"][1])
            elif momentum is not None:
                group["momentum"] = momentum

    @torch.no_grad()
    def validate(self, losses: Losses) -> EpochResult:
        """Return the epoch's results: loss and accuracy over the validation images.

        Each process takes its share of the images. ``losses`` are the epoch's training losses.
        """
        self.model.eval()
        started = time.perf_counter()
        self.job.replicas.agree(self.raw_model)
        valid_losses: Losses = []
        correct, seen = torch.zeros((), device=self.job.device), 0
        for images, labels in self.loaders.valid:
            batch = self.executor.batch(images, labels)
            self.executor.run(self.judge, batch)
            valid_losses.append((self.executor.kept(batch.loss), len(labels)))
            correct += batch.right
            seen += len(labels)
        loss, _ = losses_of(valid_losses, self.job.replicas)
        right, judged = self.job.replicas.added([float(correct), seen])
        return EpochResult(time.perf_counter() - started, losses, loss, finite(right / judged))


def train(job: TrainingJob) -> Measurement:
    """Train as ``job`` says, and return the measurement."""
    return train_model(job)[1]


def train_model(job: TrainingJob) -> tuple[Trainer, Measurement]:
    """Train as ``job`` says, and return the trainer with its trained model, and the measurement."""
    started = time.perf_counter()
    loaders = make_loaders(job.images, job.settings, job.device, job.seed, job.replicas.share)
    setup_seconds = time.perf_counter() - started
    asked = Asked(job.settings, job.device, loaders.workers)
    reset_peak(job.device)
    started = time.perf_counter()
    trainer = Trainer(job, loaders)
    trainer.recorder.clock.settle()
    model_seconds = time.perf_counter() - started
    # These judge the run, and are no part of its times.
    body = models.body_state(trainer.raw_model, job.settings.model.name)
    body_sha256 = models.body_sha256(body)
    start = InitialWeights(trainer.raw_model)
    started = time.perf_counter()
    loaders.ready()
    setup_seconds += time.perf_counter() - started
    in_force = asked.check(
        trainer.raw_model, getattr(loaders.train, "num_workers", loaders.workers)
    )

    micro_batches = trainer.total_steps * job.settings.training.gradient_accumulation
    trainer.recorder.reserve(micro_batches, len(stage_names(job.settings)))
    job.replicas.meet()
    fit_started, started = time.time(), time.perf_counter()
    reached = fit(trainer)
    fit_seconds = time.perf_counter() - started
    memory, trained = peak(job.device), trainer.count.check()
    # Graphs end here: a process that is forked later, as a loader's workers are, dies where its
    # collector finds one.
    trainer.executor = Eager(job.device)
    asked.check(trainer.raw_model, loaders.workers, "as the training ends")
    if job.settings.training.compile and not compile_seconds():
        raise StudyError(
            "training.compile: asked for true, and nothing is compiled: the environment forbids it"
        )
    return trainer, measured(
        job,
        trainer.raw_model,
        start,
        trainer.groups,
        trainer.recorder.read(),
        reached,
        trained,
        setup_seconds=setup_seconds,
        model_seconds=model_seconds,
        fit_seconds=fit_seconds,
        fit_started=fit_started,
        target=target_of(job.settings, reached, fit_seconds),
        memory=memory,
        body_sha256=body_sha256,
        workers=loaders.workers,
        decoder_difference=difference_from_pillow(job.images, job.settings, job.device),
        in_force=in_force,
        compile_seconds=compile_seconds() if job.settings.training.compile else None,
    )


def fit(trainer: Trainer) -> list[EpochResult]:
    """Train the stages of the schedule, and return the results of each epoch, up to one that
    reaches the target.

    Several processes end at once: the accuracy is that of all of them.
    """
    settings, reached = trainer.job.settings, list[EpochResult]()
    for stage in stages(settings, len(trainer.groups)):
        trainer.enter(stage)
        for number in range(stage.epochs):
            losses = trainer.train_epoch(stage, number, len(reached) + 1)
            looks = validates(settings, len(reached) + 1)
            reached.append(
                trainer.validate(losses) if looks else EpochResult(0.0, losses, None, None)
            )
            if reaches_target(settings, reached[-1].accuracy):
                return reached
    return reached


def compiled(model: nn.Module, device: torch.device) -> nn.Module:
    """Return the model as ``torch.compile`` makes it.

    Whether steps are recorded is the study's to say: the compiler's own CUDA graphs stay off,
    whatever the environment asks for, and its code runs in :class:`Captured` as any other.
    """
    options: Any = {"triton.cudagraphs": False} if device.type == "cuda" else None
    return cast(nn.Module, torch.compile(model, options=options))


def compile_seconds() -> float:
    """Return the seconds that torch.compile took in this process so far, forward and backward."""
    from torch._dynamo.utils import calculate_time_spent

    return float(calculate_time_spent().get("total_wall_time", 0.0))
