"""A process that a fork server of this start forks for us, or one that we start from nothing where there is none."""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from study.base.errors import StudyError
from study.base.fork_server import Request, answer_of, ask
from study.base.step import FORK_SERVERS, addresses
from study.config.settings import Settings, loops
from study.host.supervise import Spawned, lines_of

JOB_MODULE = "study.training.job"
"""The module of a run's process."""
RANKS_MODULE = "study.training.forked"
"""The module of the process of a run of several processes, if a fork server forks it."""


class Forked:
    """A process that a fork server forks to call ``function``. Raise :class:`StudyError` if no fork server answers."""

    elsewhere_seconds: float | None = None

    def __init__(
        self,
        fork_server: str,
        function: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        cpus: Sequence[int] | None = None,
    ) -> None:
        reading, writing = os.pipe()
        try:
            request = Request(function, arguments, dict(environment), str(Path.cwd()), "study-job", cpus)
            self._connection = ask(fork_server, request, [writing, writing])
        except OSError:
            os.close(reading)
            raise StudyError(f"{fork_server}: no fork server of this start answers") from None
        finally:
            os.close(writing)
        self.lines = lines_of(os.fdopen(reading, "rb"))
        self._code: int | None = None

    def wait(self) -> int:
        """Return its exit code once nothing is left of it."""
        if self._code is None:
            answer = answer_of(self._connection)
            self._code, self.elsewhere_seconds = answer.code, answer.cpu_seconds
            self._connection.close()
        return self._code

    def end(self) -> None:
        """Have it killed, with all that it started."""
        with suppress(OSError):
            self._connection.send(bytes([signal.SIGKILL]))


def kind_of(settings: Settings) -> str:
    """Return the name of the fork server for such runs.

    A limit of CPUs is part of it: torch chooses its number of threads when it is imported.
    """
    limit = f".{settings.limits.cpus}" if settings.limits.cpus else ""
    return f"{settings.device}.{loops(settings)[-1]}{limit}"


def fork_server_of(settings: Settings) -> str | None:
    """Return the address of the fork server for such runs; None outside a start, and on systems without fork
    servers."""
    return addresses(os.environ.get(FORK_SERVERS, "")).get(kind_of(settings))


def main_of(settings: Settings) -> str:
    """Return the function that a fork server calls for such a run."""
    return f"{JOB_MODULE if settings.training.strategy == 'single' else RANKS_MODULE}:main"


def begin(
    fork_server: str | None,
    function: str,
    arguments: Sequence[str],
    command: Sequence[str],
    environment: Mapping[str, str],
    cpus: Sequence[int] | None = None,
) -> Forked | Spawned:
    """Have ``fork_server`` fork a process that calls ``function``; start ``command`` if no fork server answers.

    The process is not told of the fork servers: it has nothing to ask of them.
    """
    environment = {name: value for name, value in environment.items() if name != FORK_SERVERS}
    if fork_server:
        with suppress(StudyError):
            return Forked(fork_server, function, arguments, environment, cpus)
    return Spawned(command, environment, cpus=cpus)
