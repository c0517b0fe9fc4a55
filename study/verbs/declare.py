"""How a verb is declared, what several verbs share, and the names of all."""

import argparse
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from study.base.errors import printable
from study.base.extras import extras_with, load_extra

Argument = tuple[tuple[str, ...], dict[str, Any]]
Call = Callable[[argparse.Namespace], str | None]


class Verb(NamedTuple):
    """One verb of the command line."""

    call: Call
    """Takes the parsed arguments, and ``tell``, which says a line on standard error and in the log.
    A text that it returns is said, too."""
    arguments: tuple[Argument, ...]

    @property
    def help(self) -> str:
        """What it does, in one sentence."""
        return self.call.__doc__ or ""


def verb(*arguments: Argument) -> Callable[[Call], Verb]:
    """Make a function a verb, with its docstring as help."""
    return partial(Verb, arguments=arguments)


def argument(*names: str, **settings: Any) -> Argument:
    """Return one argument of a verb, in the words of
    :meth:`argparse.ArgumentParser.add_argument`."""
    return names, settings


def free(text: str) -> Path:
    """Return the path of a file to be written. Refuse that of a measurement, and of what is there
    and is no file."""
    from study.artifacts.record_store import is_measurement

    if is_measurement(Path(text)):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not allowed: a measurement lies there; name another file"
        )
    with suppress(OSError):  # a name that is too long is refused where it is written
        if not text or (Path(text).exists() and not Path(text).is_file()):
            raise argparse.ArgumentTypeError(
                f"{text!r} is not allowed: it is no file; name a file to write"
            )
    return Path(text)


PLAN = argument("plan", type=Path, help="a study's plan.json")
RESULTS = argument(
    "--results",
    type=Path,
    default=Path("results"),
    metavar="FOLDER",
    help="folder of the results (default: results)",
)
LOG = argument("--log", type=free, metavar="FILE", help="file to which messages are also written")


def say(message: str, log: Path | None = None) -> None:
    """Say a message on standard error, and in the log. What steers a terminal is escaped: it may
    come from a model."""
    message = printable(message)
    print(message, file=sys.stderr, flush=True)
    if log:
        with suppress(OSError):  # the terminal has the message
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("a", encoding="utf-8") as file:
                file.write(message + "\n")


def print_lines(text: str) -> None:
    """Print lines whose words may come from a file: what steers a terminal is escaped."""
    print("\n".join(map(printable, text.split("\n"))))


def end_with_parent() -> None:
    """End this step when Snakemake is killed, now or before this call; its own processes then
    follow."""
    from study.base.fork_server import start_is_gone
    from study.base.processes import die_with_parent

    die_with_parent(signal.SIGTERM)
    if start_is_gone():
        sys.exit(128 + signal.SIGTERM)


SHOWN = ("new", "start", "plan", "report", "answer", "retry", "unbundle")
"""What a user types. The help shows these, and says what each does."""
STEPS = ("begin", "image", "environment", "dataset", "weights", "length", "measure", "analyse")
"""What the workflow calls."""
EXTRAS = extras_with("verbs")
"""What lies beside the core: each extra offers the verb of its name. The help names these."""
VERBS = (*SHOWN, *STEPS, *EXTRAS)


def load(name: str) -> Verb:
    """Return the verb of this name, whose module is imported now."""
    module = load_extra(name, "verbs") if name in EXTRAS else import_module("study.verbs.core")
    found = getattr(module, name)
    assert isinstance(found, Verb)
    return found
