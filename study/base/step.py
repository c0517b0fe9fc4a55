"""One step of a start: forked by the start's fork server for such steps, and otherwise in this process.

``python -m study.base.step VERB ...`` does what ``python -m study VERB ...`` does.
"""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

from study.base.fork_server import Request, answer_of, ask
from study.base.processes import die_with_parent

FORK_SERVERS = "STUDY_FORK_SERVERS"
"""Variable that tells the process id of a start, the checksum of its code, and then ``NAME=ADDRESS`` for each of its
fork servers, all with spaces between them; without it every process starts from nothing."""
ANALYSIS = ("analyse", "report", "answer")
"""The steps that the fork server of the analysis forks; another one forks the rest."""


def addresses(fork_servers: str) -> dict[str, str]:
    """Return the addresses of fork servers by their names, from the value of the variable."""
    return dict(word.partition("=")[::2] for word in fork_servers.split()[2:])


def start_is_gone() -> bool:
    """Return whether the start has ended before this process could ask to end with it."""
    words = os.environ.get(FORK_SERVERS, "").split()
    return bool(words) and not os.path.exists(f"/proc/{words[0]}")  # noqa: PTH110 - pathlib takes longer to import


def main(arguments: Sequence[str]) -> int:
    """Have the step done, and return its exit code. SIGTERM and Ctrl-C are handed on to it."""
    die_with_parent(signal.SIGTERM)
    if start_is_gone():
        return 128 + signal.SIGTERM
    verb = arguments[0]
    try:
        address = addresses(os.environ[FORK_SERVERS])["analysis" if verb in ANALYSIS else "steps"]
        folder = os.getcwd()  # noqa: PTH109 - pathlib takes longer to import
        request = Request(
            "study.cli:step", arguments, dict(os.environ), folder, f"study-{verb}", at_clients_death=signal.SIGTERM
        )
        connection = ask(address, request, [1, 2])
    except (KeyError, OSError):
        os.execv(sys.executable, [sys.executable, "-m", "study", *arguments])  # noqa: S606

    def hand_on(number: int, _: FrameType | None) -> None:
        with suppress(OSError):
            connection.send(bytes([number]))

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, hand_on)
    code = answer_of(connection).code
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
