"""What a run's key is made of: everything known before it starts that could change its result."""

import sys
from pathlib import Path
from typing import Any

from study.base.files import ROOT, code_sha256, file_sha256
from study.config.settings import Settings

# Only what a run executes between its start and its last sample: an edit elsewhere measures nothing again.
MEASURED = (
    "cpus.py",
    "job.py",
    "models.py",
    "networks.py",
    "training.py",
    "data/manifest.py",
    "data/images.py",
    "data/loaders.py",
    "data/sharding.py",
    "measure/arithmetic.py",
    "measure/clock.py",
    "measure/memory.py",
    "measure/samples.py",
    "measure/telemetry.py",
    "measure/yardstick.py",
    "train/count.py",
    "train/replicas.py",
    "train/schedule.py",
)
FASTAI = ("train/fastai_replicas.py",)
DISTRIBUTED = ("agent.py", "rank.py", "train/distributed.py")


def installed_lock_sha256() -> str:
    """The lock that this environment was installed from: an image of ours says so itself, and may be older."""
    told = Path(sys.prefix) / "requirements.lock.sha256"
    return told.read_text(encoding="ascii").split()[0] if told.is_file() else file_sha256(ROOT / "requirements.lock")


INFERENCE = ("train/torch_loop.py", "train/inference.py", "train/onnx_runtime.py")
"""Where a network is trained and then asked."""


def loop_files(settings: Settings) -> list[str]:
    """The modules that a run's training, and its inference, are in, and that start it where many processes train."""
    if settings.task == "inference":
        return list(INFERENCE)
    loop = "train/loader_alone.py" if settings.loader.kind == "alone" else f"train/{settings.training.loop}_loop.py"
    together = settings.training.strategy != "single"
    return [loop, *(DISTRIBUTED if together else ()), *FASTAI * (settings.training.loop == "fastai")]


def run_identity(
    settings: Settings, dataset_id: str, weights_id: str, engine: str, image: str | None
) -> dict[str, Any]:
    """What decides one run: its settings, its data, its weights, the measured code, the lock, engine and image."""
    values = settings.model_dump()
    del values["limits"]["timeout_seconds"]  # ends a run, and changes none that it does not end
    if settings.task == "training":
        del values["inference"]
    values["dataset"] = {
        "id": dataset_id,
        "image_size": settings.dataset.image_size,
        "channels": settings.dataset.channels,
    }
    values["model"]["weights"] = weights_id
    return {
        "settings": values,
        "code": code_sha256([*MEASURED, *loop_files(settings)]),
        "lock": installed_lock_sha256(),
        "engine": engine,
        "image": image,
    }
