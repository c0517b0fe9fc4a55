"""Processes that end with their parent, so that none draws images or measures unnoticed; and what
signals end."""

import ctypes
import io
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType

import psutil

from study.base.errors import INTERRUPTED, say

LEAVE_SECONDS = 10.0
"""Seconds that a killed process may take to be gone; a driver may hold it for long."""
ASKED_TO_END = threading.Event()
"""Whether a signal asked this start to end: its steps then did not fail."""
PATIENCE_SECONDS = 2.0
"""Seconds after Ctrl-C until a step is told to end: a terminal has sent Ctrl-C to the steps,
too."""


def limit_memory(size_bytes: int) -> None:
    """Let an allocation fail from which on this process, or one that it starts, would have more
    memory of its own.

    Only Linux counts this. A lower limit of the caller's stays.
    """
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (size_bytes, size_bytes))


def open_streams() -> None:
    """Open what the caller closed of the standard streams on the null device, and escape what
    stdout cannot show."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
                setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))  # noqa: PTH123, SIM115
    escape(sys.stdout)


def escape(stream: object) -> None:
    """Let a stream escape what its encoding cannot show."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Ask the kernel to signal this process when its parent is gone. Only Linux can."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, number)


def name_process(name: str) -> None:
    """Give this process a name of at most 15 letters for ``ps`` and ``top``. Only Linux can."""
    if sys.platform == "linux":
        pr_set_name = 15
        ctypes.CDLL(None).prctl(pr_set_name, name.encode())


def die_with(parent: int) -> None:
    """End this process with its parent, whose id is ``parent``, or at once if that has ended
    already."""
    die_with_parent()
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def end_when_told() -> None:
    """Let SIGTERM end this process as an exception does, so that it ends its own processes and
    leaves nothing."""

    def end(number: int, _: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one would cut the cleaning short
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def say_it_in_a_sentence() -> None:
    """Let Ctrl-C, where nothing handles it, end this process with a sentence in the place of a
    traceback."""
    usual = sys.excepthook

    def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            say(INTERRUPTED)
        else:
            usual(kind, error, trace)

    sys.excepthook = tell


def end_steps_at_once() -> None:
    """From now on hand SIGTERM, and after a while Ctrl-C, on to the steps. Snakemake's own handlers
    follow.

    Snakemake alone would wait for the block that is at work.
    """
    for number, seconds in ((signal.SIGTERM, 0.0), (signal.SIGINT, PATIENCE_SECONDS)):
        signal.signal(number, _handing_on(seconds, signal.getsignal(number)))


def _handing_on(
    seconds: float, usual: Callable[[int, FrameType | None], object] | int | None
) -> Callable[[int, FrameType | None], None]:
    def handle(number: int, frame: FrameType | None) -> None:
        ASKED_TO_END.set()
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


def adopt_orphans() -> None:
    """Become the parent of each process below this one whose own parent ends, so that none is lost.
    Only on Linux."""
    if sys.platform == "linux":
        pr_set_child_subreaper = 36
        ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1)


def below() -> set[psutil.Process]:
    """Return all processes below this one."""
    return set(psutil.Process().children(recursive=True))


def end_left(before: set[psutil.Process]) -> None:
    """End each process below this one that is not among those of ``before``."""
    latest = time.monotonic() + LEAVE_SECONDS
    while (left := below() - before) and time.monotonic() < latest:
        for one in left:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        psutil.wait_procs(left, timeout=1)


@contextmanager
def not_ended() -> Iterator[None]:
    """Put SIGTERM and Ctrl-C off until the context ends: what is published in it is published
    whole."""
    caught = []

    def note(number: int, _: object) -> None:
        caught.append(number)

    usual = [(number, signal.signal(number, note)) for number in (signal.SIGTERM, signal.SIGINT)]
    try:
        yield
    finally:
        for number, handler in usual:
            signal.signal(number, handler)
        for came in caught:
            os.kill(os.getpid(), came)


def cpu_seconds() -> float:
    """Return the CPU time of this process, and of each process below it that was waited for, in
    seconds."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def oom_kills(root: Path = Path("/")) -> int:
    """Return the number of processes killed for lack of memory since the kernel started; 0 if it
    does not say.

    ``root`` is where the kernel's file systems are mounted.
    """
    return _count(root / "proc/vmstat") or 0


def oom_kills_of_the_group(root: Path = Path("/")) -> int:
    """Return :func:`oom_kills` in the control group of this process, which holds what it starts,
    and no container.

    Where the kernel does not count by group, those of the whole machine.
    """
    groups = root / "sys/fs/cgroup"
    with suppress(OSError):
        for line in os.fsdecode((root / "proc/self/cgroup").read_bytes()).splitlines():
            number, controllers, path = line.split(":", 2)
            group = path.lstrip("/")
            if "memory" in controllers.split(","):
                count = _count(groups / "memory" / group / "memory.oom_control")
            elif number == "0":  # version 2 has one group for every controller
                count = _count(groups / group / "memory.events")
            else:
                continue
            if count is not None:
                return count
    return oom_kills(root)


def _count(path: Path) -> int | None:
    """Return the number behind ``oom_kill`` in a file of the kernel; None if it has none."""
    with suppress(OSError):
        for line in path.read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return None
