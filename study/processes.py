"""Processes that end with their parent: nothing may draw or measure on unseen."""

import ctypes
import signal
import sys


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Ask the kernel to signal this process when its parent is gone. Linux alone can."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, number)


def end_with_parent() -> None:
    """End this step when Snakemake is killed; its own processes then follow."""
    die_with_parent(signal.SIGTERM)
