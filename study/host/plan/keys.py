"""The parts of a run's key: everything that is known before the run starts and could change its result."""

import sys
from pathlib import Path
from typing import Any

from study.base import checkout
from study.base.files import file_sha256
from study.config.settings import Settings, decisive, loops

COMMON = ("training/*.py", "training/measure/*.py", "training/models/*.py", "training/loops/*.py", "data/decode.py")
"""The part of the training side that every run executes, and the decoder of its images."""


def installed_lock_sha256() -> str:
    """Return the SHA-256 of the lock from which this environment was installed.

    An image of this project holds the checksum of its own lock, which may be older than the repository's.
    """
    told = Path(sys.prefix) / "requirements.lock.sha256"
    if told.is_file():
        return told.read_text(encoding="ascii").split()[0]
    return file_sha256(checkout.root() / "requirements.lock")


def measured_code(settings: Settings) -> list[str]:
    """Return the globs of the code that a run executes between its start and its last sample.

    That is the training side, ``study/training``, without the loops that the run does not enter: each is a folder
    below ``training/loops``. ``training/distributed`` counts where several processes train.
    """
    together = ["training/distributed/*.py"] if settings.training.strategy != "single" else []
    return [*COMMON, *(f"training/loops/{loop}/*.py" for loop in loops(settings)), *together]


def run_identity(
    settings: Settings, dataset_id: str, weights_id: str, code: str, lock: str, engine: str, image: str | None
) -> dict[str, Any]:
    """Return all that decides one run: its settings, data and weights, the measured code, lock, engine and image.

    ``code`` is the SHA-256 of :func:`measured_code`, and ``lock`` that of the lock.
    """
    values = decisive(settings)
    values["dataset"]["id"] = dataset_id
    values["model"]["weights"] = weights_id
    return {
        "settings": values,
        "code": code,
        "lock": lock,
        "engine": engine,
        "image": image,
    }
