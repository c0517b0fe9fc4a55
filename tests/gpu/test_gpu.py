"""What only a GPU can show. Run by themselves on a GPU machine: ``STUDY_TEST_GPU=1 python -m pytest tests/gpu``."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray

from study import devices, launch, timings
from study.data import images, loaders, step
from study.measure.samples import PHASES, Measurement
from study.models import decide
from study.plan import Place, Plan, write_plans
from study.stats.warnings import warnings_of
from study.train import fastai_loop
from study.train.schedule import TrainingJob
from tests.conftest import plan_at
from tests.unit.test_loops import LOOPS, make_job, tiny_run

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not os.environ.get("STUDY_TEST_GPU") or not torch.cuda.is_available(),
        reason="needs an NVIDIA GPU, and STUDY_TEST_GPU=1",
    ),
]

SLEEP = 0.02
HERE: dict[str, str | None] = {"cpu": None, "cuda": None}


def gpu_job(folder: Path, loop: str, **changes: Any) -> TrainingJob:
    run = tiny_run(loop, **({"loader": {"kind": "workers", "workers": 0}} | changes))
    job = make_job(folder, run)
    settings = job.settings.model_copy(update={"device": "cuda"})
    return TrainingJob(**{**job.__dict__, "settings": settings, "device": torch.device("cuda")})


def phase_seconds(measured: Measurement) -> dict[str, float]:
    """Median over the steps that are no epoch's first, by phase."""
    later = [s for before, s in zip(measured.steps, measured.steps[1:], strict=False) if before.epoch == s.epoch]
    return {phase: float(np.median([getattr(s, f"{phase}_seconds") for s in later])) for phase in PHASES}


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_a_sleep_in_the_loader_is_a_wait_for_data_and_nothing_else(
    tmp_path: Path, loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = gpu_job(tmp_path, loop, dataset={"images": 60, "image_size": 40})
    LOOPS[loop](job)  # warm
    plain = phase_seconds(LOOPS[loop](job))
    decode, stored = images.decode, fastai_loop.as_stored

    def slow_decode(*arguments: Any) -> NDArray[np.uint8]:
        time.sleep(SLEEP)
        return decode(*arguments)

    def slow_stored(*arguments: Any) -> Any:
        time.sleep(SLEEP)
        return stored(*arguments)

    monkeypatch.setattr(loaders, "decode", slow_decode)
    monkeypatch.setattr(fastai_loop, "as_stored", slow_stored)
    slept = phase_seconds(LOOPS[loop](job))
    assert slept["data_wait"] - plain["data_wait"] > 0.9 * 6 * SLEEP
    assert all(slept[phase] - plain[phase] < 0.2 * 6 * SLEEP for phase in PHASES if phase != "data_wait")


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_the_phases_add_up_to_the_epoch_within_two_percent(tmp_path: Path, loop: str) -> None:
    job = gpu_job(tmp_path, loop, dataset={"images": 600, "image_size": 128}, training={"batch_size": 32})
    measured = LOOPS[loop](job)
    for number, epoch in enumerate(measured.epochs, start=1):
        total = sum(s.seconds for s in measured.steps if s.epoch == number) + epoch.loader_end_seconds
        assert total == pytest.approx(epoch.train_seconds, rel=0.02)
    memory = measured.memory
    used = [memory.device_allocated_bytes, memory.device_reserved_bytes, memory.device_used_bytes]
    known = [value for value in used if value]
    assert len(known) == 3
    assert known == sorted(known)


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


@pytest.fixture
def other_process() -> Iterator[None]:
    """Another process that keeps the GPU busy, as somebody else's training would."""
    program = "import torch\na = torch.randn(8192, 8192, device='cuda')\nprint('on', flush=True)\nwhile True: a @ a"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    time.sleep(2)
    yield
    process.kill()
    process.wait()


def gpu_plan(results: Path, **changes: Any) -> Plan:
    """A plan on the GPU with its data and weights made."""
    values = {
        "factors": {"device": ["cuda"]},
        "curve": None,
        "dataset": {"source": "generated", "images": 60},
    } | changes
    plan = plan_at(Place("none", "asked for"), absent=HERE, **values)
    write_plans([plan], results)
    for run in plan.runs:
        step.make(results / "tiny" / "plan.json", run.dataset, results)
        decision = decide(run.settings.model.name, "none", run.settings.seed, results / "weights")
        path = results / "tiny" / "weights" / f"{run.weights}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(decision.model_dump_json(), encoding="utf-8")
    return plan


def table(plan: Plan, results: Path) -> pd.DataFrame:
    """The table of timings with the telemetry, and each run launched."""
    records = {
        run.name: launch.launch(plan, run, results, 1, results / "run.log", f"run {run.position}") for run in plan.runs
    }
    return timings.table(plan, records, timings.read_telemetry(plan, records, results))


def test_a_second_process_on_the_gpu_is_flagged(tmp_path: Path, other_process: None) -> None:
    plan = gpu_plan(tmp_path)
    frame = table(plan, tmp_path)
    print(frame[["other_device_processes", "device_percent_before"]].to_string())
    assert "Other processes computed on the GPU when 1 run(s) began." in warnings_of(
        plan.study, frame, "fit_seconds", None
    )


def test_a_gpu_alone_is_not_flagged_and_its_energy_and_ceilings_are_known(tmp_path: Path) -> None:
    assert devices.activity() is not None
    time.sleep(2)
    training = {"batch_size": 32, "epochs": 60, "freeze_epochs": 0}
    dataset = {"source": "generated", "images": 600, "image_size": 128}
    plan = gpu_plan(tmp_path, dataset=dataset, training=training, loader={"kind": "device"})
    frame = table(plan, tmp_path)
    assert not [text for text in warnings_of(plan.study, frame, "fit_seconds", None) if "Other processes" in text]
    row = frame.iloc[0]
    print(row.to_string())
    assert row["outcome"] == "ok"
    assert row["energy_joules"] > 0
    assert row["energy_method"] in ("counter", "power")
    assert row["images_per_joule"] > 0
    assert row["gpu_utilisation_percent"] > 20
    assert 0 < row["ceiling_share"] < 1


def test_out_of_memory_is_a_result_with_the_size_that_was_asked_for(tmp_path: Path) -> None:
    dataset = {"source": "generated", "images": 60, "image_size": 4096}
    training = {"batch_size": 48, "epochs": 1, "freeze_epochs": 0}
    plan = gpu_plan(tmp_path, dataset=dataset, training=training, loader={"kind": "device"})
    frame = table(plan, tmp_path)
    assert frame.iloc[0]["outcome"] == "out_of_memory"
    assert "Tried to allocate" in frame.iloc[0]["message"]
