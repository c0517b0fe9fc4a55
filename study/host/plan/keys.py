"""The parts of a run's key: everything that is known before the run starts and could change its result."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from study.base.files import PACKAGE
from study.base.imports import distributions, outside, versions
from study.config import own_model
from study.config.settings import Settings, decisive, loops
from study.data.sources import source_of

COMMON = ("training/*.py", "training/instruments/*.py", "training/models/*.py", "training/loops/*.py", "data/decode.py")
"""The part of the training side that every run executes, and the decoder of its images."""


def measured_code(settings: Settings) -> list[str]:
    """Return the globs of the code that a run executes between its start and its last sample.

    That is the training side, ``study/training``, without the loops that the run does not enter: each is a folder
    below ``training/loops``. ``training/distributed`` counts where several processes train.
    """
    together = ["training/distributed/*.py"] if settings.training.strategy != "single" else []
    return [*COMMON, *(f"training/loops/{loop}/*.py" for loop in loops(settings)), *together]


def imported_modules(settings: Settings) -> list[str]:
    """Return the top modules from elsewhere that the measured code of a run imports, its images and its model.

    What only some runs import counts where the settings ask for it.
    """
    files = {file for pattern in measured_code(settings) for file in PACKAGE.glob(pattern)}
    left_out = {"study", *(() if "torchcodec" in settings.loader.decoder else ("torchcodec",))}
    of_the_images = source_of(settings.dataset).packages
    return sorted({*outside(files), *of_the_images, *own_model.packages(settings.model.name, Path())} - left_out)


def installed(modules: list[str]) -> dict[str, str]:
    """Return the versions, as installed here, of the packages of these modules and of all that these ask for."""
    return versions(distributions(modules))


def run_identity(
    settings: Settings,
    dataset_id: str,
    weights_id: str,
    code: str,
    packages: Mapping[str, str],
    engine: str,
    image: str | None,
) -> dict[str, Any]:
    """Return all that decides one run: its settings, data and weights, the measured code, packages, engine and image.

    ``code`` is the SHA-256 of :func:`measured_code`. ``packages`` are the versions on the host; the ``image`` stands
    for those in it.
    """
    values = decisive(settings)
    values["dataset"]["id"] = dataset_id
    values["model"]["weights"] = weights_id
    return {
        "settings": values,
        "code": code,
        "packages": dict(packages),
        "engine": engine,
        "image": image,
    }
