"""Times of phases: by the clock on a CPU, by CUDA events on a GPU. Nothing is synchronised inside a step."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from study.measure.samples import PHASES, Step

MOST_RESERVED = 200_000
"""Events made before training; a longer one makes the rest as it goes."""


class HostClock:
    """Marks are readings of the host's clock; the host does the work itself, so they are exact."""

    def reserve(self, marks: int) -> None:
        """Nothing to prepare."""

    def mark(self) -> Any:
        """A point in time."""
        return time.perf_counter()

    def settle(self) -> None:
        """Wait until every mark can be read."""

    def seconds(self, first: Any, second: Any) -> float:
        """Seconds between two marks."""
        return float(second - first)


class CudaClock:
    """Marks are events in the device's own queue: the host runs ahead, the device tells when it got there."""

    def __init__(self) -> None:
        self._spare: list[torch.cuda.Event] = []
        # Named once: looking the current stream up takes the host as long as recording the event.
        self._stream = torch.cuda.current_stream()

    def reserve(self, marks: int) -> None:
        """Make the events beforehand: making one takes the host longer than recording it, and it comes in the first
        ``record``."""
        self._spare = [torch.cuda.Event(enable_timing=True) for _ in range(min(marks, MOST_RESERVED))]
        for event in self._spare:
            event.record(self._stream)
        self.settle()

    def mark(self) -> Any:
        """A point in the device's timeline."""
        event = self._spare.pop() if self._spare else torch.cuda.Event(enable_timing=True)
        event.record(self._stream)
        return event

    def settle(self) -> None:
        """Wait for the device; called once at the end of an epoch."""
        torch.cuda.synchronize()

    def seconds(self, first: Any, second: Any) -> float:
        """Seconds between two marks; the events give milliseconds."""
        return float(first.elapsed_time(second)) / 1000.0


Clock = HostClock | CudaClock


def clock_for(device: torch.device) -> Clock:
    """The clock that sees what ``device`` does."""
    return CudaClock() if device.type == "cuda" else HostClock()


@dataclass(frozen=True)
class EpochTimes:
    """What the recorder tells of an epoch's training."""

    steps: list[Step]
    train_seconds: float
    loader_start_seconds: float
    loader_end_seconds: float
    synchronise_seconds: float


def marks_of(steps: int, epochs: int) -> int:
    """How many marks so many steps and epochs make."""
    return steps * len(PHASES) + 2 * epochs


class StepRecorder:
    """Collects the marks of every epoch, and turns them into steps when all are over: reading an event costs time."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._epochs: list[_Epoch] = []

    def begin(self) -> None:
        """An epoch's training starts: the first step's data wait counts from here."""
        now = time.perf_counter()
        self._epochs.append(_Epoch(now, self.clock.mark()))
        epoch = self._epochs[-1]
        self._names, self._marks, self._images = epoch.names, epoch.marks, epoch.images

    @contextmanager
    def loader_start(self) -> Iterator[None]:
        """Around what makes the loader's iterator."""
        started = time.perf_counter()
        yield
        self._epochs[-1].loader_start_seconds = time.perf_counter() - started

    def mark(self, phase: str) -> None:
        """The phase ends here."""
        self._names.append(phase)
        self._marks.append(self.clock.mark())

    def end_step(self, images: int) -> None:
        """The step of ``images`` images is complete."""
        self._images.append(images)
        self._names.append("")
        self._marks.append(None)

    def end(self) -> None:
        """The epoch's training is over; returns when it is on the device too."""
        epoch = self._epochs[-1]
        epoch.end = self.clock.mark()
        waited = time.perf_counter()
        self.clock.settle()
        now = time.perf_counter()
        epoch.synchronise_seconds, epoch.train_seconds = now - waited, now - epoch.started

    def read(self) -> list[EpochTimes]:
        """Every epoch, in order. Call it once, outside of what is timed."""
        return [self._read(epoch, number) for number, epoch in enumerate(self._epochs, start=1)]

    def _read(self, epoch: "_Epoch", number: int) -> EpochTimes:
        steps: list[Step] = []
        phases = dict.fromkeys(PHASES, 0.0)
        before = epoch.start
        for phase, mark in zip(epoch.names, epoch.marks, strict=True):
            if phase:
                phases[phase] += self.clock.seconds(before, mark)
                before = mark
                continue
            values = {f"{name}_seconds": round(seconds, 7) for name, seconds in phases.items()}
            steps.append(Step(epoch=number, images=epoch.images[len(steps)], warm_up=False, **values))
            phases = dict.fromkeys(PHASES, 0.0)
        return EpochTimes(
            steps,
            epoch.train_seconds,
            epoch.loader_start_seconds,
            self.clock.seconds(before, epoch.end),
            epoch.synchronise_seconds,
        )


@dataclass
class _Epoch:
    started: float
    start: Any
    # Two lists, no pairs: a step makes nothing that the garbage collector has to follow.
    names: list[str] = field(default_factory=list)
    marks: list[Any] = field(default_factory=list)
    images: list[int] = field(default_factory=list)
    end: Any = None
    train_seconds: float = 0.0
    loader_start_seconds: float = 0.0
    synchronise_seconds: float = 0.0
