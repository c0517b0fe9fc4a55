"""The configuration of a start: ``config/config.yaml``, with what the command line sets."""

import io
import re
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from study.base import complete_user, strict_yaml
from study.base.errors import StudyError
from study.base.files import ROOT, replications

if TYPE_CHECKING:
    from snakemake.settings.types import ConfigSettings

DRY_RUN = {"-n", "--dry-run", "--dryrun"}


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
    study: str, overrides: Sequence[str], devices: list[str] | None, reduced: bool
) -> dict[str, Any]:
    """Return the configuration that selects ``study`` alone. ``overrides`` are texts
    ``KEY=VALUE``."""
    given = {}
    for item in overrides:
        key, equals, value = item.partition("=")
        if not equals:
            raise StudyError(key="--set", value=item, allowed="key=value")
        given[key] = value
    config = strict_yaml.read_mapping(in_use("config.yaml")) | {"studies": [study]}
    if given:
        config["overrides"] = (config.get("overrides") or {}) | given
    if devices:
        config["devices"] = devices
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
