"""The process of a run: reads one job file, trains or has ranks train, leaves one result. Runs
inside the container.

``python -m study.training.job JOB SCRATCH``. The training code touches files here, in
:mod:`study.training.distributed.rank` and in :mod:`study.training.common`, and in no module below
these.
"""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import torch

from study.artifacts.machine import Machine
from study.artifacts.pace import Pace
from study.artifacts.record import JobResult
from study.artifacts.run import RESULT, TELEMETRY, Job
from study.artifacts.samples import Measurement, ReferenceWorkload
from study.base.privacy import anonymous
from study.config.settings import Settings, few_images
from study.training.common import (
    Inputs,
    checked_inputs,
    failed,
    leave,
    loop_of,
    prepare,
    seed_everything,
)
from study.training.instruments.clock import Stopwatch
from study.training.instruments.machine import (
    check_packages,
    describe,
    fp32_in_use,
    gpu_trouble,
    has_tf32,
    set_fp32,
)
from study.training.instruments.reference_workload import first_use, repetitions
from study.training.instruments.sampler import sampling
from study.training.loops.replicas import Replicas

PACED_SECONDS = 8.0
"""Seconds in which a warm-up run begins further settings."""


def made_ready(
    job: Job, inputs: Inputs, job_file: Path, scratch: Path
) -> Callable[[], Measurement]:
    """Return the prepared training of this run: in this process, or in those that torch's launcher
    starts."""
    settings = job.run.settings
    if settings.training.strategy != "single":
        from study.training.distributed.ranks import train_ranks

        return partial(train_ranks, job_file, scratch, settings, job.nodes)
    training_job = prepare(job, inputs, torch.device(settings.device), Replicas())
    return partial(loop_of(settings), training_job)


def execute(job: Job, job_file: Path = Path("job.json"), scratch: Path = Path()) -> JobResult:
    """Train, and return every possible outcome as a result. Ranks leave their files in
    ``scratch``."""
    inputs: Inputs | None = None
    measured: ReferenceWorkload | None = None
    settings, watch = job.run.settings, Stopwatch()
    try:
        if trouble := _no_device(settings):
            seen = describe("cuda" if torch.cuda.is_available() else "cpu", job.packages)
            return JobResult(outcome="unavailable", message=anonymous(trouble), machine=seen)
        check_packages(job.packages)
        seed_everything(job.seed, settings.training.threads)
        inputs = checked_inputs(job)
        train, device = made_ready(job, inputs, job_file, scratch), torch.device(settings.device)
        set_fp32(settings.training.precision)
        watch.mark("inputs")
        # Outside every timed region, and before the window of peak memory opens.
        first_use_seconds = first_use(device)
        watch.mark("device_start")
        if job.reference_workload:
            before, host_before = _reference_times(device)
            measured = ReferenceWorkload(
                first_use_seconds=first_use_seconds,
                before=before,
                host_before=host_before,
                after=[],
            )
        watch.mark("instruments")
        began = time.perf_counter()
        measurement = train()
        paces = paces_of(job, inputs, measurement, time.perf_counter() - began)
        watch.mark("training")
        if measured:
            after, host_after = _reference_times(device)
            measured = measured.model_copy(update={"after": after, "host_after": host_after})
        watch.mark("instruments")
        machine: Machine | None = describe(settings.device, job.packages)
        result = JobResult(
            outcome="ok",
            measurement=measurement,
            fp32=fp32_in_use(settings.device),
            timeline=watch.timeline(),
            paces=paces,
        )
    # every outcome is a result: the other runs go on, and the report shows this one
    except Exception as error:
        result, machine = failed(error, settings), _machine(job)
    return result.model_copy(
        update={
            "machine": machine,
            "data": inputs.used if inputs else None,
            "weights": inputs.weights.model_copy(update={"parameters": None}) if inputs else None,
            "reference_workload": measured,
        }
    )


def paces_of(job: Job, inputs: Inputs, first: Measurement, seconds: float) -> dict[str, Pace]:
    """Return the paces that the job asks for: of its own run, which took so many ``seconds``, and
    of the others as far as the time of a warm-up run goes.

    One that fails here has none: its own run will tell why.
    """
    counts = inputs.manifest.train_images, inputs.manifest.valid_images
    paces, ends = dict[str, Pace](), time.perf_counter() + PACED_SECONDS
    for name, settings in job.paced.items():
        (_, judged), began = few_images(settings, *counts), time.perf_counter()
        if not paces:
            paces[name] = Pace.of(first, seconds, judged)
        elif began < ends:
            run = job.run.model_copy(update={"settings": settings})
            own = job.model_copy(update={"run": run})
            with suppress(Exception):
                again = prepare(own, inputs, torch.device(settings.device), Replicas())
                measured = loop_of(settings)(again)
                paces[name] = Pace.of(measured, time.perf_counter() - began, judged)
    return paces


def _no_device(settings: Settings) -> str | None:
    """Return why torch cannot train on the device as the settings say, or None if it can."""
    if settings.device != "cuda":
        return None
    if not torch.cuda.is_available():
        return f"torch finds no CUDA device that it can use: {gpu_trouble()}"
    wanted, available = settings.training.replicas, torch.cuda.device_count()
    if available < wanted:
        return f"torch finds {available} CUDA devices, and the run needs {wanted}"
    if settings.training.precision == "tf32" and not has_tf32():
        return "training.precision: this GPU has no tf32; NVIDIA GPUs have it from Ampere on"
    return None


def _reference_times(device: torch.device) -> tuple[list[float], list[float]]:
    """Return the reference workload's seconds of the device, and of the CPUs beside it if it is a
    GPU."""
    host = repetitions(torch.device("cpu")) if device.type != "cpu" else []
    return repetitions(device), host


def _machine(job: Job) -> Machine | None:
    """Return the machine, also after a failure, or None if the device itself no longer answers."""
    try:
        return describe(job.run.settings.device, job.packages)
    except Exception:
        return None


def main(job_file: str, scratch_folder: str) -> None:
    """Execute the job file, and leave the result in the scratch folder in one piece."""
    job = Job.of_file(Path(job_file))
    scratch = Path(scratch_folder)
    # torch.compile has a cache of this run alone: code that another run compiled would look fast.
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(scratch / "compiled")
    settings = job.run.settings
    gpus = settings.training.replicas if settings.device == "cuda" else 0
    with sampling(scratch / TELEMETRY, gpus):
        result = execute(job, Path(job_file), scratch)
    leave(result, scratch / RESULT)


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # as a forked process ends: no thread that a user's model left keeps it until its time limit
    os._exit(0)
