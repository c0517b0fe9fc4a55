"""The command line: what the user typed is parsed, the one verb is called, and an error is one
line."""

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import NoReturn

from study.base.errors import INTERRUPTED, StudyError
from study.base.files import reason
from study.base.fork_server import FORK_SERVERS
from study.base.processes import end_when_told
from study.verbs.declare import EXTRAS, SHOWN, STEPS, VERBS, end_with_parent, load, say


def main(arguments: Sequence[str] | None = None, prog: str = "study") -> int:
    """Run one verb, and return the exit code. ``prog`` is the command as the user typed it."""
    try:
        return _done(arguments, prog)
    except KeyboardInterrupt:
        # the start of a step says it
        if os.environ.get(FORK_SERVERS, "").split()[:1] != [str(os.getppid())]:
            say(INTERRUPTED)
        return 130


def step(*arguments: str) -> int:
    """Run one verb of the workflow in a process that was forked for it, and return the exit
    code."""
    end_when_told()
    return main(arguments, prog="python -m study")


def _done(arguments: Sequence[str] | None, prog: str) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    end = words.index("--") if words[:1] == ["start"] and "--" in words else len(words)
    options = _parser(prog, words).parse_args(words[:end])
    options.program, options.snakemake = prog, words[end + 1 :]
    tell = options.tell = partial(say, log=getattr(options, "log", None))
    try:
        if words[0] in STEPS:
            end_with_parent()
        told = options.call(options)
        if told:
            tell(told)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # `python -m study plan x | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except StudyError as error:
        tell(f"error: {error}")
        return 1
    except OSError as error:  # a file that cannot be read or written
        where = f"{error.filename}: " if error.filename else ""
        tell(f"error: {StudyError(f'{where}{reason(error)}')}")
        return 1


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {StudyError(message)}; see {self.prog} --help\n")


def _parser(prog: str, words: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser that knows the verb that is called; those that the help shows, if none is."""
    parser = _Parser(
        prog=prog,
        description="Plan, measure and analyse training studies.",
        epilog=f"More verbs, each with its own --help: {', '.join(EXTRAS)}.",
    )
    verbs = parser.add_subparsers(required=True, metavar="verb")
    for name in words[:1] if words[:1] and words[0] in VERBS else SHOWN:
        verb = load(name)
        one = verbs.add_parser(name, help=verb.help, description=verb.help)
        one.set_defaults(call=verb.call)
        for names, settings in verb.arguments:
            one.add_argument(*names, **settings)
    return parser
