"""A run has the machine to itself: one lock, and the kernel's counters at two moments, which tell
what others do.

Nothing here looks at a run's times.
"""

import errno
import os
import socket
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
from filelock import FileLock

from study.artifacts.machine import Observed
from study.base import devices
from study.base.errors import StudyError, say
from study.base.processes import cpu_seconds
from study.config.study import Evidence

WINDOW_SECONDS = 0.5
"""Seconds over which the machine is looked at before a run."""
PATIENCE_SECONDS = 1.0
"""Seconds of waiting from which on it is said."""
QUIET_PRESSURE_PERCENT = 10.0
"""Limit of each pressure before a run, where the study sets none: nothing of ours runs yet that
would wait, too."""
PRESSURE = {
    "cpu_pressure_percent": "cpu",
    "io_pressure_percent": "io",
    "memory_pressure_percent": "memory",
}
PRESSURE_FILES = Path("/proc/pressure")


class Counters(NamedTuple):
    """The machine's counters at one moment, in seconds. ``pressure`` lacks what the kernel does not
    count."""

    now: float
    busy: float
    stolen: float
    own: float
    pressure: Mapping[str, float]
    cpus: int


class Before(NamedTuple):
    """The machine when a run began: what others did, the GPUs, whether it was quiet, and the
    seconds of waiting."""

    observed: Observed
    gpus: devices.Activity | None
    quiet: bool
    waited_seconds: float


def read(cpus: Collection[int] | None = None) -> Counters:
    """Return the counters now, those of CPUs over the numbers in ``cpus`` (None: all of the
    machine)."""
    times = [
        one
        for number, one in enumerate(psutil.cpu_times(percpu=True))
        if cpus is None or number in cpus
    ]
    idle = sum(one.idle + getattr(one, "iowait", 0.0) for one in times)
    stolen = sum(getattr(one, "steal", 0.0) for one in times)
    # A guest's time is part of the user time, and counts once.
    guests = sum(getattr(one, "guest", 0.0) + getattr(one, "guest_nice", 0.0) for one in times)
    busy = sum(map(sum, times)) - idle - stolen - guests
    return Counters(time.monotonic(), busy, stolen, cpu_seconds(), _pressure(), len(times))


def _pressure() -> dict[str, float]:
    """Return the seconds that processes of this machine have stood still for each resource; empty
    without PSI.

    For the CPUs the file's first line counts (``some``), for the others the second (``full``).
    """
    found = {}
    for key, name in PRESSURE.items():
        try:
            lines = (PRESSURE_FILES / name).read_text(encoding="ascii").splitlines()
            found[key] = int(lines[0 if name == "cpu" else 1].rpartition("total=")[2]) / 1e6
        except (OSError, IndexError, ValueError):
            continue
    return found


def between(first: Counters, last: Counters, elsewhere: float | None = 0.0) -> Observed:
    """Return what others did from ``first`` to ``last``.

    ``elsewhere`` is our CPU time in processes that are not below this one, in seconds: a
    container's. None: unknown.
    """
    seconds = last.now - first.now
    whole = seconds * last.cpus / 100
    busy = last.busy - first.busy
    if seconds <= 0 or not last.cpus or not last.busy:  # a kernel that counts nothing
        return Observed()
    own = None if elsewhere is None else last.own - first.own + elsewhere
    cpus = Observed(
        others_cpu_percent=None if own is None else max(0.0, busy - own) / whole,
        steal_percent=(last.stolen - first.stolen) / whole,
    )
    pressure = {
        key: 100 * (last.pressure[key] - first.pressure[key]) / seconds for key in last.pressure
    }
    return cpus.model_copy(update=pressure)


def wait_until_quiet(
    limits: Evidence, seconds: float, gpus: int, cpus: Collection[int] | None, title: str
) -> Before:
    """Wait until others cross no limit, for ``seconds`` at most, and return the machine's state.

    ``gpus`` is the number of GPUs that the run will use. ``title`` names the run where the wait is
    said.
    """
    given = {key: limit for key, limit in limits.model_dump().items() if limit is not None}
    before = dict.fromkeys(PRESSURE, QUIET_PRESSURE_PERCENT) | given
    begin, said = time.monotonic(), False
    while True:
        first = read(cpus)
        time.sleep(WINDOW_SECONDS)
        seen, activity = between(first, read(cpus)), devices.activity(gpus) if gpus else None
        seen = seen.model_copy(update=of_the_device(activity))
        kinds, waited = seen.crossed(before), time.monotonic() - begin - WINDOW_SECONDS
        if not kinds or waited >= seconds:
            return Before(seen, activity, not kinds, waited)
        if waited >= PATIENCE_SECONDS and not said:
            said = True
            told = ", ".join(f"{key} {getattr(seen, key):.3g}" for key in kinds)
            say(f"{title}: waiting up to {seconds:.0f} s for a quiet machine ({told})")


def of_the_device(activity: devices.Activity | None) -> dict[str, float | int]:
    """Return the values of :class:`Observed` that tell of the GPUs; none on a CPU."""
    if activity is None:
        return {}
    return {
        "device_processes": activity.processes,
        "device_percent": float(activity.utilisation_percent),
    }


def still_there(gpus: int) -> int | None:
    """Return the number of processes on the GPUs after a run; None if unknown. A driver forgets
    ours a little late."""
    for _ in range(4):
        activity = devices.activity(gpus)
        if activity is None or not activity.processes:
            break
        time.sleep(WINDOW_SECONDS)
    return activity.processes if activity else None


VARIABLE = "STUDY_MACHINE"
"""Pipelines with different values measure at the same time: for a machine whose cores are divided
among them."""
LOOK_SECONDS = 0.5


@contextmanager
def alone_on_this_machine(title: str) -> Iterator[None]:
    """Hold the one lock of this machine for measuring. A second pipeline, in any folder, waits for
    its turn.

    On Linux the lock is a socket's name that the kernel holds: it is one for all users and jobs, it
    depends on no folder, and it ends with its process. A container has names of its own if it has a
    network of its own. Other systems have no such names, and lock a file in /tmp.
    """
    if sys.platform != "linux":
        with FileLock(Path("/tmp/study-measures.lock"), mode=0o666):  # noqa: S108 - TMPDIR differs by user
            yield
        return
    with socket.socket(socket.AF_UNIX) as lock:
        waits = False
        while not _is_ours(lock):
            if not waits:
                say(f"{title}: waiting: another pipeline measures on this machine")
            waits = True
            time.sleep(LOOK_SECONDS)
        yield


def _is_ours(lock: socket.socket) -> bool:
    """Take the name, and return whether that succeeded."""
    try:
        lock.bind(f"\0study-measures.{os.environ.get(VARIABLE, '')}")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise StudyError(
                f"{VARIABLE}: no lock of this name can be taken ({error.strerror or error})"
            ) from None
        return False
    return True
