"""How tests wait: until something is so, or for the end of a process. A limit ends one that would wait for ever."""

import time
from collections.abc import Callable

import psutil


def wait_for(condition: Callable[[], object], seconds: float = 30, what: str = "it is so") -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.02)


def has_ended(process: int) -> bool:
    """Whether the process is gone, or waits for whoever adopted it to take note of its end, which may take long."""
    try:
        return psutil.Process(process).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
