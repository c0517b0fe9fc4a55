"""A start on the terminal, ``study start``: Snakemake's own words go to its log, and ours are
shown.

A logger plugin, registered in this process alone, takes the place of Snakemake's words on the
terminal: the steps say there themselves what they do. Of Snakemake its warnings are shown, each
step that did not end well, and an error that no step explains.
"""

import logging
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from study.artifacts.plan import flow
from study.base.errors import printable
from study.base.files import ROOT
from study.base.processes import ASKED_TO_END
from study.config.load import ENDING
from study.host.plan.configuration import parsed

PLUGIN = "study"
"""Name of our logger plugin."""


@dataclass
class Course:
    """What Snakemake has told of a start."""

    remote: bool = False
    """Whether an executor makes the blocks: what their jobs say is in their logs alone."""
    began: bool = False
    """Whether a step began."""
    failed: bool = False
    """Whether a step did not end well."""
    errors: list[str] = field(default_factory=list)
    """What Snakemake says of its own errors."""
    logs: dict[int, str] = field(default_factory=dict)
    """The log of each step by the number of its job."""


COURSE = Course()
"""That of the one start of this process: Snakemake makes the handler itself."""


class LogHandler(LogHandlerBase):
    """Shows of what Snakemake says that which no step says itself."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def emit(self, record: logging.LogRecord) -> None:
        """Show an event, or keep it until the end."""
        told = vars(record)
        match told.get("event"):
            case LogEvent.JOB_INFO:
                COURSE.began = True
                COURSE.logs[told["jobid"]] = next(iter(told["log"] or []), "")
            case LogEvent.JOB_FINISHED if COURSE.remote:
                say(last_line(COURSE.logs.get(told["job_id"], "")))
            case LogEvent.JOB_ERROR:
                COURSE.failed = True
                log = next(iter(told["log"] or []), "")
                last = f": {last_line(log)}" if COURSE.remote and last_line(log) else ""
                if not ASKED_TO_END.is_set():
                    say(
                        f"the step {told['rule_name']} did not end well{last}; its log: "
                        f"{log or 'none'}"
                    )
            case LogEvent.ERROR:
                COURSE.errors.append(record.getMessage())
            case None if record.levelno >= logging.WARNING:
                say(record.getMessage())


def say(words: str) -> None:
    """Say lines on the terminal, if there are any."""
    for line in words.splitlines():
        with suppress(OSError, ValueError):  # nobody reads what is said
            print(printable(line), file=sys.stderr, flush=True)


def last_line(log: str) -> str:
    """Return the last line of a step's log: how it ended. Empty without one."""
    with suppress(OSError):
        return next(
            reversed(Path(log).read_text(encoding="utf-8", errors="replace").splitlines()), ""
        )
    return ""


def snakemake(arguments: Sequence[str], studies: Sequence[str] = ()) -> int:
    """Run Snakemake with ``arguments`` in this process, with our words on the terminal; return the
    exit code.

    ``studies`` are names, or paths of files; without one, those of the configuration. The workflow
    is that of the current folder, if its Snakefile names ours, or else ours, and the number of
    cores is one where nothing says it. A dry run, a lint or a report of Snakemake's is asked for
    Snakemake's own words. Raise :class:`StudyError` if Snakemake refuses the arguments.
    """
    from snakemake.api import resolve_snakefile
    from snakemake.cli import args_to_api
    from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

    LoggerPluginRegistry().register_plugin(PLUGIN, sys.modules[__name__])
    found = resolve_snakefile(None, allow_missing=True)
    if found is None or "study" not in found.read_text(encoding="utf-8", errors="replace"):
        # the profile in place of another workflow's, which this folder may have; a later one counts
        ours = ["--snakefile", str(ROOT / "Snakefile")]
        ours += ["--workflow-profile", str(ROOT / "profiles" / "default")]
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
    if options.dryrun or options.lint or options.report or options.verbose:
        return 0 if args_to_api(options, parser) else 1
    options.logger = [*options.logger, PLUGIN]
    COURSE.remote = options.executor not in (None, "local", "dryrun", "touch")
    good = bool(args_to_api(options, parser))
    if not good and not COURSE.failed:
        say("\n".join(COURSE.errors))
    asked_for_less = (
        options.targets or options.until or options.unlock or options.summary or options.dag
    )
    if good and not COURSE.began and not asked_for_less:
        say("nothing is left to do: the report is up to date")
        tell_answer()
    return 0 if good else 1


def tell_answer() -> None:
    """Print the answers, the report's address and the next step. A process of its own reads them:
    ``study answer``."""
    # nobody reads what is printed, or there is nowhere to print to
    with suppress(OSError, AttributeError):
        sys.stdout.flush()
    subprocess.run([sys.executable, "-m", "study", "answer"], check=False)
