"""What Snakemake says and does for a start: its words on the terminal, and Ctrl-C.

The terminal is ours: Snakemake's own words go to its log, and only its warnings and errors are shown. Ctrl-C and
SIGTERM end the steps at once: Snakemake alone would wait for the run that is at work.
"""

import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import psutil
from snakemake_interface_logger_plugins.common import LogEvent

from study.base.errors import INTERRUPTED
from study.host.plan.configuration import parsed

NOTHING = "Nothing to be done"
"""How Snakemake begins to say that no job is left."""


SAID = ("RuleException:\nCalledProcessError", "WorkflowError:\nAt least one job did not complete")
"""How Snakemake begins to say that a step failed. The step itself has said why, and the end of the start says it."""


class _Alarms(logging.Filter):
    """Passes warnings, errors, and what ``--report`` says."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.WARNING:
            return not str(record.msg).startswith(SAID)
        return Path(record.pathname).parent.name == "report"


class _Nothing(logging.Handler):
    """Calls a function when Snakemake says that nothing is to be done: no hook of a workflow is called then."""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__()
        self.call = call

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg).startswith(NOTHING):
            self.call()


class _Ended(logging.Handler):
    """Calls a function with the wildcards of each job of a rule that ended well."""

    def __init__(self, rule: str, call: Callable[..., None]) -> None:
        super().__init__()
        self.rule, self.call = rule, call
        self.begun: dict[int, dict[str, str]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        event, told = getattr(record, "event", None), vars(record)
        if event == LogEvent.JOB_INFO and told["rule_name"] == self.rule:
            self.begun[told["jobid"]] = told["wildcards"]
        elif event == LogEvent.JOB_FINISHED and told["job_id"] in self.begun:
            self.call(**self.begun.pop(told["job_id"]))


def quieten(nothing_to_do: Callable[[], None], run_ended: Callable[..., None], rule: str = "measure") -> None:
    """Show only the warnings and errors of Snakemake on the terminal from now on, and write everything to its log.

    ``nothing_to_do`` is called if Snakemake finds nothing to do, and ``run_ended`` with the study, the name and the key
    of each run whose job ended: a job of ``rule``, which a user's Snakefile may have renamed.
    """
    logger = logging.getLogger("snakemake.logging")
    for handler in logger.handlers:
        if isinstance(handler, logging.FileHandler):
            parts: list[Any] = [*handler.filters, handler.formatter]
            for part in parts:
                part.quiet = set()  # not the profile's, which is for the terminal
        else:
            handler.addFilter(_Alarms())
    logger.addHandler(_Nothing(nothing_to_do))
    logger.addHandler(_Ended(rule, run_ended))


def snakemake(arguments: Sequence[str]) -> int:
    """Run Snakemake with ``arguments`` in this process, without its line about the profile; return the exit code.

    Raise :class:`StudyError` if Snakemake refuses the arguments.
    """
    from snakemake.cli import args_to_api

    parser, options = parsed(arguments)
    return 0 if args_to_api(options, parser) else 1


def tell_answer() -> None:
    """Print the answers, the report's address and the next step. A process of its own reads them: ``study answer``."""
    with suppress(OSError, AttributeError):  # nobody reads what is printed, or there is nowhere to print to
        sys.stdout.flush()
    subprocess.run([sys.executable, "-m", "study", "answer"], check=False)


PATIENCE_SECONDS = 2.0
"""Seconds after Ctrl-C until a step is told to end: a terminal has sent Ctrl-C to the steps, too."""


def say_it_in_a_sentence() -> None:
    """Let Ctrl-C, where nothing handles it, end this process with a sentence in the place of a traceback."""
    usual = sys.excepthook

    def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            print(INTERRUPTED, file=sys.stderr, flush=True)
        else:
            usual(kind, error, trace)

    sys.excepthook = tell


def end_steps_at_once() -> None:
    """From now on hand SIGTERM, and after a while Ctrl-C, on to the steps. Snakemake's own handlers follow."""
    for number, seconds in ((signal.SIGTERM, 0.0), (signal.SIGINT, PATIENCE_SECONDS)):
        signal.signal(number, _handing_on(seconds, signal.getsignal(number)))


def _handing_on(
    seconds: float, usual: "Callable[[int, FrameType | None], object] | int | None"
) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        timer = threading.Timer(seconds, _end_steps)
        timer.daemon = True
        timer.start()
        if not callable(usual):
            return
        if number == signal.SIGTERM:
            # Snakemake's handler waits for a lock that the code which is interrupted here may hold.
            threading.Thread(target=usual, args=(number, None), daemon=True).start()
        else:
            usual(number, frame)

    return handle


def _end_steps() -> None:
    """Send SIGTERM to each step: it ends its own processes, and leaves nothing."""
    for child in psutil.Process().children():
        child.terminate()
