"""Strategies over nccl, launched as the pipeline does: a process for each GPU. One GPU shows the
half of it."""

import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from study.artifacts.record import Record
from study.artifacts.samples import Measurement
from tests.conftest import MNIST_CNN
from tests.gpu.conftest import GPUS, NEEDS_GPU
from tests.gpu.test_launched import gpu_plan
from tests.timings import table
from tests.unit.host.test_launch import measured

pytestmark = NEEDS_GPU
DIGITS = {"source": "generated", "images": 1200, "classes": 2, "channels": 1, "image_size": 28}


def digits(**training: Any) -> dict[str, Any]:
    """A network without batch normalisation; images for every GPU in each batch."""
    values = {"freeze_epochs": 0, "epochs": 3, "batch_size": 48 * GPUS, "precision": "fp32"}
    return {
        "dataset": DIGITS,
        "model": MNIST_CNN,
        "training": values | training,
        "loader": {"kind": "workers", "workers": 1},
    }


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_every_strategy_reaches_the_losses_of_one_process(tmp_path: Path, loop: str) -> None:
    strategies = ["single", "ddp", *(["ddp_two_nodes"] if GPUS > 1 and GPUS % 2 == 0 else [])]
    factors = {"device": ["cuda"], "training.strategy": strategies}
    plan = gpu_plan(tmp_path, **digits(loop=loop), factors=factors)
    records = {run.name: measured(plan, run, tmp_path) for run in plan.runs}
    print(table(plan, records).T.to_string())
    made = {str(record.settings.training.strategy): of(record) for record in records.values()}
    for strategy in strategies[1:]:
        replicas = made[strategy].replicas
        assert len(replicas) == GPUS
        assert all((replica.memory.device_allocated_bytes or 0) > 0 for replica in replicas)
        assert curve(made[strategy]) == pytest.approx(curve(made["single"]), rel=1e-3)


@pytest.mark.skipif(GPUS < 2, reason="needs two GPUs")
@pytest.mark.parametrize("strategy", ["ddp", "ddp_two_nodes"])
def test_a_killed_rank_is_a_recorded_failure_though_the_others_wait_for_it(
    tmp_path: Path, strategy: str
) -> None:
    training = {"strategy": strategy, "processes": 2, "epochs": 2000}
    plan = gpu_plan(tmp_path, **digits(**training), factors={"device": ["cuda"]})
    log = tmp_path / "run.log"
    killed: list[float] = []

    def kill() -> None:
        while not (log.is_file() and "epoch 2" in log.read_text()):
            time.sleep(0.1)
        for process in at_work("study.training.distributed.rank"):
            if process.environ().get("RANK") == "1":
                process.kill()
        killed.append(time.monotonic())

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    record = measured(plan, plan.runs[0], tmp_path)
    print(f"recorded {time.monotonic() - killed[0]:.1f} s after the death")
    assert (record.outcome, record.message) == ("failed", "rank 1 of 2 was ended by SIGKILL")
    assert at_work("study.training.distributed.ranks") == []


def at_work(module: str) -> list[psutil.Process]:
    return [
        one for one in psutil.process_iter(["cmdline"]) if module in (one.info["cmdline"] or [])
    ]


def of(record: Record) -> Measurement:
    assert record.outcome == "ok", record.message
    assert record.measurement is not None
    return record.measurement


def curve(measured: Measurement) -> list[float | None]:
    return [loss for epoch in measured.epochs for loss in (epoch.train_loss, epoch.valid_loss)]
