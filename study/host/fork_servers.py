"""The fork servers of a start: processes that have imported what its runs need, and fork them.

There is one for the runs of each device, loop and limit of CPUs. A fork server imports at the first
request. The first one gets it at once, so that it imports while data and weights are prepared. The
others would disturb the runs before theirs.
"""

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.run import Run
from study.base.errors import StudyError
from study.base.files import digest, package_sha256
from study.base.fork_server import FORK_SERVERS, Request, addresses, answer_of, ask
from study.base.processes import die_with
from study.config.settings import Settings
from study.host import packages
from study.host.engine import container
from study.host.engine.lifetime import allowed_cpus
from study.host.supervise import Spawned, lines_of, new_log

WAITING = 64
"""Requests that may wait at a fork server."""
JOB_MODULE = "study.training.job"
"""The module of a run's process."""


def start_fork_servers(
    plans: Sequence[Plan], pending: Sequence[tuple[str, str]], results: Results
) -> None:
    """Start the fork servers of this start, where the system can serve them. They end with this
    process.

    The steps find them by a variable in their environment. In containers runs have no fork server.
    If the variable names fork servers already, which serve this code and whose process is there,
    then only those are started that are missing.
    """
    if not can_fork():
        return
    code = package_sha256()
    words = os.environ.get(FORK_SERVERS, "").split()
    if words[1:2] != [code] or not Path("/proc", words[0]).exists():
        os.environ[FORK_SERVERS] = f"{os.getpid()} {code}"
    known = dict[tuple[str, str], Run]()
    for plan in plans:
        # The reference workload beside a command is executed on the host.
        known |= {
            (plan.name, run.name): run
            for run in plan.runs
            if plan.engine == "none" or run.settings.command
        }
    wanted = [known[run] for run in pending if run in known]
    forked = [run for run in wanted if run.settings.process == "forked"]
    runs = {kind_of(run.settings): run for run in forked}
    for name, run in runs.items():
        settings = run.settings
        python = packages.python_of(run.environment, results)
        modules = [JOB_MODULE, f"study.training.loops.{settings.training.loop}.loop"]
        cpus = allowed_cpus(settings.limits.cpus) if settings.limits.cpus else None
        start_fork_server(
            name, modules, container.environment(settings.device, os.environ), results, cpus, python
        )
    with suppress(OSError, KeyError, StopIteration), socket.socket(socket.AF_UNIX) as first:
        first.connect(addresses(os.environ[FORK_SERVERS])[next(iter(runs))])


def can_fork() -> bool:
    """Return whether this system has what a fork server needs: Linux from 5.3 on, without a rule
    against it."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    # another system, an older kernel, or a container's filter of system calls
    except (AttributeError, OSError):
        return False
    return True


def start_fork_server(
    name: str,
    modules: Sequence[str],
    environment: Mapping[str, str],
    results: Results,
    cpus: Sequence[int] | None,
    python: str,
) -> None:
    """Start the fork server ``name`` on its ``cpus``, and tell its address in our environment, if
    there is none yet.

    Without it, where it cannot be started, each run is a process that starts from nothing.
    """
    if name in addresses(os.environ[FORK_SERVERS]):
        return
    log = results.log("fork_servers", name)
    with suppress(OSError), socket.socket(socket.AF_UNIX) as listening, new_log(log) as output:
        address = listen(listening)
        # Without threads of its own a fork server forks what another program would have started.
        subprocess.Popen(
            [python, "-m", "study.base.fork_server", str(listening.fileno()), *modules],
            env=dict(environment) | {"OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[listening.fileno()],
            start_new_session=True,
            preexec_fn=partial(_prepare, os.getpid(), cpus),
        )
        os.environ[FORK_SERVERS] += f" {name}={address}"


def listen(listening: socket.socket) -> str:
    """Have a socket listen where only this user's processes beside this one find it, and return its
    address.

    A socket's name in the network's namespace would be seen in each container with the host's
    network, and a path in each container with its folder. This one has its path in a folder of ours
    alone, and loses it before it listens: what leads to it is a file that this process holds open
    until it ends, in the kernel's folder of this process. A container sees its own processes there,
    and the kernel lets no other user look. Nothing is left to be removed.
    """
    with tempfile.TemporaryDirectory() as private:
        folder = os.open(private, os.O_PATH)
        try:
            # a path of its own may be too long for a socket
            listening.bind(f"/proc/self/fd/{folder}/socket")
            held = os.open("socket", os.O_PATH, dir_fd=folder)
        finally:
            os.close(folder)
    listening.listen(WAITING)
    return f"/proc/{os.getpid()}/fd/{held}"


def _prepare(parent: int, cpus: Sequence[int] | None) -> None:
    """End the fork server's process with its parent, and leave it its CPUs alone."""
    die_with(parent)
    if cpus:
        os.sched_setaffinity(0, cpus)


class Forked:
    """A process that a fork server forks to call ``function``. Raise :class:`StudyError` if no fork
    server answers."""

    elsewhere_seconds: float | None = None

    def __init__(
        self,
        fork_server: str,
        function: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        reading, writing = os.pipe()
        try:
            request = Request(function, arguments, dict(environment), str(Path.cwd()), "study-job")
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

    A limit of CPUs is part of it: torch chooses its number of threads when it is imported. So is
    what is imported.
    """
    limit = f".{settings.limits.cpus}" if settings.limits.cpus else ""
    own = f".{digest(settings.environment)}" if settings.environment else ""
    return f"{settings.device}.{settings.training.loop}{limit}{own}"


def fork_server_of(settings: Settings) -> str | None:
    """Return the address of the fork server for such runs; None outside a start, and on systems
    without fork servers."""
    return addresses(os.environ.get(FORK_SERVERS, "")).get(kind_of(settings))


def begin(
    fork_server: str | None,
    function: str,
    arguments: Sequence[str],
    command: Sequence[str],
    environment: Mapping[str, str],
    cpus: Sequence[int] | None = None,
) -> Forked | Spawned:
    """Have ``fork_server`` fork a process that calls ``function``; start ``command`` if no fork
    server answers.

    ``cpus`` are those of the command: a fork server has its own, and leaves them to what it forks.
    """
    if fork_server:
        with suppress(StudyError):
            return Forked(fork_server, function, arguments, environment)
    return Spawned(command, environment, cpus=cpus)
