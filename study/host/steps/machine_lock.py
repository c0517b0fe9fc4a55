"""One measurement at a time on a machine."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout


@contextmanager
def alone_on_this_machine(title: str) -> Iterator[None]:
    """Hold the one lock of this machine for measuring. A second pipeline, in any folder, waits for its turn."""
    lock = FileLock(Path(tempfile.gettempdir()) / "study-measures.lock", mode=0o666)
    holder = Path(lock.lock_file).with_suffix(".holder")
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            whom = _holder(holder) or "another pipeline"
            print(f"{title}: waiting: {whom} measures on this machine", file=sys.stderr, flush=True)
            lock.acquire()
        with suppress(OSError):  # another user's file: those who wait are then told less
            holder.write_text(f"{os.getpid()}\n{title}\n", encoding="utf-8")
            holder.chmod(0o666)
    except OSError:  # another user's file, which we may not open: measure without the lock rather than not at all
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError):  # left by a killed pipeline of another user: we may not remove it
            holder.unlink(missing_ok=True)
        lock.release()


def _holder(path: Path) -> str | None:
    """Return the description that the holder of the lock wrote, e.g. ``tiny, run 3 of 10 (process 123)``."""
    try:
        number, title, *_ = path.read_text(encoding="utf-8").splitlines()
        return f"{title} (process {int(number)})"
    except (OSError, ValueError):
        return None
