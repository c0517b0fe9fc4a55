"""The configuration of a start: ``config/config.yaml``, with what the command line sets; and the
verb ``start``, which brings torch where it lacks, and runs Snakemake in this process, with our
words on the terminal."""

import io
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from study.artifacts.plan import flow
from study.base import complete_user, devices, strict_yaml
from study.base.environment import ALL, check_installed_torch, own
from study.base.errors import StudyError, say
from study.base.files import ROOT, replications
from study.config.load import ENDING, read_selection, read_study
from study.host.engine.engine_choice import choose_engine

if TYPE_CHECKING:
    from snakemake.settings.types import ConfigSettings

DRY_RUN = {"-n", "--dry-run", "--dryrun"}
PLUGIN = "study"
"""Name of our logger plugin, ``snakemake_logger_plugin_study``."""


def in_use(name: str) -> Path:
    """Return a file or folder of ``config``: that of the folder where a start is made, or else the
    checkout's."""
    here = Path.cwd() / "config" / name
    return here if here.exists() else ROOT / "config" / name


def study_folders() -> list[Path]:
    """Return the folders in which a study's file is looked up, in this order.

    These are ``config/studies``, and those of each replication: of the folder where a start is
    made, then of the checkout.
    """
    return [in_use("studies"), *(folder / "studies" for folder in replications().values())]


def of_one_study(
    study: str, overrides: Sequence[str], named: list[str] | None, reduced: bool
) -> dict[str, Any]:
    """Return the configuration that selects ``study`` alone, on the devices that are ``named``.
    ``overrides`` are texts ``KEY=VALUE``."""
    given = {}
    for item in overrides:
        key, equals, value = item.partition("=")
        if not equals:
            raise StudyError(key="--set", value=item, allowed="key=value")
        given[key] = value
    config = strict_yaml.read_mapping(in_use("config.yaml")) | {"studies": [study]}
    if given:
        config["overrides"] = (config.get("overrides") or {}) | given
    if named:
        config["devices"] = named
    if reduced:
        config["size"] = "reduced"
    return config


def parsed(arguments: Sequence[str]) -> tuple[Any, Any]:
    """Return Snakemake's parser and the options in ``arguments``, with what its profiles add.

    What Snakemake says of its profiles is not shown. Raise :class:`StudyError` if it refuses the
    arguments. Exit without one if it would only print something, such as its help.
    """
    complete_user()
    from snakemake.cli import parse_args

    said = io.StringIO()
    with _refusals():
        try:
            with redirect_stderr(said):
                parser, options = parse_args(list(arguments))
        except SystemExit as end:
            if end.code:
                # with arguments alone it refuses them before it says this
                read = re.findall("^Using (.*) for setting default", said.getvalue(), re.MULTILINE)
                why = "; read from: ".join([_last_line(said.getvalue()), *read])
                raise StudyError(f"snakemake: {why}") from None
            raise
        given(options)
        if options.directory and not options.directory.is_dir() and options.directory.exists():
            raise StudyError(f"snakemake: {options.directory}: not a directory")
    return parser, options


def as_snakemake_reads_it(arguments: Sequence[str], config: Path | None = None) -> dict[str, Any]:
    """Return the configuration of ``snakemake <arguments>``: its profiles, ``--configfile`` and
    ``--config`` count.

    ``config`` is the file that the Snakefile names. Raise :class:`StudyError` if Snakemake would
    refuse the arguments.
    """
    from snakemake.common.configfile import load_configfile
    from snakemake.utils import update_config

    with redirect_stdout(io.StringIO()):  # its answer goes to a shell's variable
        _, options = parsed(arguments)
    with _refusals():
        values: dict[str, Any] = load_configfile(config or in_use("config.yaml"))
    set_here = given(options)
    if set_here.overwrite_config:
        if set_here.replace_workflow_config:
            values = {}
        update_config(values, set_here.overwrite_config)
    return values


def given(options: Namespace) -> "ConfigSettings":
    """Return what ``--configfile`` and ``--config`` set."""
    from snakemake.cli import parse_config
    from snakemake.settings.types import ConfigSettings

    return ConfigSettings(
        config=parse_config(options.config),
        configfiles=options.configfile,
        replace_workflow_config=options.replace_workflow_config,
    )


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise :class:`StudyError` with the words of Snakemake where it refuses its arguments, or what
    they name."""
    from snakemake.exceptions import CliException, WorkflowError

    try:
        yield
    except OSError as error:
        raise StudyError(f"snakemake: {error.filename}: {error.strerror}") from None
    except (CliException, WorkflowError, ValueError) as error:
        raise StudyError(f"snakemake: {_last_line(str(error))}") from None


def _last_line(text: str) -> str:
    """Return the last line of a message, without the program's name before it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].rpartition("error: ")[2] if lines else "the arguments are refused"


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
    selection = read_selection(as_snakemake_reads_it(arguments) | given)
    for study in selection.studies:  # what is refused is refused before a download
        read_study(study, study_folders(), selection)
    if choose_engine(selection).engine != "none":
        return
    there.install(ALL, installed_torch=(wanted or _fitting(there.maker)) == "installed")
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "study", *sys.argv[1:]])  # noqa: S606


def _fitting(maker: str) -> str:
    """Return where torch is to come from, and say why it is not the lock, or what is to be done for
    the GPU."""
    trouble = devices.unfit(devices.TorchBuild.of_lock(ALL))
    if trouble is None:
        return "lock"
    found = devices.TorchBuild.of_python(maker)
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
