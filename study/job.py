"""The training process: reads one job file, trains, leaves one result. Runs inside the container.

``python -m study.job JOB SCRATCH``. Files are touched here and nowhere below.
"""

import json
import os
import random
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import torch

from study.config import Settings, Strict
from study.data.images import open_set
from study.data.manifest import read_manifest
from study.data.preflight import check_batch_size
from study.errors import StudyError
from study.measure import yardstick
from study.measure.arithmetic import fp32_in_use, has_tf32, measure_ceilings, set_fp32
from study.measure.machine import Machine, describe, gpu_trouble
from study.measure.samples import Yardstick
from study.measure.telemetry import sampling
from study.models import imagenet_model, read_state
from study.plan import Run
from study.privacy import anonymous
from study.records import DataUsed, JobResult
from study.train.schedule import TrainingJob
from study.weights import Weights, read_weights

RESULT, TELEMETRY, CEILINGS = "result.json", "telemetry.csv", "ceilings.json"


class Job(Strict):
    """What a launcher asks a training process to do. Paths are relative to the working directory."""

    run: Run
    study: str
    results: str
    seed: int
    ceilings: bool = False


class ProgressLines:
    """Writes ``progress <done> <total> <words>`` on standard output, at most a few times a second."""

    def __init__(self) -> None:
        self.last = 0.0

    def __call__(self, done: int, total: int, words: str) -> None:
        """Say how far the run is."""
        now = time.monotonic()
        if now - self.last > 0.3 or done == total:
            self.last = now
            print(f"progress {done} {total} {words}", flush=True)


def execute(job: Job) -> JobResult:
    """Train, and turn every way in which that can end into a result."""
    weights: Weights | None = None
    used: DataUsed | None = None
    measured: Yardstick | None = None
    settings = job.run.settings
    try:
        if settings.device == "cuda" and not torch.cuda.is_available():
            message = f"torch finds no CUDA device that it can use: {gpu_trouble()}"
            return JobResult(outcome="unavailable", message=anonymous(message), machine=describe("cpu"))
        if settings.training.precision == "tf32" and not has_tf32():
            message = "training.precision: this GPU has no tf32, which NVIDIA's have from Ampere on"
            return JobResult(outcome="unavailable", message=message, machine=describe(settings.device))
        seed_everything(job.seed, settings.training.threads)
        results = Path(job.results)
        folder = results / "data" / job.run.dataset
        manifest = read_manifest(folder / "manifest.json")
        check_batch_size(settings, manifest.train_images, job.study)
        weights = read_weights(results / job.study / "weights" / f"{job.run.weights}.json")
        used = DataUsed(
            source=manifest.source,
            generated=manifest.generated,
            sha256=manifest.sha256,
            classes=manifest.classes,
            train_images=manifest.train_images,
            valid_images=manifest.valid_images,
            left_out=len(manifest.left_out),
        )
        torch.hub.set_dir(str(results / "weights"))  # stock fastai looks for ImageNet's weights there
        training_job = TrainingJob(
            settings=settings,
            images=open_set(manifest, settings.dataset, folder, results),
            weights=weights,
            state=_state(weights, settings.model.weights, results),
            device=torch.device(settings.device),
            seed=job.seed,
            progress=ProgressLines(),
        )
        if settings.task == "inference":
            from study.train.inference import train
        elif settings.training.loop == "fastai":
            from study.train.fastai_loop import train
        elif settings.loader.kind == "alone":
            from study.train.loader_alone import train
        else:
            from study.train.torch_loop import train
        torch.backends.cudnn.benchmark = settings.training.cudnn_benchmark  # fastai's import switches it on
        set_fp32(settings.training.precision)
        # Outside every timed region, and before the window of peak memory opens.
        first_use = yardstick.first_use(training_job.device)
        before, host_before = _yardsticks(training_job.device)
        measured = Yardstick(first_use_seconds=first_use, before=before, host_before=host_before, after=[])
        measurement = train(training_job)
        after, host_after = _yardsticks(training_job.device)
        measured = measured.model_copy(update={"after": after, "host_after": host_after})
    except Exception as error:  # every end is a result: the other runs go on, and the report shows this one
        traceback.print_exc()
        outcome = "out_of_memory" if is_out_of_memory(error) else "failed"
        message = str(error).strip().splitlines()[0] if str(error).strip() else ""
        if not isinstance(error, StudyError):
            message = f"{error.__class__.__name__}: {message}"
        message = anonymous(message, settings.dataset.path, settings.model.weights)
        return JobResult.model_validate(
            {
                "outcome": outcome,
                "message": message,
                "machine": _machine(settings),
                "data": used,
                "weights": weights,
                "yardstick": measured,
            }
        )
    return JobResult(
        outcome="ok",
        measurement=measurement,
        machine=describe(settings.device),
        fp32=fp32_in_use(settings.device),
        data=used,
        weights=weights,
        yardstick=measured,
    )


def _yardsticks(device: torch.device) -> tuple[list[float], list[float]]:
    """Of the device, and of the CPUs beside it where it is a GPU."""
    host = yardstick.repetitions(torch.device("cpu")) if device.type != "cpu" else []
    return yardstick.repetitions(device), host


def _machine(settings: Settings) -> Machine | None:
    """The machine, also after a failure; None where the device itself no longer answers."""
    try:
        return describe(settings.device)
    except Exception:
        return None


def _state(weights: Weights, requested: str, results: Path) -> dict[str, torch.Tensor] | None:
    if weights.kind == "imagenet":
        return dict(imagenet_model(weights.model, results / "weights").state_dict())
    if weights.kind == "file":
        return dict(read_state(Path(requested).expanduser()))
    return None


def compile_afresh(folder: Path) -> None:
    """Give torch.compile a cache of this run's own: what another run compiled would be taken for fast."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder)


def seed_everything(seed: int, threads: int | str) -> None:
    """Seeds of every generator in use, and the CPU threads where the study names them."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    if isinstance(threads, int):
        torch.set_num_threads(threads)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, on the device or on the host."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    text = str(error)
    return isinstance(error, (RuntimeError, OSError)) and any(
        sign in text for sign in ("out of memory", "not enough memory", "Cannot allocate memory")
    )


def main(job_file: str, scratch: str) -> None:
    """Execute the job file, and leave the result in ``scratch`` in one piece."""
    job = Job.model_validate_json(Path(job_file).read_text(encoding="utf-8"))
    compile_afresh(Path(scratch) / "compiled")
    with sampling(Path(scratch) / TELEMETRY, job.run.settings.device):
        result = execute(job)
    _leave(result, Path(scratch) / RESULT)
    if job.ceilings and result.outcome != "unavailable":
        # After the result is safe: what goes wrong here costs the ceilings and nothing else.
        ceilings = measure_ceilings(torch.device(job.run.settings.device), job.run.settings.training.precision)
        _leave(ceilings, Path(scratch) / CEILINGS)


def _leave(value: Strict, path: Path) -> None:
    """Write the file in one piece."""
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(json.dumps(value.model_dump(mode="json"), allow_nan=False), encoding="utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
