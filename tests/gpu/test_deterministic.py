"""Two trainings of ResNet-18 from one seed are equal to the last bit on a GPU. These tests need one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from study.training.common import loop_of
from tests.gpu.conftest import NEEDS_GPU
from tests.gpu.test_loops import gpu_job

pytestmark = NEEDS_GPU

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
    job = gpu_job(tmp_path, loop, training=plain, loader=loader, dataset={"images": 100, "image_size": 96})
    changed = job.settings.training.model_copy(update=training)  # the plan of a test is for a CPU, which has no graphs
    job = replace(job, settings=job.settings.model_copy(update={"training": changed}))
    sums = []
    for _ in range(2):
        torch._dynamo.reset()
        measured = loop_of(job.settings)(job)
        assert measured.in_force
        assert measured.in_force.deterministic
        sums.append(measured.trained_sha256)
    assert sums[0] == sums[1] != measured.body_sha256
