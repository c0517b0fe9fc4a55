"""The logger plugin that Snakemake finds by the name of this package: ``--logger study``.

Snakemake's own words go to its log, and ours are shown: the steps say themselves what they do. Of
Snakemake its warnings are shown, each step that did not end well, and an error that no step
explains; what somebody only looks at is shown as Snakemake says it. The package ``study`` is that
of the checkout whose rules are read, and so nothing of it is imported before.
"""

import logging
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

__all__ = ["LogHandler"]


class LogHandler(LogHandlerBase):
    """Shows of what Snakemake says that which no step says itself."""

    writes_to_stream = True
    writes_to_file = False
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        """Begin without anything heard."""
        self.as_usual = self.common_settings.dryrun or self.common_settings.verbose
        self.early: list[str] = []
        """What Snakemake says before jobs are made, or in their place."""
        self.at_work = False
        self.remote = False
        """Whether an executor makes the blocks: what their jobs say is in their logs alone."""
        self.began = False
        """Whether a step began."""
        self.failed = False
        """Whether a step did not end well."""
        self.errors: list[str] = []
        self.logs: dict[int, str] = {}
        """The log of each step by the number of its job."""

    @property
    def has_filter(self) -> bool:
        """Whether all is heard: a profile may have Snakemake say less."""
        return not self.as_usual

    def emit(self, record: logging.LogRecord) -> None:
        """Show an event, or keep it until the end."""
        told = vars(record)
        event = told.get("event")
        if self.as_usual or (record.levelno >= logging.WARNING and not self.at_work):
            say(self.format(record))
        elif event == LogEvent.WORKFLOW_STARTED:
            self.at_work = True
        elif not self.at_work:
            self.early.append(self.format(record))
        else:
            self._emit_of_a_start(event, told, record)

    def _emit_of_a_start(
        self, event: str | None, told: dict[str, Any], record: logging.LogRecord
    ) -> None:
        match event:
            case LogEvent.RESOURCES_INFO:
                self.remote = self.remote or "nodes" in told
            case LogEvent.JOB_INFO:
                self.began = True
                self.logs[told["jobid"]] = next(iter(told["log"] or []), "")
                if told["rule_name"] == "plan":
                    say(told["rule_msg"] or "")
            case LogEvent.JOB_FINISHED if self.remote:
                say(last_line(self.logs.get(told["job_id"], "")))
            case LogEvent.JOB_ERROR:
                self.failed = True
                log = next(iter(told["log"] or []), "")
                last = f": {last_line(log)}" if self.remote and last_line(log) else ""
                from study.base.processes import ASKED_TO_END

                if not ASKED_TO_END.is_set():
                    say(
                        f"the step {told['rule_name']} did not end well{last}; its log: "
                        f"{log or 'none'}"
                    )
            case LogEvent.ERROR:
                self.errors.append(record.getMessage())
            case None if record.levelno >= logging.WARNING:
                # a step that failed had made nothing before
                if not record.getMessage().startswith("Cannot restore"):
                    say(record.getMessage())

    def close(self) -> None:
        """Say how it ended, where no step does."""
        if not self.at_work:
            say("\n".join(self.early))
        elif self.errors and not self.failed:
            say("\n".join(self.errors))
        elif not (self.began or self.errors):
            say("nothing is left to do: the report is up to date")
            tell_answer()
        self.early, self.at_work, self.began, self.errors = [], True, True, []
        super().close()


def say(words: str) -> None:
    """Say lines on the terminal, if there are any."""
    for line in words.splitlines():
        with suppress(OSError, ValueError):  # nobody reads what is said
            print(_escaped(line), file=sys.stderr, flush=True)


def last_line(log: str) -> str:
    """Return the last line of a step's log: how it ended. Empty without one."""
    with suppress(OSError):
        return next(
            reversed(Path(log).read_text(encoding="utf-8", errors="replace").splitlines()), ""
        )
    return ""


def _escaped(line: str) -> str:
    """Return a line without what steers a terminal: it may come from a model."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in line
    )


def tell_answer() -> None:
    """Print the answers, the report's address and the next step. A process of its own reads them:
    ``study answer``."""
    # nobody reads what is printed, or there is nowhere to print to
    with suppress(OSError, AttributeError):
        sys.stdout.flush()
    subprocess.run([sys.executable, "-m", "study", "answer"], check=False)
