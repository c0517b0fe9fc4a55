"""The common parts of every process that trains: reading its job, preparing the inputs, reporting
the outcome."""

import importlib
import json
import random
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torchvision.models  # noqa: F401  what a model, or an optimizer's first step, would import within the measurement

from study.artifacts.layout import Results
from study.artifacts.prepared import Item, Manifest, Weights
from study.artifacts.record import DataUsed, JobResult
from study.artifacts.run import Job
from study.artifacts.samples import Measurement
from study.base.devices import usable_cpus
from study.base.errors import StudyError, first_line
from study.base.files import file_sha256, write_whole
from study.base.privacy import anonymous
from study.base.strict import Strict
from study.config.settings import Settings, few_images
from study.data.sources import open_set, source_of
from study.data.splits import check_batch_size
from study.training.instruments.machine import set_algorithms
from study.training.loops.contract import TrainingJob
from study.training.loops.replicas import Replicas
from study.training.models.pretrained import imagenet_model, read_state

NO_KERNEL = "no kernel image is available"
"""What CUDA says of a GPU for which a library holds no code."""
LONGEST_MESSAGE = 2000
"""Letters of a run's error that its record keeps."""


class ProgressLines:
    """Writes ``progress <done> <total> <words>`` to standard output, at most a few times a
    second."""

    def __init__(self) -> None:
        self.last = 0.0

    def __call__(self, done: int, total: int, words: str) -> None:
        """Print the progress of the run."""
        now = time.monotonic()
        if now - self.last > 0.3 or done == total:
            self.last = now
            print(f"progress {done} {total} {words}", flush=True)


@dataclass(frozen=True)
class Inputs:
    """The prepared inputs of a run, read and checked."""

    manifest: Manifest
    weights: Weights
    used: DataUsed


def read_inputs(job: Job) -> Inputs:
    """Return the run's data and the decision about its weights."""
    files = Results(Path(job.results))
    manifest = Manifest.read(files.manifest(job.run.dataset))
    check_batch_size(job.run.settings, manifest.train_images, job.study)
    told = {name: getattr(manifest, name) for name in DataUsed.model_fields}
    used = DataUsed.model_validate(told | {"left_out": len(manifest.left_out)})
    return Inputs(manifest, Weights.read(files.weights(job.study, job.run.weights)), used)


def checked_inputs(job: Job) -> Inputs:
    """Return :func:`read_inputs`. Raise :class:`StudyError` if a file of the data is not the one in
    the manifest.

    Size and time do not tell, so every file is read whole: call this once a run, and outside every
    timed region.
    """
    inputs, dataset, results = read_inputs(job), job.run.settings.dataset, Path(job.results)
    base = source_of(dataset).base(dataset, Results(results).data(job.run.dataset), results)
    with ThreadPoolExecutor(usable_cpus()) as pool:  # a checksum is computed outside Python's lock
        for trouble in pool.map(lambda item: _change(base, item), inputs.manifest.items):
            if trouble:
                raise StudyError(
                    trouble + (", or touch it, which makes a new manifest" if dataset.path else "")
                )
    return inputs


def _change(base: Path, item: Item) -> str | None:
    """Return how a file differs from its entry in the manifest, or None if it does not."""
    try:
        checksum = file_sha256(base / item.name)
    except OSError as error:
        return f"{item.name}: cannot be read ({error.strerror}); put it back"
    if checksum == item.sha256:
        return None
    return (
        f"{item.name}: has changed since the manifest was made (its checksum is {checksum[:12]}, "
        f"and was {item.sha256[:12]}); put it back"
    )


def prepare(job: Job, inputs: Inputs, device: torch.device, replicas: Replicas) -> TrainingJob:
    """Return all inputs of a loop, in the process that trains. Only the first of several processes
    reports progress."""
    settings, results = job.run.settings, Path(job.results)
    files = Results(results)
    torch.hub.set_dir(str(files.hub))  # stock fastai looks for ImageNet's weights there
    images = open_set(inputs.manifest, settings.dataset, files.data(job.run.dataset), results)
    if job.paced:
        train, valid = few_images(settings, len(images.train), len(images.valid))
        images = replace(images, train=images.train[:train], valid=images.valid[:valid])
    return TrainingJob(
        settings=settings,
        images=images,
        weights=inputs.weights,
        state=_state(inputs.weights, settings.model.weights, files.hub),
        device=device,
        seed=job.seed,
        progress=ProgressLines() if replicas.rank == 0 else lambda done, total, words: None,
        replicas=replicas,
    )


def loop_of(settings: Settings) -> Callable[[TrainingJob], Measurement]:
    """Return the loop that the settings name, with the algorithms that they allow in force."""
    module = importlib.import_module(f"study.training.loops.{settings.training.loop}.loop")
    train: Callable[[TrainingJob], Measurement] = module.train
    set_algorithms(settings.training)  # fastai's import lets cuDNN try some
    return train


def failed(error: Exception, settings: Settings) -> JobResult:
    """Return the result of a run that raised ``error``, with a message fit for a record. The log
    gets the traceback."""
    traceback.print_exception(error)
    if NO_KERNEL in str(error):
        own = "sm_{}{}".format(*torch.cuda.get_device_capability())
        if own not in torch.cuda.get_arch_list():  # else a user's code lacks it
            return JobResult(outcome="unavailable", message=_without_kernel())
    message = first_line(error)
    if (
        settings.training.deterministic
        and " does not have a deterministic implementation" in message
    ):
        message = (
            f"training.deterministic: {message.split()[0]} has no deterministic form on "
            f"{settings.device}"
        )
    elif not isinstance(error, StudyError):
        message = f"{error.__class__.__name__}: {message}"
    message = message[:LONGEST_MESSAGE].encode("utf-8", "backslashreplace").decode("utf-8")
    return JobResult(
        outcome="out_of_memory" if is_out_of_memory(error) else "failed",
        message=anonymous(message, settings.dataset.path, settings.model.weights),
    )


def _without_kernel() -> str:
    """Return that torch holds no code for the GPU, such as a new release's for an old one, and for
    which it does."""
    name = torch.cuda.get_device_name()
    capability = ".".join(map(str, torch.cuda.get_device_capability()))
    has = ", ".join(torch.cuda.get_arch_list())
    return (
        f"torch {torch.__version__} has no kernels for {name} (compute capability "
        f"{capability}), but for {has}"
    )


def _state(weights: Weights, requested: str, hub: Path) -> dict[str, torch.Tensor] | None:
    if weights.kind == "random":
        return None
    own = weights.kind == "file"
    file = Path(requested).expanduser() if own else hub / "checkpoints" / str(weights.file)
    if file_sha256(file) != weights.sha256:
        raise StudyError(
            f"{weights.file}: the file of the weights has changed since it was decided about them"
        )
    return dict(read_state(file) if own else imagenet_model(weights.model, hub).state_dict())


def seed_everything(seed: int, threads: int | str) -> None:
    """Seed every generator in use, and give this thread its number of CPU threads: the study's, or
    torch's default."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    if isinstance(threads, int):
        torch.set_num_threads(threads)
    # Until a thread has asked for its number, it takes the one that was set last in any thread. A
    # loader that pins memory for a GPU sets 1 in a thread of its own; fastai's pins none, so the
    # plain loop alone trained with one.
    torch.get_num_threads()


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an allocation failed, on the device or on the host."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    text = str(error)
    return isinstance(error, (RuntimeError, OSError)) and any(
        sign in text for sign in ("out of memory", "not enough memory", "Cannot allocate memory")
    )


def leave(value: Strict, path: Path) -> None:
    """Write the file in one piece."""
    write_whole(path, json.dumps(value.model_dump(mode="json"), allow_nan=False))
