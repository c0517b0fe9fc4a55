"""What must hold on this machine before a run starts, and which of its limits a run may reach.

What was prepared and cannot be used is made again.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path

import psutil

from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.prepared import Manifest, Weights
from study.artifacts.run import Run
from study.base import devices
from study.base.devices import SHARED_MEMORY, surroundings, usable_cpus
from study.base.errors import StudyError
from study.host import packages
from study.host.engine import bring
from study.host.engine.container import loader_bytes
from study.host.engine.engine_choice import engine


def check_images(plans: list[Plan]) -> None:
    """Raise :class:`StudyError` if an executor's machines cannot have the image of a run.

    An image that is built is in the store of the machine where it is built.
    """
    for plan in plans:
        used = {run.image: run.settings for run in plan.runs if run.image in plan.images}
        for name, settings in used.items():
            wanted = plan.images[name]
            key = f"images.{settings.device}" if settings.image is None else "image"
            if wanted.kind == "built":
                raise StudyError(
                    source=f"study {plan.name}",
                    key=key,
                    value=settings.image,
                    context="with an executor",
                    why="its machines lack what is built here",
                    allowed="an archive, a reference",
                )
            if trouble := engine(plan.engine).image_trouble(wanted):
                raise StudyError(source=f"study {plan.name}", key=key, why=str(trouble))


def check_limits(plans: list[Plan], on_other_machines: bool = False) -> None:
    """Raise :class:`StudyError` if a limit of any run cannot be enforced on this machine.

    How many CPUs the machines have that an executor makes runs on, ``on_other_machines``, is not
    known.
    """
    usable = None if on_other_machines else usable_cpus()
    for plan in plans:
        refused = partial(StudyError, source=f"study {plan.name}")
        for run in plan.runs:
            limits = run.settings.limits
            if limits.memory_gib is not None and plan.engine == "none":
                why = f"it cannot enforce it ({plan.engine_reason}), and a container engine can"
                raise refused(
                    key="limits.memory_gib", value=limits.memory_gib, context="on the host", why=why
                )
            if (
                limits.cpus
                and usable
                and (limits.cpus > usable or not hasattr(os, "sched_setaffinity"))
            ):
                raise refused(
                    key="limits.cpus", value=limits.cpus, why=f"this machine offers {usable}"
                )


def outdated_preparation(plan: Plan, runs: Sequence[Run], files: Results) -> Iterator[Path]:
    """Yield what these runs of ``plan`` need and cannot use: what describes an image or an
    environment that is outdated or gone, and each manifest and decision about weights that cannot
    be read."""
    for name in plan.images.keys() & {run.image for run in runs}:
        path = files.image(name)
        wanted = plan.images[name]
        gpu = wanted.device == "cuda" and devices.absent("cuda") is None
        if path.exists() and not bring.is_current(path, engine(plan.engine), wanted, gpu):
            yield path
    for name in plan.environments.keys() & {run.environment for run in runs}:
        if not packages.is_current(name, files):
            yield files.environment(name)
    readers: dict[Path, Callable[[Path], object]] = {}
    for dataset in {run.dataset for run in runs if run.dataset}:
        readers[files.manifest(dataset)] = Manifest.read
    for weights in {run.weights for run in runs if run.weights}:
        readers[files.weights(plan.name, weights)] = Weights.read
    for path, read in readers.items():
        if path.is_file():
            try:
                read(path)
            except StudyError:
                yield path


MIB, GIB = 2**20, 2**30
CURE = (
    "a worker without room ends with a bus error. Make it larger (mount -o remount,size=2G "
    "/dev/shm; docker run --shm-size 2g), or take fewer loader.workers, or loader.kind threads"
)


def warnings(plans: Sequence[Plan]) -> Iterator[str]:
    """Yield a line for each limit that runs on the host may reach."""
    here = chain.from_iterable(plan.runs for plan in plans if plan.engine == "none")
    runs = [run for run in here if not run.unavailable]
    if runs and surroundings() == "WSL2":
        memory = psutil.virtual_memory().total / GIB
        yield (
            f"WSL2: Windows lends {memory:.0f} GiB of memory, and the GPU's spills into it. Near a "
            "limit runs grow slow without an error: keep clear of both (memory= in .wslconfig)"
        )
    needs = [
        (loader_bytes(run.settings, run.settings.limits.cpus or usable_cpus()), run.name)
        for run in runs
    ]
    with suppress(OSError):  # a system without it
        free = shutil.disk_usage(SHARED_MEMORY).free
        size, name = max(needs, default=(0, ""))
        if size > free:
            yield (
                f"{SHARED_MEMORY} has {free / MIB:.0f} MiB free, and the loader's workers of "
                f"{name} may need {size / MIB:.0f} MiB: {CURE}"
            )
