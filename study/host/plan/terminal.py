"""``study start``: Snakemake in this process, with our words on the terminal."""

from collections.abc import Sequence
from pathlib import Path

from study.artifacts.plan import flow
from study.base.files import ROOT
from study.config.load import ENDING
from study.host.plan.configuration import parsed

PLUGIN = "study"
"""Name of our logger plugin, ``snakemake_logger_plugin_study``."""


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
    parser, options = parsed(arguments)
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
