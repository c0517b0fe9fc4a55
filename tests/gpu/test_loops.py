"""What only a GPU can show. Run by themselves on a GPU machine: ``STUDY_TEST_GPU=1 python -m pytest tests/gpu``."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from study.artifacts.samples import PHASES, Measurement
from study.data import decode as decoding
from study.training.loops import decoding as loop_decoding
from study.training.loops.contract import TrainingJob
from study.training.loops.fastai import loop as fastai_loop
from tests.gpu.conftest import NEEDS_GPU
from tests.unit.training.gloo_ranks import LOOPS
from tests.unit.training.test_loops import make_job, transfer_run

pytestmark = NEEDS_GPU

SLEEP = 0.1
"""Planted seconds of the loader for each image; six images a batch."""


def gpu_job(folder: Path, loop: str, **changes: Any) -> TrainingJob:
    run = transfer_run(loop, **({"loader": {"kind": "workers", "workers": 0}} | changes))
    job = make_job(folder, run)
    settings = job.settings.model_copy(update={"device": "cuda"})
    return replace(job, settings=settings, device=torch.device("cuda"))


def phase_seconds(measured: Measurement) -> dict[str, float]:
    """Median over the steps that are no epoch's first, by phase."""
    later = [s for before, s in zip(measured.steps, measured.steps[1:], strict=False) if before.epoch == s.epoch]
    return {phase: float(np.median([getattr(s, f"{phase}_seconds") for s in later])) for phase in PHASES}


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_a_sleep_in_the_loader_is_a_wait_for_data_and_nothing_else(
    tmp_path: Path, loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sleep lasts as long as it was asked to, or longer; nothing else in a step takes as long."""
    job = gpu_job(tmp_path, loop, dataset={"images": 60, "image_size": 40})
    LOOPS[loop](job)  # warm

    def slow(stock: Callable[..., Any]) -> Callable[..., Any]:
        def sleepy(*arguments: Any) -> Any:
            time.sleep(SLEEP)
            return stock(*arguments)

        return sleepy

    monkeypatch.setattr(loop_decoding, "decode", slow(decoding.decode))
    monkeypatch.setattr(fastai_loop, "as_stored", slow(fastai_loop.as_stored))
    slept = phase_seconds(LOOPS[loop](job))
    assert slept["data_wait"] >= 6 * SLEEP
    assert all(slept[phase] < 6 * SLEEP for phase in PHASES if phase != "data_wait")


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_the_phases_add_up_to_the_epoch_within_two_percent(tmp_path: Path, loop: str) -> None:
    job = gpu_job(tmp_path, loop, dataset={"images": 600, "image_size": 128}, training={"batch_size": 32})
    measured = LOOPS[loop](job)
    for number, epoch in enumerate(measured.epochs, start=1):
        total = sum(s.seconds for s in measured.steps if s.epoch == number) + epoch.loader_end_seconds
        assert total == pytest.approx(epoch.train_seconds, rel=0.02)
    memory = measured.memory
    assert 0 < (memory.device_allocated_bytes or 0) <= (memory.device_reserved_bytes or 0)
    assert (memory.device_used_bytes or 0) > 0


def test_a_slow_kernel_is_in_the_phase_that_launched_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host launches it and goes on: the events in the device's queue see it in the forward pass all the same."""
    job = gpu_job(tmp_path, "torch", loader={"kind": "device"}, dataset={"images": 60, "image_size": 40})
    plain = phase_seconds(LOOPS["torch"](job))
    forward = torch.nn.Linear.forward
    weight = torch.randn(8192, 8192, device="cuda")

    def slow(self: torch.nn.Linear, inputs: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            torch.mm(weight, weight)
        return forward(self, inputs)

    monkeypatch.setattr(torch.nn.Linear, "forward", slow)
    slowed = phase_seconds(LOOPS["torch"](job))
    extra = slowed["forward"] - plain["forward"]
    assert extra > 0.02
    assert all(slowed[phase] - plain[phase] < 0.2 * extra for phase in PHASES if phase != "forward")
