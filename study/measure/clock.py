"""Times of phases: by the clock on a CPU, by CUDA events on a GPU. Nothing is synchronised inside a step."""

import time
from typing import Any

import torch

from study.measure.samples import PHASES, Step


class HostClock:
    """Marks are readings of the host's clock; the host does the work itself, so they are exact."""

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

    def mark(self) -> Any:
        """A point in the device's timeline."""
        event = torch.cuda.Event(enable_timing=True)
        event.record()
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


class StepRecorder:
    """Collects the marks of an epoch, and turns them into steps after the epoch."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._start: Any = None
        self._marks: list[tuple[str, Any]] = []
        self._images: list[int] = []

    def begin(self) -> None:
        """The epoch starts: the first step's data wait counts from here."""
        self._marks, self._images = [], []
        self._start = self.clock.mark()

    def mark(self, phase: str) -> None:
        """The phase ends here."""
        self._marks.append((phase, self.clock.mark()))

    def end_step(self, images: int) -> None:
        """The step of ``images`` images is complete."""
        self._images.append(images)
        self._marks.append(("", None))

    def finish(self, epoch: int) -> list[Step]:
        """The steps of the epoch, which is now over on the device too."""
        self.clock.settle()
        steps: list[Step] = []
        phases = dict.fromkeys(PHASES, 0.0)
        before = self._start
        for phase, mark in self._marks:
            if phase:
                phases[phase] += self.clock.seconds(before, mark)
                before = mark
                continue
            values = {f"{name}_seconds": round(seconds, 7) for name, seconds in phases.items()}
            steps.append(Step(epoch=epoch, images=self._images[len(steps)], warm_up=False, **values))
            phases = dict.fromkeys(PHASES, 0.0)
        return steps
