"""What only a GPU can show. Run by themselves on a GPU machine: ``STUDY_TEST_GPU=1 python -m pytest
tests/gpu``."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from study.artifacts.samples import Measurement
from study.config.times import PHASES
from study.training.instruments.machine import set_fp32
from study.training.loops.contract import TrainingJob
from tests.gpu.conftest import NEEDS_GPU
from tests.unit.training.gloo_ranks import LOOPS
from tests.unit.training.test_loops import make_job, transfer_run

pytestmark = NEEDS_GPU


def gpu_job(folder: Path, loop: str, **changes: Any) -> TrainingJob:
    run = transfer_run(loop, **({"loader": {"kind": "workers", "workers": 0}} | changes))
    job = make_job(folder, run)
    settings = job.settings.model_copy(update={"device": "cuda"})
    set_fp32(settings.training.precision)  # as the process of a run does
    return replace(job, settings=settings, device=torch.device("cuda"))


def phase_seconds(measured: Measurement) -> dict[str, float]:
    """Median over the steps that are no epoch's first, by phase."""
    later = [
        s
        for before, s in zip(measured.steps, measured.steps[1:], strict=False)
        if before.epoch == s.epoch
    ]
    return {
        phase: float(np.median([getattr(s, f"{phase}_seconds") for s in later])) for phase in PHASES
    }


def test_a_slow_kernel_is_in_the_phase_that_launched_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host launches it and goes on: the events in the device's queue see it in the forward pass
    all the same."""
    job = gpu_job(
        tmp_path, "torch", loader={"kind": "device"}, dataset={"images": 60, "image_size": 40}
    )
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


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_what_is_in_force_on_a_gpu_is_what_was_asked_for(tmp_path: Path, loop: str) -> None:
    measured = LOOPS[loop](gpu_job(tmp_path, loop, dataset={"images": 60, "image_size": 40}))
    assert measured.in_force
    assert measured.in_force.devices == ["cuda:0"]
