"""What earlier starts prepared and this one cannot use: it is removed, so that Snakemake makes it again."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.prepared import read_manifest, read_weights
from study.artifacts.run import Run
from study.base import devices
from study.base.errors import StudyError, printable
from study.host.engine import bring
from study.host.engine.engines import engine


def forget_images(plan: Plan, files: Results) -> None:
    """Remove the description of each image that is outdated or gone."""
    for name, wanted in plan.images.items():
        path = files.image(name)
        gpu = wanted.device == "cuda" and devices.absent("cuda") is None
        if path.exists() and not bring.is_current(path, engine(plan.engine), wanted, gpu):
            path.unlink()


def forget_damaged(study: str, runs: Iterable[Run], files: Results) -> None:
    """Remove each manifest, and each decision about weights, that these runs of ``study`` are to read and cannot."""
    readers: dict[Path, Callable[[Path], object]] = {}
    for run in runs:
        readers[files.manifest(run.dataset)] = read_manifest
        readers[files.weights(study, run.weights)] = read_weights
    for path, read in readers.items():
        if path.is_file():
            try:
                read(path)
            except StudyError:
                path.unlink()
                print(printable(f"{path}: it is damaged, and is made again"), file=sys.stderr, flush=True)
