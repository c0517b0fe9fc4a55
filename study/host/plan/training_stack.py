"""The training stack on the host, torch above all: whether it is there, which one serves, and its
installation."""

import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from study.artifacts.plan import Plan
from study.base import devices
from study.base.environment import ALL, check_installed_torch, own
from study.base.errors import StudyError, say
from study.base.files import INSTALLED, ROOT
from study.base.torch_build import OLDEST, TorchBuild
from study.config.load import read_selection, read_study
from study.config.settings import Settings
from study.data import sources
from study.host.engine.engine_choice import choose_engine
from study.host.plan import configuration
from study.host.plan.make import ON_A_CPU_ALONE

DRY_RUN = {"-n", "--dry-run", "--dryrun"}


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
    if settings.task == "training" and settings.training.loop == "fastai":
        yield "fastai"
    if settings.task == "inference" and settings.inference.precision in ON_A_CPU_ALONE:
        yield from ("onnx", "onnxruntime", "onnxscript")
    if settings.loader.decoder == "torchcodec":
        yield "torchcodec"
    if settings.model.weights.endswith(".safetensors"):
        yield "safetensors"


def bring_training_stack(
    arguments: Sequence[str], studies: Sequence[str], wanted: str | None
) -> None:
    """Install torch in the checkout's environment, where a start of this process would execute on
    the host without it.

    The start then begins anew. ``wanted`` is `lock`, `installed` (the torch of the Python that made
    the environment) or None: the lock's, or the installed one where only that can use the GPU.
    Raise :class:`StudyError` if there is no such torch. Another environment than the checkout's is
    its maker's own.
    """
    there = own()
    if Path(sys.prefix).resolve() != there.folder.resolve():
        if wanted == "installed":
            check_installed_torch(sys.executable)
        return
    if there.holds(ALL) and (
        wanted is None or (wanted == "installed") == there.takes_installed_torch
    ):
        return
    if DRY_RUN & {*arguments}:
        return
    given = {"studies": [*studies]} if studies else {}
    selection = read_selection(configuration.as_snakemake_reads_it(arguments) | given)
    for study in selection.studies:  # what is refused is refused before a download
        read_study(study, configuration.study_folders(), selection)
    if choose_engine(selection).engine != "none":
        return
    there.install(ALL, installed_torch=(wanted or _fitting(there.maker)) == "installed")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "study", *sys.argv[1:]])  # noqa: S606


def _fitting(maker: str) -> str:
    """Return where torch is to come from, and say why it is not the lock, or what is to be done for
    the GPU."""
    trouble = devices.unfit(TorchBuild.of_lock(ALL))
    if trouble is None:
        return "lock"
    found = TorchBuild.of_python(maker)
    if found and not found.is_old and devices.unfit(found) is None:
        say(f"{trouble}; the installed torch {found.version} serves, and is taken")
        return "installed"
    say(f"{trouble}; its GPU is left out")
    return "lock"
