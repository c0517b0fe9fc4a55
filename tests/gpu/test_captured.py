"""Steps that are recorded as CUDA graphs train as eager or compiled ones do. These tests need a
GPU, as all here."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from study.artifacts.samples import Measurement
from study.training.common import loop_of
from study.training.loops.contract import TrainingJob
from study.training.loops.torch import loop as torch_loop
from tests.gpu.conftest import NEEDS_GPU
from tests.gpu.test_loops import gpu_job
from tests.unit.training.test_switches import losses_of

pytestmark = NEEDS_GPU
BF16 = {"precision": "bf16", "memory_format": "channels_last"}

CASES: dict[str, tuple[dict[str, Any], float]] = {
    "fp32": ({"precision": "fp32"}, 1e-4),
    "workers": ({"precision": "fp32", "loader": "workers"}, 1e-4),
    "threads": ({"precision": "fp32", "loader": "threads"}, 1e-4),
    "fused": ({"precision": "fp32", "optimizer_implementation": "fused"}, 1e-4),
    "channels_last": ({"precision": "fp32", "memory_format": "channels_last"}, 1e-4),
    "accumulated": ({"precision": "fp32", "gradient_accumulation": 2}, 1e-4),
    "auto": ({}, 1e-2),
    "bf16": (BF16, 3e-2),
    "bf16 fused": (BF16 | {"optimizer_implementation": "fused"}, 3e-2),
    "fp16": ({"precision": "fp16", "optimizer_implementation": "fused"}, 3e-2),
    "fp16 for_loop": (
        {"precision": "fp16", "optimizer_implementation": "for_loop", "gradient_accumulation": 2},
        3e-2,
    ),
}
"""Settings of both trainings, and how far a loss of the captured one may lie from the eager one's,
in units of the first."""


def trained(
    folder: Path, loader: str = "device", **training: Any
) -> tuple[list[float], Measurement]:
    """Two stages of two epochs, with a remainder batch in each."""
    captured = training.pop("cuda_graph", False)
    plain = {
        "drop_last": False,
        "batch_size": 6,
        "freeze_epochs": 2,
        "epochs": 2,
        "learning_rate": 1e-3,
    }
    plain |= {"cudnn_benchmark": False} | training
    kind = {"kind": loader} if loader == "device" else {"kind": loader, "workers": 2}
    job = gpu_job(
        folder, "torch", training=plain, loader=kind, dataset={"images": 50, "image_size": 64}
    )
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True)
    return losses_of(recording(job) if captured else job)


def recording(job: TrainingJob) -> TrainingJob:
    """The same training with captured steps; the plan of a test is for a CPU, which has none."""
    training = job.settings.training.model_copy(update={"cuda_graph": True})
    return replace(job, settings=job.settings.model_copy(update={"training": training}))


@pytest.mark.parametrize("case", CASES)
def test_captured_steps_follow_the_eager_losses_and_reach_the_eager_validation(
    tmp_path: Path, case: str
) -> None:
    training, tolerance = CASES[case]
    eager, measured = trained(tmp_path, **training)
    captured, other = trained(tmp_path, **training, cuda_graph=True)
    assert len(set(eager)) == len(eager)
    assert captured == pytest.approx(eager, abs=tolerance * eager[0])
    for epoch, wanted in zip(other.epochs, measured.epochs, strict=True):
        assert epoch.valid_loss == pytest.approx(wanted.valid_loss, abs=10 * tolerance * eager[0])
        assert epoch.accuracy == pytest.approx(wanted.accuracy, abs=0.11)  # one image of ten


@pytest.mark.parametrize("case", ["fp32", "accumulated", "bf16 fused", "fp16"])
def test_compiled_code_trains_alike_recorded_and_unrecorded(tmp_path: Path, case: str) -> None:
    training, tolerance = CASES[case]
    eager, _ = trained(tmp_path, **training)
    compiled = []
    for captured in (False, True):
        torch._dynamo.reset()  # what one training compiled counts against the limit of the other
        compiled.append(trained(tmp_path, **training, compile=True, cuda_graph=captured))
    (plain, measured), (recorded, other) = compiled
    assert recorded == pytest.approx(plain, abs=tolerance * eager[0])
    # Other rounding grows with each step where batch normalisation sees six images.
    assert plain[:6] == pytest.approx(eager[:6], abs=tolerance * eager[0])
    assert recorded != eager, "nothing was compiled: its rounding is another"
    for epoch, wanted in zip(other.epochs, measured.epochs, strict=True):
        assert epoch.valid_loss == pytest.approx(wanted.valid_loss, abs=10 * tolerance * eager[0])
    assert other.compile_seconds
    assert sum(step.graph_warm_up_seconds for step in other.steps) > 0


def test_a_recording_leaves_the_statistics_of_the_eager_training(tmp_path: Path) -> None:
    """Batches before a recording are no training: the running means are those of the steps
    alone."""
    found = []
    for captured in (False, True):
        training = {"batch_size": 6, "freeze_epochs": 0, "epochs": 1, "precision": "fp32"}
        job = gpu_job(
            tmp_path,
            "torch",
            training=training,
            loader={"kind": "device"},
            dataset={"image_size": 64},
        )
        torch.backends.cudnn.benchmark = (
            False  # the fastest algorithm may be another in the other training
        )
        torch.use_deterministic_algorithms(True)
        trainer, _ = torch_loop.train_model(recording(job) if captured else job)
        found.append(
            {name: buffer.double().cpu() for name, buffer in trainer.raw_model.named_buffers()}
        )
    for name, eager in found[0].items():
        assert torch.allclose(found[1][name], eager, rtol=1e-3, atol=1e-4), name


WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("torch", {}),
    "bf16, channels last, captured": (
        "torch",
        {
            "precision": "bf16",
            "memory_format": "channels_last",
            "cuda_graph": True,
            "optimizer_implementation": "fused",
        },
    ),
    "compiled and captured": ("torch", {"compile": True, "cuda_graph": True, "precision": "bf16"}),
}


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = False, True


@pytest.mark.parametrize("way", WAYS)
def test_one_seed_gives_the_same_weights_to_the_last_bit(tmp_path: Path, way: str) -> None:
    loop, training = WAYS[way]
    loader = {"kind": "workers", "workers": 0} if loop == "fastai" else {"kind": "device"}
    plain = {"batch_size": 16, "freeze_epochs": 1, "epochs": 2, "deterministic": True}
    job = gpu_job(
        tmp_path, loop, training=plain, loader=loader, dataset={"images": 100, "image_size": 96}
    )
    # the plan of a test is for a CPU, which has no graphs
    changed = job.settings.training.model_copy(update=training)
    job = replace(job, settings=job.settings.model_copy(update={"training": changed}))
    sums = []
    for _ in range(2):
        torch._dynamo.reset()
        measured = loop_of(job.settings)(job)
        assert measured.in_force
        assert measured.in_force.deterministic
        sums.append(measured.trained_sha256)
    assert sums[0] == sums[1] != measured.body_sha256
