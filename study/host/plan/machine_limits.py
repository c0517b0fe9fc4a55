"""Limits of this machine that a study may reach, said before its first run."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain

import psutil

from study.artifacts.plan import Plan
from study.base.devices import usable_cpus
from study.base.system import SHARED_MEMORY, surroundings
from study.host.engine.container import loader_bytes

MIB, GIB = 2**20, 2**30
CURE = (
    "a worker without room ends with a bus error. Make it larger (mount -o remount,size=2G /dev/shm; docker run "
    "--shm-size 2g), or take fewer loader.workers, or loader.kind threads"
)


def warnings(plans: Sequence[Plan]) -> Iterator[str]:
    """Yield a line for each limit that runs on the host may reach."""
    here = chain(*(plan.runs for plan in plans if plan.engine == "none"))
    runs = [run for run in here if not run.unavailable]
    if runs and surroundings() == "WSL2":
        memory = psutil.virtual_memory().total / GIB
        yield (
            f"WSL2: Windows lends {memory:.0f} GiB of memory, and the GPU's spills into it. Near a limit runs grow "
            "slow without an error: keep clear of both (memory= in .wslconfig)"
        )
    needs = [(loader_bytes(run.settings, run.settings.limits.cpus or usable_cpus()), run.name) for run in runs]
    with suppress(OSError):  # a system without it
        free = shutil.disk_usage(SHARED_MEMORY).free
        size, name = max(needs, default=(0, ""))
        if size > free:
            yield (
                f"{SHARED_MEMORY} has {free / MIB:.0f} MiB free, and the loader's workers of {name} may need "
                f"{size / MIB:.0f} MiB: {CURE}"
            )
