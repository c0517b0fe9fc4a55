"""The system on which this process runs, as far as it decides what a user has to know."""

import os
import platform
from pathlib import Path

HOSTED = {"COLAB_RELEASE_TAG": "Colab", "KAGGLE_KERNEL_RUN_TYPE": "Kaggle"}
"""Variables that hosted notebooks set, and whose they are."""
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the place where processes share memory


def surroundings() -> str | None:
    """Return what this system runs in, where that matters: WSL2, Colab or Kaggle; None elsewhere."""
    if "microsoft" in platform.release().lower():
        return "WSL2"
    return next((name for variable, name in HOSTED.items() if variable in os.environ), None)


def system_name() -> str:
    """Return the system, the machine's type and what both run in, such as ``Linux x86_64 (WSL2)``."""
    inside = surroundings()
    return f"{platform.system()} {platform.machine()}" + (f" ({inside})" if inside else "")
