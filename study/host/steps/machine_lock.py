"""One measurement at a time on a machine, whoever measures and wherever temporary files lie."""

import errno
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock

from study.base.errors import StudyError, printable

VARIABLE = "STUDY_MACHINE"
"""Pipelines with different values measure at the same time: for a machine whose cores are divided among them."""
LOOK_SECONDS = 0.5
ANSWER_SECONDS = 1.0


@contextmanager
def alone_on_this_machine(title: str) -> Iterator[None]:
    """Hold the one lock of this machine for measuring. A second pipeline, in any folder, waits for its turn.

    On Linux the lock is a socket's name that the kernel holds: it is one for all users and jobs, it depends on no
    folder, and it ends with its process. A container has names of its own if it has a network of its own. Other systems
    have no such names, and lock a file in /tmp.
    """
    if sys.platform != "linux":
        with FileLock(Path("/tmp/study-measures.lock"), mode=0o666):  # noqa: S108 - TMPDIR differs by user
            yield
        return
    with socket.socket(socket.AF_UNIX) as lock:
        waits = False
        while not _is_ours(lock):
            if not waits:
                whom = _holder() or "another pipeline"
                print(f"{title}: waiting: {whom} measures on this machine", file=sys.stderr, flush=True)
            waits = True
            time.sleep(LOOK_SECONDS)
        lock.listen()
        threading.Thread(target=_tell, args=(lock, f"{title} (process {os.getpid()})"), daemon=True).start()
        try:
            yield
        finally:
            with suppress(OSError):  # wakes the thread that waits for a connection
                lock.shutdown(socket.SHUT_RDWR)


def _name() -> str:
    return f"\0study-measures.{os.environ.get(VARIABLE, '')}"


def _is_ours(lock: socket.socket) -> bool:
    """Take the name, and return whether that succeeded."""
    try:
        lock.bind(_name())
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise StudyError(f"{VARIABLE}: no lock of this name can be taken ({error.strerror or error})") from None
        return False
    return True


def _tell(lock: socket.socket, title: str) -> None:
    """Tell each pipeline that waits whom it waits for, until the lock is given back."""
    with suppress(OSError):
        while True:
            asking, _ = lock.accept()
            with asking, suppress(OSError):
                asking.sendall(title.encode("utf-8", "replace"))


def _holder() -> str | None:
    """Return the title of the pipeline that holds the lock, or None if it has just ended or does not answer."""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(ANSWER_SECONDS)
        asked.connect(_name())
        return printable(asked.recv(1000).decode("utf-8", "replace")) or None  # any user may have sent it
    return None
