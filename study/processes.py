"""Processes that end with their parent: nothing may draw or measure on unseen."""

import ctypes
import os
import signal
import sys
from pathlib import Path


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Ask the kernel to signal this process when its parent is gone. Linux alone can."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, number)


def die_with(parent: int) -> None:
    """The same at the start of a process that was told its parent's number: that one may be gone already."""
    die_with_parent()
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def end_with_parent() -> None:
    """End this step when Snakemake is killed; its own processes then follow."""
    die_with_parent(signal.SIGTERM)


def oom_kills() -> int:
    """How many processes the kernel has killed for want of memory since it started; 0 where it does not tell."""
    try:
        for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    except OSError:
        pass
    return 0
