"""What a run's key is made of: everything known before it starts that could change its result."""

import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from study.config import Dataset, Settings

PACKAGE = Path(__file__).parent
ROOT = PACKAGE.parent

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


def digest(value: Any) -> str:
    """Eight hex digits of the SHA-256 of ``value`` as canonical JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:8]


def file_sha256(path: Path) -> str:
    """SHA-256 of the file's content, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def installed_lock_sha256() -> str:
    """The lock that this environment was installed from: an image of ours says so itself, and may be older."""
    told = Path(sys.prefix) / "requirements.lock.sha256"
    return told.read_text(encoding="ascii").split()[0] if told.is_file() else file_sha256(ROOT / "requirements.lock")


def code_sha256(files: Iterable[str]) -> str:
    """SHA-256 over the named files of the package, names and contents."""
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(name.encode() + b"\0" + (PACKAGE / name).read_bytes() + b"\0")
    return total.hexdigest()


def stat_of(path: Path) -> list[Any]:
    """Name, size in bytes and modification time of a file: cheap enough to look at on every start."""
    status = path.stat()
    return [path.name, status.st_size, status.st_mtime_ns]


def dataset_identity(dataset: Dataset, listing: list[list[Any]] | None) -> dict[str, Any]:
    """What decides a dataset's manifest: the keys that its source uses, its drawing code or its files.

    ``listing`` holds name, size and time of every file that a user gave, or what a search's manifest lists.
    """
    source = dataset.source
    if source == "generated":
        keys: tuple[str, ...] = ("classes", "images", "valid_fraction", "seed")
        if not dataset.photographs:
            keys += ("channels", "image_size")
        code = code_sha256(["data/generated.py", "data/manifest.py"])
        return {"source": source, "code": code} | {key: getattr(dataset, key) for key in keys}
    if source == "folder":
        return {
            "source": source,
            "valid_fraction": dataset.valid_fraction,
            "seed": dataset.seed,
            "files": listing,
            "code": code_sha256(["data/folder.py", "data/manifest.py"]),
        }
    if source == "search":
        # No code: what was found is kept, and an edit of ours is no reason to search again and find something else.
        asked = {"terms": list((dataset.terms or {}).items()), "images": dataset.images}
        return {"source": source, "max_size": dataset.max_size} | {
            "valid_fraction": dataset.valid_fraction,
            "seed": dataset.seed,
            **({"pictures": listing} if listing is not None else asked),
        }
    code = code_sha256(["data/torchvision_sets.py", "data/manifest.py"])
    return {"source": source, "files": listing, "code": code}


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
