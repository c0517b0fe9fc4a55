"""Planted waits are found where they were planted, in both loops; warm-up, extremes and unrest are found too."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from study.analysis.table.steps import extreme_steps, settled, steady_steps, warm_up_extra
from study.artifacts.samples import PHASES, Measurement
from study.data import decode as decoding
from study.training.loops import loaders
from study.training.loops.fastai import loop as fastai_loop
from study.training.loops.loader_alone import loop as loader_alone
from study.training.loops.torch import loop as torch_loop
from tests.unit.training.test_loops import LOOPS, make_job, tiny_run
from tests.unit.training.test_measure import step

SLEEP = 0.02
"""Seconds in the loader for each image; six images a batch."""


def phase_seconds(measured: Measurement) -> dict[str, float]:
    """Median over the steps that are no epoch's first, by phase."""
    later = [s for before, s in zip(measured.steps, measured.steps[1:], strict=False) if before.epoch == s.epoch]
    return {phase: float(np.median([getattr(s, f"{phase}_seconds") for s in later])) for phase in PHASES}


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_a_sleep_in_the_loader_is_a_wait_for_data_and_nothing_else(
    tmp_path: Path, loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tiny_run(loop, loader={"kind": "workers", "workers": 0}, dataset={"images": 60, "image_size": 40})
    job = make_job(tmp_path, run)
    plain = phase_seconds(LOOPS[loop](job))
    if loop == "torch":
        stock = decoding.decode

        def slow(*arguments: Any) -> NDArray[np.uint8]:
            time.sleep(SLEEP)
            return stock(*arguments)

        monkeypatch.setattr(loaders, "decode", slow)
    else:
        original = fastai_loop.as_stored

        def slow_item(*arguments: Any) -> Any:
            time.sleep(SLEEP)
            return original(*arguments)

        monkeypatch.setattr(fastai_loop, "as_stored", slow_item)
    slept = phase_seconds(LOOPS[loop](job))
    assert slept["data_wait"] - plain["data_wait"] > 0.9 * 6 * SLEEP
    assert all(slept[phase] - plain[phase] < 0.5 * 6 * SLEEP for phase in PHASES if phase != "data_wait")


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_a_slow_step_is_an_extreme_and_no_other_is(tmp_path: Path, loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sleep of a second in one forward pass: in its step, in its phase."""
    run = tiny_run(loop, dataset={"images": 100, "image_size": 40}, training={"freeze_epochs": 0, "epochs": 1})
    count = 0
    forward = torch.nn.Conv2d.forward

    def sometimes_slow(self: torch.nn.Conv2d, inputs: torch.Tensor) -> torch.Tensor:
        nonlocal count
        if self.in_channels == 3 and self.training:  # the first layer, once a step
            count += 1
            if count == 10:
                time.sleep(1.0)
        return forward(self, inputs)

    monkeypatch.setattr(torch.nn.Conv2d, "forward", sometimes_slow)
    measured = LOOPS[loop](make_job(tmp_path, run))
    slowest = max(measured.steps, key=lambda s: s.seconds - s.data_wait_seconds)
    # fastai's summary of a model makes one forward pass of its own before training.
    assert measured.steps.index(slowest) in (8, 9)
    assert slowest.forward_seconds > 1.0
    assert extreme_steps([s.seconds for s in steady_steps(measured)]) >= 1


def test_extremes_are_half_as_long_again_as_the_median() -> None:
    assert extreme_steps([1.0, 1.0, 1.4, 1.0]) == 0
    assert extreme_steps([1.0, 1.0, 1.6, 1.0, 9.0]) == 2


@pytest.mark.parametrize(
    ("seconds", "steady"),
    [
        ([1.0] * 16, True),
        ([9.0, 5.0, *[1.0] * 14], True),
        ([1.0] * 5, None),  # too few to tell
        ([float(n) for n in range(16, 0, -1)], False),  # faster and faster to the end
        ([*[1.0] * 12, *[2.0] * 4], False),  # slower at the end
        ([*[9.0] * 8, *[1.0] * 8], False),  # warm-up up to the half
    ],
)
def test_a_run_that_never_settles_says_so(seconds: list[float], steady: bool | None) -> None:
    from study.training.measure.warm_up import mark_warm_up

    marked = mark_warm_up([step(s) for s in seconds], ["unfrozen"])
    assert settled(marked, ["unfrozen"]) is steady


def test_the_loader_alone_fetches_everything_and_trains_nothing(tmp_path: Path) -> None:
    run = tiny_run(loader={"kind": "alone", "workers": 1}, dataset={"images": 60, "image_size": 40})
    job = make_job(tmp_path, run)
    alone = loader_alone.train(job)
    both = torch_loop.train(job)
    assert [(e.images, e.steps) for e in alone.epochs] == [(e.images, e.steps) for e in both.epochs]
    assert all(s.seconds == s.data_wait_seconds for s in alone.steps)
    assert {e.accuracy for e in alone.epochs} == {None}
    assert alone.parameters == 0
    assert alone.workers == 1
    assert all(e.loader_start_seconds > 0 for e in alone.epochs)


def test_compilation_is_a_time_of_its_own_within_warm_up(tmp_path: Path) -> None:
    run = tiny_run(
        dataset={"images": 60, "channels": 1, "image_size": 16},
        training={"compile": True, "freeze_epochs": 0, "epochs": 2, "batch_size": 8},
    )
    measured = torch_loop.train(make_job(tmp_path, run))
    assert measured.compile_seconds is not None
    assert 0.5 * measured.compile_seconds < warm_up_extra(measured)
    steady = [s for s in measured.steps if not s.warm_up]
    assert sum(s.seconds for s in steady) < measured.compile_seconds
    assert measured.flops["unfrozen"].flop_per_image > 0


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_a_frozen_stage_computes_less_than_an_unfrozen_one(tmp_path: Path, loop: str) -> None:
    flops = LOOPS[loop](make_job(tmp_path, tiny_run(loop))).flops
    assert flops["frozen"].forward_flop_per_image == flops["unfrozen"].forward_flop_per_image
    assert flops["frozen"].backward_flop_per_image < flops["unfrozen"].backward_flop_per_image
