"""``study start``: torch, where a start lacks it, and Snakemake in this process, with our words on
the terminal."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from study.artifacts.plan import flow
from study.base import devices
from study.base.devices import TorchBuild
from study.base.environment import ALL, check_installed_torch, own
from study.base.errors import say
from study.base.files import ROOT
from study.config.load import ENDING, read_selection, read_study
from study.host.engine.engine_choice import choose_engine
from study.host.plan import configuration

PLUGIN = "study"
"""Name of our logger plugin, ``snakemake_logger_plugin_study``."""


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
    if configuration.DRY_RUN & {*arguments}:
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


def snakemake(arguments: Sequence[str], studies: Sequence[str] = ()) -> int:
    """Run Snakemake with ``arguments`` in this process, with our words on the terminal; return the
    exit code.

    ``studies`` are names, or paths of files; without one, those of the configuration. The workflow
    is that of the current folder, if its Snakefile names ours, or else ours, and the number of
    cores is one where nothing says it. Raise :class:`StudyError` if Snakemake refuses the
    arguments.
    """
    from snakemake.api import resolve_snakefile
    from snakemake.cli import args_to_api
    from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

    found = resolve_snakefile(None, allow_missing=True)
    if found is None or "study" not in found.read_text(encoding="utf-8", errors="replace"):
        # the profile in place of another workflow's, which this folder may have; a later one counts
        ours = ["--snakefile", str(ROOT / "workflow" / "Snakefile")]
        ours += ["--workflow-profile", str(ROOT / "workflow" / "profiles" / "default")]
        arguments = [*ours, *arguments]
    parser, options = configuration.parsed(arguments)
    if studies:  # --directory changes the folder before the files are read
        called = [
            str(Path(one).absolute()) if options.directory and one.endswith(ENDING) else one
            for one in studies
        ]
        options.config = [*(options.config or []), f"studies={flow(called)}"]
    if options.cores is None and options.jobs is None and options.executor in (None, "local"):
        options.cores = 1
    # Snakemake's limit of jobs in a second looks at all of them each second, beside the run that is
    # measured.
    options.max_jobs_per_timespan = None
    if LoggerPluginRegistry().is_installed(PLUGIN):
        options.logger = [*{*options.logger, PLUGIN}]
    return 0 if args_to_api(options, parser) else 1
