"""What must hold on this machine before a run starts, and which of its limits a run may reach.

What was prepared and cannot be used is made again.
"""

import importlib.util
import os
import shutil
from collections.abc import Iterator, Sequence
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
from study.base.devices import OLDEST, SHARED_MEMORY, TorchBuild, surroundings, usable_cpus
from study.base.errors import StudyError
from study.base.files import INSTALLED, ROOT
from study.config.settings import Settings
from study.data import sources
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
                raise refused(
                    key="limits.memory_gib",
                    value=limits.memory_gib,
                    context="on the host",
                    why=f"it cannot enforce it ({plan.engine_reason}), and a container engine can",
                )
            if (
                limits.cpus
                and usable
                and (limits.cpus > usable or not hasattr(os, "sched_setaffinity"))
            ):
                raise refused(
                    key="limits.cpus", value=limits.cpus, why=f"this machine offers {usable}"
                )


def check_training_stack(plan: Plan) -> None:
    """Raise :class:`StudyError` if runs are to execute on a host that lacks a package which they
    import, or whose torch is too old."""
    if plan.engine != "none":
        return
    install = "pip install 'training-study[train]'" if ROOT == INSTALLED else "make env"
    runs = [run for run in plan.runs if not (run.unavailable or run.environment)]
    wanted = set().union(*(_modules(run.settings) for run in runs))
    if missing := [module for module in sorted(wanted) if importlib.util.find_spec(module) is None]:
        raise StudyError(
            f"study {plan.name}: the runs would execute on the host ({plan.engine_reason}), which "
            f"lacks {', '.join(missing)}; to install that: {install}"
        )
    build = TorchBuild.here()
    if wanted and build and build.is_old:
        raise StudyError(
            f"torch {build.version} is too old: the runs need {OLDEST} or newer; to install "
            f"it: {install}"
        )


def _modules(settings: Settings) -> Iterator[str]:
    """Yield what a run imports that the host's side does not; nothing is known of a command."""
    if settings.command:
        return
    yield from ("torch", "torchvision", *sources.source_of(settings.dataset).packages)
    if settings.training.loop == "fastai":
        yield "fastai"
    if settings.loader.decoder == "torchcodec":
        yield "torchcodec"
    if settings.model.weights.endswith(".safetensors"):
        yield "safetensors"


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
    runs = [run for run in runs if not run.settings.command]
    manifests = set(map(files.manifest, {run.dataset for run in runs}))
    names = {run.weights for run in runs}
    decisions = {files.weights(plan.name, name) for name in names}
    for path in filter(Path.is_file, manifests | decisions):
        try:
            (Manifest if path in manifests else Weights).read(path)
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
