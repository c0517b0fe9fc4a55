"""A watch over a run's process: where its seconds go before, in and after the training."""

import time

import psutil

from study.artifacts.samples import Course


class Stopwatch:
    """Seconds between marks, added up by the names of the marks. It starts as it is made."""

    def __init__(self) -> None:
        self._since_start = time.time() - psutil.Process().create_time()
        self._last = time.perf_counter()
        self._seconds: dict[str, float] = {}

    def mark(self, name: str) -> None:
        """End a part called ``name``: it has lasted since the last mark."""
        now = time.perf_counter()
        self._seconds[name] = self._seconds.get(name, 0.0) + now - self._last
        self._last = now

    def course(self) -> Course:
        """Return the parts. Each field of :class:`Course` but the first needs its mark."""
        parts = {f"{name}_seconds": seconds for name, seconds in self._seconds.items()}
        return Course(start_seconds=max(0.0, self._since_start), **parts)
