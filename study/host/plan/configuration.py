"""The configuration of a start: ``config/config.yaml``, with what the command line sets."""

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from study.base import strict_yaml
from study.base.errors import StudyError
from study.base.files import ROOT

CONFIG = ROOT / "config" / "config.yaml"
STUDIES = ROOT / "config" / "studies"


def of_one_study(study: str, overrides: Sequence[str], devices: list[str] | None, reduced: bool) -> dict[str, Any]:
    """Return the configuration that selects ``study`` alone. ``overrides`` are texts ``KEY=VALUE``."""
    given = {}
    for item in overrides:
        key, equals, value = item.partition("=")
        if not equals:
            raise StudyError(f"--set: {item!r} is not allowed: give key=value")
        given[key] = value
    config = strict_yaml.read_mapping(CONFIG) | {"studies": [study]}
    if given:
        config["overrides"] = (config.get("overrides") or {}) | given
    if devices:
        config["devices"] = devices
    if reduced:
        config["size"] = "reduced"
    return config


def parsed(arguments: Sequence[str]) -> tuple[Any, Any]:
    """Return Snakemake's parser and the options in ``arguments``, with what its profiles add.

    What Snakemake says of its profiles is not shown. Raise :class:`StudyError` if it refuses the arguments. Exit
    without one if it would only print something, such as its help.
    """
    from snakemake.cli import parse_args
    from snakemake.exceptions import CliException

    said = io.StringIO()
    try:
        with redirect_stderr(said):
            parser, options = parse_args(list(arguments))
    except SystemExit as end:
        if end.code:
            raise StudyError(f"snakemake: {_last_line(said.getvalue())}") from None
        raise
    except OSError as error:
        raise StudyError(f"snakemake: {error.filename}: {error.strerror}") from None
    except (CliException, ValueError) as error:
        raise StudyError(f"snakemake: {_last_line(str(error))}") from None
    return parser, options


def as_snakemake_reads_it(arguments: Sequence[str], config: Path = CONFIG) -> dict[str, Any]:
    """Return the configuration of ``snakemake <arguments>``: its profiles, ``--configfile`` and ``--config`` count.

    ``config`` is the file that the Snakefile names. Raise :class:`StudyError` if Snakemake would refuse the arguments.
    """
    from snakemake.cli import parse_config
    from snakemake.common.configfile import load_configfile
    from snakemake.exceptions import CliException, WorkflowError
    from snakemake.settings.types import ConfigSettings
    from snakemake.utils import update_config

    with redirect_stdout(io.StringIO()):  # its answer goes to a shell's variable
        _, options = parsed(arguments)
    try:
        given = ConfigSettings(
            config=parse_config(options.config),
            configfiles=options.configfile,
            replace_workflow_config=options.replace_workflow_config,
        )
        values: dict[str, Any] = load_configfile(config)
    except OSError as error:
        raise StudyError(f"snakemake: {error.filename}: {error.strerror}") from None
    except (CliException, WorkflowError, ValueError) as error:
        raise StudyError(f"snakemake: {_last_line(str(error))}") from None
    if given.overwrite_config:
        if given.replace_workflow_config:
            values = {}
        update_config(values, given.overwrite_config)
    return values


def _last_line(text: str) -> str:
    """Return the last line of a message, without the program's name before it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].rpartition("error: ")[2] if lines else "the arguments are refused"
