"""Times of a run: of its phases, of its process, and which of its steps are warm-up.

Phases are timed by the host's clock on a CPU, by CUDA events on a GPU: no step contains a
synchronisation.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median_high
from typing import Any

import psutil
import torch

from study.artifacts.samples import Step, Timeline
from study.config.times import PHASES

MOST_RESERVED = 200_000
"""Largest number of events made before training. A longer training makes the rest as it goes."""


class HostClock:
    """A clock whose marks are readings of the host's clock. They are exact, because the host itself
    does the work."""

    def reserve(self, marks: int) -> None:
        """Do nothing: marks of the host need no preparation."""

    def mark(self) -> Any:
        """Return a point in time."""
        return time.perf_counter()

    def settle(self) -> None:
        """Do nothing: marks of the host can be read at once."""

    def seconds(self, first: Any, second: Any) -> float:
        """Return the seconds between two marks."""
        return float(second - first)


class CudaClock:
    """A clock whose marks are events in the device's queue: the host runs ahead, and the device
    stamps each event."""

    def __init__(self) -> None:
        self._spare: list[torch.cuda.Event] = []
        # Looked up once: the lookup takes the host as long as recording the event.
        self._stream = torch.cuda.current_stream()

    def reserve(self, marks: int) -> None:
        """Make ``marks`` events beforehand.

        Making an event takes the host longer than recording it, and happens in its first
        ``record``.
        """
        self._spare = [
            torch.cuda.Event(enable_timing=True) for _ in range(min(marks, MOST_RESERVED))
        ]
        for event in self._spare:
            event.record(self._stream)
        self.settle()

    def mark(self) -> Any:
        """Return a point in the device's timeline."""
        event = self._spare.pop() if self._spare else torch.cuda.Event(enable_timing=True)
        event.record(self._stream)
        return event

    def settle(self) -> None:
        """Wait for the device; called once at the end of an epoch."""
        torch.cuda.synchronize()

    def seconds(self, first: Any, second: Any) -> float:
        """Return the seconds between two marks; the events give milliseconds."""
        return float(first.elapsed_time(second)) / 1000.0


Clock = HostClock | CudaClock


def clock_for(device: torch.device) -> Clock:
    """Return the clock that sees the work of ``device``."""
    return CudaClock() if device.type == "cuda" else HostClock()


@dataclass
class EpochTimes:
    """The marks of one epoch's training, and what they say once they are read, in seconds."""

    started: float
    start: Any
    # Two lists instead of pairs: a step makes no object that the garbage collector has to follow.
    names: list[str] = field(default_factory=list)
    marks: list[Any] = field(default_factory=list)
    images: list[int] = field(default_factory=list)
    end: Any = None
    train_seconds: float = 0.0
    loader_start_seconds: float = 0.0
    loader_end_seconds: float = 0.0
    synchronise_seconds: float = 0.0
    steps: list[Step] = field(default_factory=list)

    def read(self, clock: Clock, number: int) -> None:
        """Set the steps of epoch ``number``, and the time from the last one to the end."""
        phases, before = dict.fromkeys(PHASES, 0.0), self.start
        for phase, mark in zip(self.names, self.marks, strict=True):
            if phase:
                phases[phase] += clock.seconds(before, mark)
                before = mark
                continue
            values = {f"{name}_seconds": round(seconds, 7) for name, seconds in phases.items()}
            self.steps.append(
                Step(epoch=number, images=self.images[len(self.steps)], warm_up=False, **values)
            )
            phases = dict.fromkeys(PHASES, 0.0)
        self.loader_end_seconds = clock.seconds(before, self.end)


class StepRecorder:
    """Collects the marks of every epoch and turns them into steps after the last: reading an event
    costs time."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._epochs: list[EpochTimes] = []

    def reserve(self, steps: int, epochs: int) -> None:
        """Make the marks of so many steps and epochs beforehand, where that saves time later."""
        self.clock.reserve(steps * len(PHASES) + 2 * epochs)

    def begin(self) -> None:
        """Start an epoch's training: the first step's data wait counts from here."""
        now = time.perf_counter()
        epoch = EpochTimes(now, self.clock.mark())
        self._epochs.append(epoch)
        self._names, self._marks, self._images = epoch.names, epoch.marks, epoch.images

    @contextmanager
    def loader_start(self) -> Iterator[None]:
        """Time the code that makes the loader's iterator."""
        started = time.perf_counter()
        yield
        self._epochs[-1].loader_start_seconds = time.perf_counter() - started

    def mark(self, phase: str) -> None:
        """Mark the end of ``phase``."""
        self._names.append(phase)
        self._marks.append(self.clock.mark())

    def end_step(self, images: int) -> None:
        """Mark the end of a step of ``images`` images."""
        self._images.append(images)
        self._names.append("")
        self._marks.append(None)

    def end(self) -> None:
        """Mark the end of an epoch's training, and return once the device has finished it too."""
        epoch = self._epochs[-1]
        epoch.end = self.clock.mark()
        waited = time.perf_counter()
        self.clock.settle()
        now = time.perf_counter()
        epoch.synchronise_seconds, epoch.train_seconds = now - waited, now - epoch.started

    def read(self) -> list[EpochTimes]:
        """Return the times of every epoch, in order. Call it once, outside the timed code."""
        for number, epoch in enumerate(self._epochs, start=1):
            epoch.read(self.clock, number)
        return self._epochs


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

    def timeline(self) -> Timeline:
        """Return the parts. Each field of :class:`Timeline` but the first needs its mark."""
        parts = {f"{name}_seconds": seconds for name, seconds in self._seconds.items()}
        return Timeline(start_seconds=max(0.0, self._since_start), **parts)


def mark_warm_up(steps: list[Step], stages: list[str]) -> list[Step]:
    """Return the steps with the first slow ones of each stage marked as warm-up.

    ``stages[i]`` is the stage of epoch ``i + 1``. The first step of a stage is always warm-up: it
    pays for the loader's start, the allocator and the first use of each kernel. The next steps are
    warm-up while they take more than 1.5 times the median of the stage's second half, up to half of
    the stage.
    """
    marked: list[Step] = []
    for stage in dict.fromkeys(stages):
        group = [step for step in steps if stages[step.epoch - 1] == stage]
        settled = [step.seconds for step in group[len(group) // 2 :]]
        limit = 1.5 * median_high(settled) if settled else 0.0
        slow = 1
        while slow < len(group) // 2 and group[slow].seconds > limit:
            slow += 1
        marked += [
            step.model_copy(update={"warm_up": index < slow}) for index, step in enumerate(group)
        ]
    return marked
