"""A process that has imported what others need, and forks them: none of them imports it again.

``python -m study.base.fork_server SOCKET [MODULE ...]`` serves requests at the listening socket
whose descriptor is ``SOCKET`` until it is killed, as it is with its parent. Modules are imported on
the first request; the server runs nothing else, so a child equals a fresh process after import.
Only Linux can do this.

Each request gets a supervisor, forked from the fork server, which forks the process itself. The
supervisor passes on what the client wants, ends all that the process leaves behind, and counts its
CPU time.
"""

import importlib
import json
import os
import pkgutil
import resource
import select
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from study.base.processes import adopt_orphans, die_with, end_left, name_process

LONGEST_REQUEST = 2**20
CREDENTIALS = 12
"""Bytes of the process, user and group ids that the kernel tells of a peer."""
FORK_SERVERS = "STUDY_FORK_SERVERS"
"""Variable that tells the process id of a start, the checksum of its code, and then
``NAME=ADDRESS`` for each of its fork servers, all with spaces between them; without it every
process starts from nothing."""


def addresses(fork_servers: str) -> dict[str, str]:
    """Return the addresses of fork servers by their names, from the value of the variable."""
    return dict(word.partition("=")[::2] for word in fork_servers.split()[2:])


def start_is_gone() -> bool:
    """Return whether the start of this process, where it has one, has ended already."""
    words = os.environ.get(FORK_SERVERS, "").split()
    return bool(words) and not Path("/proc", words[0]).exists()


class Request(NamedTuple):
    """A process to be forked. It calls ``function``, such as ``package.module:name``, and ends with
    the exit code that this returns, or with 0."""

    function: str
    arguments: Sequence[str]
    environment: dict[str, str]
    folder: str
    name: str = "study-forked"
    """Name of the process for ``ps`` and ``top``, of at most 15 letters."""


class Answer(NamedTuple):
    """The end of a forked process: its exit code, negative for a signal, and the CPU seconds that
    it used with all that it started; None if unknown."""

    code: int
    cpu_seconds: float | None


def ask(address: str, request: Request, outputs: Sequence[int]) -> socket.socket:
    """Send a request to the fork server at ``address``, and return the connection. Raise OSError if
    none answers.

    The process has the descriptors ``outputs`` as its output and its errors. Each byte that is sent
    later is the number of a signal for it. :func:`answer_of` waits for its end.
    """
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address)
        if _user_of(connection) != os.getuid():
            raise ConnectionRefusedError
        socket.send_fds(connection, [json.dumps(request._asdict()).encode() + b"\n"], outputs)
    except OSError:
        connection.close()
        raise
    return connection


def answer_of(connection: socket.socket) -> Answer:
    """Return the end of the process; that of a killed one, if its supervisor is gone."""
    answer = b""
    with suppress(ConnectionError):
        answer = connection.recv(LONGEST_REQUEST)
    return Answer(**json.loads(answer)) if answer else Answer(-signal.SIGKILL, None)


def _user_of(connection: socket.socket) -> int:
    """Return the user at the other end when the connection was made, as the kernel tells it."""
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS)
    return int(struct.unpack("3i", peer)[1])


def serve(listening: socket.socket, modules: Sequence[str]) -> None:
    """Import ``modules`` once a client is there, and fork a supervisor for each. Never return.

    A client that says nothing has the modules imported, and no more. One of another user has
    nothing done at all.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no one waits for a supervisor
    while True:
        connection, _ = listening.accept()
        with connection:
            if _user_of(connection) != os.getuid():
                continue
            for module in modules:
                importlib.import_module(module)
            if os.fork() == 0:
                listening.close()
                # a client that is gone, or says something else
                with suppress(OSError, ValueError, TypeError):
                    _keep(connection)
                os._exit(0)


def _keep(connection: socket.socket) -> None:
    """Fork the process that the client asks for, see it to its end, and tell the client.

    It ends with its client, which ends with the start. The end of the fork server is no reason to
    cut it short.
    """
    name_process("study-supervise")
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    adopt_orphans()
    supervisor = os.getpid()
    request, outputs = _received(connection)
    if (child := os.fork()) == 0:
        connection.close()
        _become(request, outputs, supervisor)
    for output in outputs:
        os.close(output)
    code = _end_of(child, connection)
    end_left(set())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    connection.sendall(json.dumps(Answer(code, used.ru_utime + used.ru_stime)._asdict()).encode())


def _received(connection: socket.socket) -> tuple[Request, list[int]]:
    """Return a request and the descriptors for its output. A request ends with a newline."""
    data, descriptors, _, _ = socket.recv_fds(connection, LONGEST_REQUEST, 2)
    while not data.endswith(b"\n"):
        more = connection.recv(LONGEST_REQUEST)
        if not more:
            raise ValueError("a request without an end")
        data += more
    return Request(**json.loads(data)), descriptors


def _become(request: Request, outputs: Sequence[int], supervisor: int) -> None:
    """Call the function of the request in this process, and end. Never return."""
    code = 1
    try:
        os.setsid()
        die_with(supervisor)
        name_process(request.name)
        for target, output in zip((1, 2), outputs, strict=True):
            os.dup2(output, target)
        for output in outputs:
            os.close(output)
        os.environ.clear()
        os.environ.update(request.environment)
        # where `python -m` finds a user's model; the run's folder may be another
        here = str(Path.cwd())
        os.chdir(request.folder)
        sys.path[:] = [request.folder if entry == here else entry for entry in sys.path]
        function = pkgutil.resolve_name(request.function)
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
    """Return the exit code of a process that raised ``end``; a text goes to its output, as Python
    does it."""
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _end_of(child: int, connection: socket.socket) -> int:
    """Pass the client's signals on to the child until it ends, and return its exit code.

    The child is killed once the client is gone.
    """
    ends = os.pidfd_open(child)
    watched = [ends, connection.fileno()]
    while ends not in (ready := select.select(watched, [], [])[0]):
        message = connection.recv(1) if connection.fileno() in ready else b""
        if not message:  # the client is gone
            watched = [ends]
        _signal(child, message[0] if message else signal.SIGKILL)
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
    name_process("study-server")
    with socket.socket(fileno=int(descriptor)) as listening:
        serve(listening, modules)


if __name__ == "__main__":
    main(*sys.argv[1:])
