"""Inference with a trained network: it is converted to one precision and asked in batches, each
timed separately."""

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator

import torch
from torch import nn

from study.artifacts.samples import InferenceSamples, Measurement, TimedBatch
from study.config.settings import Settings
from study.training.instruments.in_force import MEMORY_FORMATS
from study.training.instruments.machine import peak, reset_peak, set_fp32
from study.training.instruments.reference_workload import synchronise
from study.training.loops.contract import TrainingJob
from study.training.loops.loaders import ResidentLoader, held_in_order
from study.training.loops.torch import loop as torch_loop
from study.training.models import build as models

Infer = Callable[[torch.Tensor], torch.Tensor]
"""Function from normalised images (n, channels, s, s) to scores (n, classes), both on the
device."""
CALIBRATION_BATCH = 32


@dataclasses.dataclass(frozen=True)
class Network:
    """A trained network in one precision."""

    infer: Infer
    kind: torch.dtype
    """Type of the network's input images."""
    operators: dict[str, int] = dataclasses.field(default_factory=dict)
    memory_format: torch.memory_format = torch.contiguous_format
    """Order of the network's input images in memory."""

    def takes(self, images: torch.Tensor) -> torch.Tensor:
        """Return normalised images (n, channels, s, s) as the network takes them."""
        return images.to(self.kind).contiguous(memory_format=self.memory_format)


def train(job: TrainingJob) -> Measurement:
    """Train as ``job`` says, but from the study's seed, then measure inference on the validation
    images."""
    settings, device = job.settings, job.device
    one_pass = -(-len(job.images.valid) // settings.inference.batch_size)
    planned = max(settings.inference.batches, one_pass)
    trainer, measured = train_the_same(job, planned)
    model, prepare, trained = trainer.raw_model.eval(), trainer.prepare, trainer.total_steps
    del trainer.optimizer, trainer.loaders  # their memory belongs to the training
    if device.type == "cuda":
        torch.cuda.empty_cache()
    reset_peak(device)
    # whatever the training computed in
    set_fp32("tf32" if settings.inference.precision == "tf32" else "fp32")
    weights_sha256 = models.body_sha256(model.state_dict())
    held = held_in_order(
        job.images, job.images.valid, settings, device, settings.inference.batch_size
    )

    started = time.perf_counter()
    network = convert(model, settings, calibration_batches(job, prepare))
    network = made_fast(network, settings, prepare(batch_of(held, 0)[0]))
    synchronise(device)
    conversion_seconds = time.perf_counter() - started
    began, started = time.time(), time.perf_counter()
    batches, hits = [], []
    for number in range(-settings.inference.warm_up_batches, planned):
        batch, hit = ask(network, prepare, held, number)
        batches.append(batch)
        hits.append(hit)
        job.progress(trained + max(0, number + 1), trained + planned, "inference")
    seconds = time.perf_counter() - started
    # Batches hold the images in turn from the first: in the first pass each counts once.
    right = torch.cat(hits[settings.inference.warm_up_batches :])[: len(held.labels)]
    samples = InferenceSamples(
        started=began,
        seconds=seconds,
        conversion_seconds=conversion_seconds,
        batches=batches,
        accuracy=float(right.double().mean()),
        weights_sha256=weights_sha256,
        operators=network.operators,
        memory=peak(device),
    )
    return measured.model_copy(update={"inference": samples})


def train_the_same(job: TrainingJob, planned: int) -> tuple[torch_loop.Trainer, Measurement]:
    """Train from the study's seed with deterministic algorithms, and return the trainer and its
    measurement.

    The study's seed, not the run's, gives the same weights in every run of a device. ``planned``
    batches are added to the steps of the progress.
    """
    cudnn = torch.backends.cudnn
    cudnn.deterministic, cudnn.benchmark = True, False
    try:
        return torch_loop.train_model(
            dataclasses.replace(
                job,
                seed=job.settings.seed,
                progress=lambda done, total, words: job.progress(done, total + planned, words),
            )
        )
    finally:
        cudnn.deterministic, cudnn.benchmark = False, job.settings.training.cudnn_benchmark


@torch.inference_mode()
def ask(
    network: Network, prepare: Infer, held: ResidentLoader, number: int
) -> tuple[TimedBatch, torch.Tensor]:
    """Return the timed batch ``number`` and its hits, a bool tensor (batch size,) that is true for
    each right answer.

    The device is at rest before and after the batch. Batches below 0 are the warm-up. Every batch
    is full: after the last image comes the first.
    """
    device, (images, labels) = held.labels.device, batch_of(held, number)
    inputs = network.takes(prepare(images))
    synchronise(device)
    started = time.perf_counter()
    scores = network.infer(inputs)
    synchronise(device)
    seconds = time.perf_counter() - started
    batch = TimedBatch(images=len(labels), warm_up=number < 0, seconds=round(seconds, 9))
    return batch, scores.argmax(1) == labels


def batch_of(held: ResidentLoader, number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the batch ``number``: uint8 images (batch size, c, s, s), and int64 labels (batch
    size,)."""
    size = held.batches.size
    labels = held.labels
    numbers = torch.arange(number * size, (number + 1) * size, device=labels.device)
    chosen = numbers % len(labels)
    return held.pixels()[chosen], labels[chosen]


def calibration_batches(job: TrainingJob, prepare: Infer) -> Iterator[torch.Tensor]:
    """Return batches of normalised training images (n, channels, s, s) float32, spread evenly over
    the set.

    They are the same in every run.
    """
    train = job.images.train
    count = min(job.settings.inference.calibration_images, len(train))
    chosen = [train[number * len(train) // count] for number in range(count)]
    held = held_in_order(job.images, chosen, job.settings, job.device, CALIBRATION_BATCH)
    return (prepare(images) for images, _ in held)


@torch.no_grad()
def convert(model: nn.Module, settings: Settings, calibration: Iterator[torch.Tensor]) -> Network:
    """Return the trained ``model`` in the precision of the settings.

    ``calibration`` yields normalised training images (n, channels, s, s) float32.
    """
    precision = settings.inference.precision
    if precision in ("fp32", "tf32", "bf16"):
        kind = torch.bfloat16 if precision == "bf16" else torch.float32
        order = MEMORY_FORMATS[settings.inference.memory_format]
        return Network(model.to(kind).to(memory_format=order), kind, memory_format=order)
    from study.training.loops.inference import onnx_runtime

    first = next(calibration)
    ranges = itertools.chain([first], calibration) if precision == "int8" else None
    infer, operators = onnx_runtime.load(model, first[:2], ranges)
    return Network(infer, torch.float32, operators)


@torch.inference_mode()
def made_fast(network: Network, settings: Settings, images: torch.Tensor) -> Network:
    """Return the network compiled, or recorded as a CUDA graph, or both, as the settings say.

    ``images`` are a normalised batch (batch size, channels, s, s): all batches have its shape.
    """
    infer, example = network.infer, network.takes(images)
    if settings.inference.compile:
        assert isinstance(infer, nn.Module)
        infer = torch_loop.compiled(infer, example.device)
        infer(example)
    if settings.inference.cuda_graph:
        infer = recorded(infer, example)
    return dataclasses.replace(network, infer=infer)


def recorded(infer: Infer, inputs: torch.Tensor) -> Infer:
    """Return ``infer`` as a CUDA graph, which one launch replays, for batches of the shape of
    ``inputs``.

    The graph reads each batch at one place: to copy it there is a part of the time.
    """
    inputs = inputs.clone()
    stream = torch.cuda.Stream(inputs.device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        infer(inputs)  # no recording can hold a search for algorithms
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        scores = infer(inputs)

    def replay(images: torch.Tensor) -> torch.Tensor:
        inputs.copy_(images)
        graph.replay()
        return scores

    return replay
