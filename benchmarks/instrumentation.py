"""What measuring costs: our loop with its clock and progress against the same loop bare, and what the clock says.

    python -m benchmarks.instrumentation --device cuda --batch-sizes 16 64 256

Our loop trains on images that lie on the device, stock fastai (--loop fastai) with its loader in the same process; both
with and without the marks in one process, in pairs whose order is drawn. Printed for each batch
size: the instrumented epoch's time over the bare one's, the measured step time over the bare loop's, and (on a GPU) the
steps' sum over one pair of CUDA events around the whole epoch; each as the median of the pairs with an exact 95%
interval, and as their mean. Short epochs and many pairs (--pairs 200 --steps 10) see through a noisy host.

--by-step compares steps in place of epochs: of every three steps, in an order drawn anew, one is instrumented and two
are bare, and the host's time of each is taken. Where the host's launching limits the step, this sees through noise that
whole epochs cannot; the second bare step over the first is the null, which must be 1.
"""

import argparse
import contextlib
import io
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

from study.artifacts.samples import PHASES
from study.config.settings import Settings
from study.data.decode import ImageSet
from study.training.common import ProgressLines
from study.training.instruments.clock import Clock, StepRecorder, marks_of
from study.training.loops.contract import TrainingJob
from study.training.loops.fastai.loop import Measure, make_dataloaders, make_learner
from study.training.loops.loaders import make_loaders
from study.training.loops.schedule import stages
from study.training.loops.torch.loop import Trainer
from study.training.models import pretrained


class Silent(StepRecorder):
    """A recorder that records nothing: the loop runs bare."""

    def begin(self) -> None:
        """Nothing."""

    @contextlib.contextmanager
    def loader_start(self) -> Iterator[None]:
        """Nothing."""
        yield

    def mark(self, phase: str) -> None:
        """Nothing."""

    def end_step(self, images: int) -> None:
        """Nothing."""

    def end(self) -> None:
        """Wait for the device, as whoever times an epoch must."""
        self.clock.settle()


def make_job(
    loop: str, device: torch.device, size: int, batch_size: int, steps: int, training: dict[str, Any]
) -> TrainingJob:
    """A ResNet-18 and random images of ``size`` pixels; an epoch is ``steps`` steps. ``training`` has further keys."""
    count = batch_size * steps + 2
    pixels = np.random.default_rng(1).integers(0, 256, (size, size, 3), dtype=np.uint8)
    images = ImageSet([pixels] * count, [n % 2 for n in range(count)], list(range(count - 2)), [0, 1], ["a", "b"])
    settings = Settings.model_validate(
        {
            "device": device.type,
            "dataset": {"images": count, "image_size": size},
            "training": {"loop": loop, "batch_size": batch_size, "freeze_epochs": 0, "epochs": 1} | training,
            "loader": {"kind": "device"} if loop == "torch" else {"workers": 0},
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        weights = pretrained.decide("resnet18", "none", 1, Path(folder))
    return TrainingJob(settings, images, weights, None, device, 1, lambda done, total, words: None)


class EveryThird(StepRecorder):
    """Records one step of every three; each step's seconds of the host are collected by what the step was."""

    KINDS = ("instrumented", "bare", "null")

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.blocks: list[dict[str, float]] = []
        self._progress = ProgressLines()

    def begin(self) -> None:
        """An epoch starts with a block of its own."""
        super().begin()
        self._order: list[str] = []
        self._block: dict[str, float] = {}
        self._next(time.perf_counter())

    def mark(self, phase: str) -> None:
        """Nothing in a bare step."""
        if self._kind == "instrumented":
            super().mark(phase)

    def end_step(self, images: int) -> None:
        """Nothing in a bare step."""
        if self._kind == "instrumented":
            super().end_step(images)

    def progress(self, done: int, total: int, words: str) -> None:
        """The last of a step: its time is known."""
        if self._kind == "instrumented":
            self._progress(done, total, words)
        now = time.perf_counter()
        self._block[self._kind] = now - self._since
        if len(self._block) == len(self.KINDS):
            self.blocks.append(self._block)
            self._block = {}
        self._next(now)

    def _next(self, now: float) -> None:
        self._order = self._order or random.sample(self.KINDS, len(self.KINDS))
        self._kind, self._since = self._order.pop(), now


class Ours:
    """Our loop on images that lie on the device."""

    def __init__(self, job: TrainingJob) -> None:
        torch.backends.cudnn.benchmark = True
        self.trainer = Trainer(job, make_loaders(job.images, job.settings, job.device, 1))
        self.recorder = self.trainer.recorder

    def blocks(self) -> list[dict[str, float]]:
        """An epoch's steps by threes, without the first three, which wait for the loader."""
        trainer, recorder = self.trainer, EveryThird(self.recorder.clock)
        trainer.recorder, trainer.done = recorder, 0
        trainer.job = TrainingJob(**{**trainer.job.__dict__, "progress": recorder.progress})
        recorder.clock.reserve(marks_of(trainer.total_steps, 1))
        stage = stages(trainer.job.settings, len(trainer.groups))[0]
        timed(recorder.clock, lambda: trainer.train_epoch(stage, 0, 1), None)
        return recorder.blocks[1:]

    def epoch(self, instrumented: bool) -> dict[str, float]:
        """Seconds of one epoch, by the host's clock and by CUDA events around it; of its steps where instrumented."""
        trainer, clock = self.trainer, self.recorder.clock
        trainer.recorder = StepRecorder(clock) if instrumented else Silent(clock)
        progress: Callable[[int, int, str], None] = (
            ProgressLines() if instrumented else (lambda done, total, words: None)
        )
        trainer.job = TrainingJob(**{**trainer.job.__dict__, "progress": progress})
        trainer.done = 0
        if instrumented:
            clock.reserve(marks_of(trainer.total_steps, 1))
        stage = stages(trainer.job.settings, len(trainer.groups))[0]
        return timed(clock, lambda: trainer.train_epoch(stage, 0, 1), trainer.recorder if instrumented else None)


class Fastai:
    """Stock fastai with and without the callback; its loader works in the same process."""

    def __init__(self, job: TrainingJob) -> None:
        self.job = job
        self.learner = make_learner(job, make_dataloaders(job))
        self.recorder = Measure(job).recorder

    def epoch(self, instrumented: bool) -> dict[str, float]:
        """As :meth:`Ours.epoch`, the validation of two images included in both."""
        clock = self.recorder.clock
        if not instrumented:
            return timed(clock, lambda: self.learner.fit(1, 1e-3), None)
        measure = Measure(TrainingJob(**{**self.job.__dict__, "progress": ProgressLines()}))
        measure.recorder = StepRecorder(clock)
        clock.reserve(marks_of(len(self.learner.dls.train), 1))
        with measure.loader_marks():
            return timed(clock, lambda: self.learner.fit(1, 1e-3, cbs=[measure]), measure.recorder)


def timed(clock: Clock, work: Callable[[], object], recorder: StepRecorder | None) -> dict[str, float]:
    """Seconds of ``work``, by the host's clock and by the marks around it; of the steps that ``recorder`` saw."""
    clock.settle()
    with contextlib.redirect_stdout(io.StringIO()):
        started, first = time.perf_counter(), clock.mark()
        work()
        last = clock.mark()
        clock.settle()
        seconds = time.perf_counter() - started
    found = {"seconds": seconds, "events": clock.seconds(first, last)}
    if recorder:
        found["steps"] = sum(step.seconds for step in recorder.read()[0].steps)
    return found


def marks_seconds(clock: Clock, repetitions: int = 2000) -> float:
    """What the marks and the progress of one step take of the host, by themselves."""
    recorder, progress = StepRecorder(clock), ProgressLines()
    with contextlib.redirect_stdout(io.StringIO()):
        recorder.clock.reserve(marks_of(repetitions, 1))
        recorder.begin()
        started = time.perf_counter()
        for done in range(repetitions):
            for phase in PHASES:
                recorder.mark(phase)
            recorder.end_step(1)
            progress(done, repetitions + 1, "epoch 1 (unfrozen)")
        seconds = time.perf_counter() - started
        recorder.end()
    return seconds / repetitions


def ratio(above: list[float], below: list[float]) -> str:
    """Median of the pairs' ratios with its exact 95% interval by order statistics, and their mean with a t interval.

    The median stands where other guests of a machine stretch a pair; the mean is what such a machine costs.
    """
    ratios = np.asarray(above) / np.asarray(below)
    middle, logs = stats.quantile_test(ratios, q=1.0).confidence_interval(0.95), np.log(ratios)
    reach = float(stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / len(logs) ** 0.5)
    low, high = np.exp(logs.mean() - reach), np.exp(logs.mean() + reach)
    return (
        f"{np.median(ratios):.4f} ({middle.low:.4f} to {middle.high:.4f}), "
        f"mean {np.exp(logs.mean()):.4f} ({low:.4f} to {high:.4f})"
    )


def by_step(trained: Ours, epochs: int) -> str:
    """What marks and progress add to a step of the host, from steps side by side."""
    trained.blocks()
    blocks = [block for _ in range(epochs) for block in trained.blocks()]
    kinds = {kind: [block[kind] for block in blocks] for kind in EveryThird.KINDS}
    return (
        f"{1000 * np.median(kinds['bare']):.3f} ms of the host a step, {len(blocks)} blocks; "
        f"instrumented over bare {ratio(kinds['instrumented'], kinds['bare'])}; "
        f"bare over bare {ratio(kinds['null'], kinds['bare'])}"
    )


def by_epoch(trained: Ours | Fastai, pairs: int, steps: int) -> str:
    """What measuring adds to an epoch of so many steps, and what the measured steps say of it, from pairs."""
    for instrumented in (False, True):
        trained.epoch(instrumented)
    found: dict[bool, list[dict[str, float]]] = {True: [], False: []}
    for _ in range(pairs):
        for instrumented in random.sample((True, False), 2):
            found[instrumented].append(trained.epoch(instrumented))
    bare, ours = [e["seconds"] for e in found[False]], [e["seconds"] for e in found[True]]
    measured, events = [e["steps"] for e in found[True]], [e["events"] for e in found[True]]
    return (
        f"{1000 * np.median(bare) / steps:.3f} ms a step; "
        f"instrumented over bare {ratio(ours, bare)}; measured steps over bare {ratio(measured, bare)}; "
        f"measured steps over the clock around the epoch {ratio(measured, events)}; "
        f"the marks alone take {1e6 * marks_seconds(trained.recorder.clock):.1f} us of the host a step"
    )


def main() -> None:
    """Print a line for each batch size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--loop", choices=["torch", "fastai"], default="torch")
    parser.add_argument("--by-step", action="store_true", help="compare steps in place of epochs (our loop only)")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[16, 32, 64, 128, 256])
    parser.add_argument("--pairs", type=int, default=20, help="pairs of epochs; by step, epochs")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--image-size", type=int, default=192)
    parser.add_argument(
        "--training", type=json.loads, default={}, help="further keys, such as '{\"cuda_graph\": true}'"
    )
    options: Any = parser.parse_args()
    if options.by_step and options.loop != "torch":
        parser.error("--by-step needs --loop torch")
    device = torch.device(options.device)
    for batch_size in options.batch_sizes:
        job = make_job(options.loop, device, options.image_size, batch_size, options.steps, options.training)
        trained: Ours | Fastai = Ours(job) if options.loop == "torch" else Fastai(job)
        if options.by_step and isinstance(trained, Ours):
            print(f"batch size {batch_size}: {by_step(trained, options.pairs)}", flush=True)
        else:
            print(f"batch size {batch_size}: {by_epoch(trained, options.pairs, options.steps)}", flush=True)


if __name__ == "__main__":
    main()
