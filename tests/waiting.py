"""How tests wait: until something is so, or for the end of processes. A limit ends one that would
wait for ever."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil


def wait_for(condition: Callable[[], object], seconds: float = 30, what: str = "it is so") -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.02)


def has_ended(process: int) -> bool:
    """Whether the process is gone, or waits for whoever adopted it to take note of its end, which
    may take long."""
    try:
        return psutil.Process(process).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def at_work(folder: Path) -> list[str]:
    """Return the command line of everything that was started in the folder and is still there, but
    for this process."""
    return [
        " ".join(process.info["cmdline"] or [])
        for process in psutil.process_iter(["cmdline", "cwd", "status"])
        if process.info["cwd"] == str(folder)
        and process.info["status"] != psutil.STATUS_ZOMBIE
        and process.pid != os.getpid()
    ]
