"""A process that has imported what others need, and forks them: none of them imports it again.

``python -m study.base.template SOCKET [MODULE ...]`` serves requests at the listening socket whose descriptor is
``SOCKET`` until it is killed, as it is with its parent. It imports the modules at the first. It does nothing else, so
that a forked process is like one that has just imported the same modules. Only Linux can do this.

Each request gets a warden, forked from the template, which forks the process itself. The warden passes on what the
client wants, ends all that the process leaves behind, and counts its CPU time.
"""

import array
import importlib
import json
import os
import pkgutil
import resource
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from study.base.processes import adopt_orphans, die_with, end_left, name_process

LONGEST_REQUEST = 2**20
CREDENTIALS = 12
"""Bytes of the process, user and group ids that the kernel tells of a peer."""
GRACE_SECONDS = 10.0
"""Seconds that a process may take to end after a signal that it can catch, once its client is gone."""


@dataclass(frozen=True)
class Request:
    """A process to be forked. It calls ``function``, such as ``package.module:name``, and ends with the exit code that
    this returns, or with 0."""

    function: str
    arguments: Sequence[str]
    environment: dict[str, str]
    folder: str
    name: str = "study-forked"
    """Name of the process for ``ps`` and ``top``, of at most 15 letters."""
    cpus: Sequence[int] | None = None
    at_clients_death: int = signal.SIGKILL
    """The signal that the process gets when its client is gone."""


@dataclass(frozen=True)
class Answer:
    """The end of a forked process: its exit code, negative for a signal, and the CPU seconds that it used with all that
    it started; None if unknown."""

    code: int
    cpu_seconds: float | None


def ask(name: str, request: Request, outputs: Sequence[int]) -> socket.socket:
    """Send a request to the template called ``name``, and return the connection. Raise OSError if none answers.

    The process has the descriptors ``outputs`` as its output and its errors. Each byte that is sent later is the number
    of a signal for it. :func:`answer_of` waits for its end.
    """
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(f"\0{name}")
        if not _peer_is_ours(connection):
            raise ConnectionRefusedError
        socket.send_fds(connection, [json.dumps(asdict(request)).encode() + b"\n"], outputs)
    except OSError:
        connection.close()
        raise
    return connection


def answer_of(connection: socket.socket) -> Answer:
    """Return the end of the process; that of a killed one, if its warden is gone."""
    told = b""
    with suppress(ConnectionError):
        told = connection.recv(LONGEST_REQUEST)
    return Answer(**json.loads(told)) if told else Answer(-signal.SIGKILL, None)


def _peer_is_ours(connection: socket.socket) -> bool:
    """Return whether the other end is a process of this user: any user may know a socket's name."""
    told = array.array("i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS))
    return told[1] == os.getuid()


def serve(listening: socket.socket, modules: Sequence[str]) -> None:
    """Import ``modules`` once a client is there, and fork a warden for each. Never return.

    A client that says nothing has the modules imported, and no more.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no one waits for a warden
    while True:
        connection, _ = listening.accept()
        for module in modules:
            importlib.import_module(module)
        with connection:
            if _peer_is_ours(connection) and os.fork() == 0:
                listening.close()
                with suppress(OSError, ValueError, TypeError):  # a client that is gone, or says something else
                    _keep(connection)
                os._exit(0)


def _keep(connection: socket.socket) -> None:
    """Fork the process that the client asks for, see it to its end, and tell the client.

    It ends with its client, which ends with the start. The end of the template is no reason to cut it short.
    """
    name_process("study-warden")
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    adopt_orphans()
    request, outputs = _received(connection)
    warden, child = os.getpid(), os.fork()
    if child == 0:
        connection.close()
        _become(request, outputs, warden)
    for output in outputs:
        os.close(output)
    code = _end_of(child, connection, request.at_clients_death)
    # What a step leaves has heard of its death: a client of an engine has its container to end first.
    end_left(set(), GRACE_SECONDS if request.at_clients_death == signal.SIGTERM else 0.0)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    connection.sendall(json.dumps(asdict(Answer(code, used.ru_utime + used.ru_stime))).encode())


def _received(connection: socket.socket) -> tuple[Request, list[int]]:
    """Return a request and the descriptors for its output. A request ends with a newline."""
    data, descriptors, _, _ = socket.recv_fds(connection, LONGEST_REQUEST, 2)
    while not data.endswith(b"\n"):
        more = connection.recv(LONGEST_REQUEST)
        if not more:
            raise ValueError("a request without an end")
        data += more
    return Request(**json.loads(data)), descriptors


def _become(request: Request, outputs: Sequence[int], warden: int) -> None:
    """Call the function of the request in this process, and end. Never return."""
    code = 1
    try:
        os.setsid()
        die_with(warden)
        name_process(request.name)
        for target, output in zip((1, 2), outputs, strict=True):
            os.dup2(output, target)
        for output in outputs:
            os.close(output)
        os.environ.clear()
        os.environ.update(request.environment)
        os.chdir(request.folder)
        sys.path[0] = request.folder  # where `python -m` finds a user's model; the template's folder may be another
        if request.cpus:
            os.sched_setaffinity(0, request.cpus)
        function: Callable[..., Any] = pkgutil.resolve_name(request.function)
        code = function(*request.arguments) or 0
    except SystemExit as end:
        code = _code_of(end)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _code_of(end: SystemExit) -> int:
    """Return the exit code of a process that raised ``end``; a text goes to its output, as Python does it."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _end_of(child: int, connection: socket.socket, at_clients_death: int) -> int:
    """Pass the client's signals on to the child until it ends, and return its exit code."""
    ends, latest = os.pidfd_open(child), float("inf")
    watched = [ends, connection.fileno()]
    while ends not in (ready := select.select(watched, [], [], max(0.0, min(latest - time.monotonic(), 3600.0)))[0]):
        told = connection.recv(1) if ready else b""
        if ready and not told:  # the client is gone
            watched, latest = [ends], time.monotonic() + GRACE_SECONDS
        number = told[0] if told else at_clients_death if ready else signal.SIGKILL
        if ready or time.monotonic() >= latest:
            _signal(child, number)
    os.close(ends)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _signal(child: int, number: int) -> None:
    """Send a signal to the child; SIGKILL to all of its session, where it has one by now."""
    with suppress(ProcessLookupError):
        os.kill(child, number)
        if number == signal.SIGKILL:
            os.killpg(child, number)


def main(descriptor: str, *modules: str) -> None:
    """Serve at the listening socket with this descriptor."""
    name_process("study-template")
    with socket.socket(fileno=int(descriptor)) as listening:
        serve(listening, modules)


if __name__ == "__main__":
    main(*sys.argv[1:])
