"""Processes that end with their parent, so that none draws images or measures unnoticed."""

import ctypes
import os
import signal
import sys
from pathlib import Path


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Ask the kernel to signal this process when its parent is gone. Only Linux can."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, number)


def die_with(parent: int) -> None:
    """End this process with its parent, whose id is ``parent``, or at once if that has ended already."""
    die_with_parent()
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def end_with_parent() -> None:
    """End this step when Snakemake is killed; its own processes then follow."""
    die_with_parent(signal.SIGTERM)


def oom_kills() -> int:
    """Return the number of processes killed for lack of memory since the kernel started; 0 if it does not say."""
    try:
        for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    except OSError:
        pass
    return 0
