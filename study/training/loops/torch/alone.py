"""The loader alone: every batch of the schedule is fetched and dropped, and nothing trains."""

import time

import torch

from study.artifacts.samples import Measurement
from study.training.instruments.clock import HostClock, StepRecorder
from study.training.instruments.in_force import Asked
from study.training.instruments.machine import peak
from study.training.loops.contract import (
    EpochResult,
    TrainingJob,
    epochs_of,
    stage_names,
    validates,
)
from study.training.loops.loaders import Loaders, make_loaders
from study.training.loops.replicas import planned_steps


def train(job: TrainingJob) -> Measurement:
    """Fetch the batches that a training as ``job`` says would fetch. Each step consists of the wait
    for its batch."""
    started = time.perf_counter()
    loaders = make_loaders(job.images, job.settings, job.device, job.seed)
    setup_seconds = time.perf_counter() - started
    recorder, names = StepRecorder(HostClock()), stage_names(job.settings)
    planned = planned_steps(job.settings, len(job.images.train))
    reached: list[EpochResult] = []
    fit_started, started = time.time(), time.perf_counter()
    for number, name in enumerate(names, start=1):
        fetch(loaders, recorder, planned)
        validation = time.perf_counter()
        looks = validates(job.settings, number)
        for _ in loaders.valid if looks else ():
            pass
        reached.append(
            EpochResult(time.perf_counter() - validation if looks else 0.0, [], None, None)
        )
        total = len(names) * len(planned)
        job.progress(number * len(planned), total, f"epoch {number} ({name})")
    fit_seconds = time.perf_counter() - started
    epochs, steps_taken = epochs_of(recorder.read(), reached, names)
    return Measurement(
        setup_seconds=setup_seconds,
        model_seconds=0.0,
        fit_seconds=fit_seconds,
        fit_started=fit_started,
        epochs=epochs,
        steps=steps_taken,
        memory=peak(torch.device("cpu")),
        parameters=0,
        body_sha256=None,
        threads=torch.get_num_threads(),
        workers=loaders.workers,
        in_force=Asked(job.settings, job.device, loaders.workers).check(None, loaders.workers),
    )


def fetch(loaders: Loaders, recorder: StepRecorder, planned: list[int]) -> None:
    """Fetch the batches of one epoch, and record its steps, which hold the ``planned`` numbers of
    images."""
    recorder.begin()
    with recorder.loader_start():
        iterator = iter(loaders.train)
    step, seen = 0, 0
    for images, _ in iterator:
        recorder.mark("data_wait")
        seen += len(images)
        if seen == planned[step]:
            recorder.end_step(seen)
            step, seen = step + 1, 0
    recorder.end()
