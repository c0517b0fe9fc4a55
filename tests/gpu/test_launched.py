"""Runs on a GPU, launched as the pipeline does, from a process that does not use the GPU itself."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from study.analysis.table import tables
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.artifacts.record_store import read_record
from study.base import devices
from study.base.files import write_whole
from study.host.engine.engine_choice import EngineChoice
from study.host.steps.prepare import make_dataset
from study.training.models.pretrained import decide
from tests import timings
from tests.conftest import TRANSFER, plan_at
from tests.gpu.conftest import NEEDS_GPU
from tests.unit.host.test_launch import measured

pytestmark = NEEDS_GPU

HERE: dict[str, str | None] = {"cpu": None, "cuda": None}
DATASET = {"source": "generated", "images": 60}


@pytest.fixture
def other_process() -> Iterator[None]:
    """Another process that keeps the GPU busy, as somebody else's training would."""
    program = (
        "import torch\na = torch.randn(8192, 8192, device='cuda')\nprint('on', "
        "flush=True)\nwhile True: a @ a"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    time.sleep(2)
    yield
    process.kill()
    process.wait()


def gpu_plan(results: Path, **changes: Any) -> Plan:
    """A plan on the GPU with its data and weights made."""
    values = (
        TRANSFER | {"factors": {"device": ["cuda"]}, "curve": None, "dataset": DATASET} | changes
    )
    counts = {device: devices.count(device) for device in HERE}
    plan = plan_at(EngineChoice("none", "asked for"), HERE, counts, **values)
    write_plans([plan], results)
    for run in plan.runs:
        make_dataset(plan, run.dataset, results)
        model, images = run.settings.model, run.settings.dataset
        shape = {"classes": images.classes, "channels": images.channels}
        decision = decide(model.name, "none", run.settings.seed, results / "weights", **shape)
        write_whole(Results(results).weights("tiny", run.weights), decision.model_dump_json())
    return plan


def table(plan: Plan, results: Path) -> pd.DataFrame:
    """The table of timings with the telemetry, and each run launched."""
    records = {run.name: measured(plan, run, results) for run in plan.runs}
    files = Results(results)
    sampled: dict[str, Any] = {
        run.name: tables.summary_of(records[run.name], files.telemetry(plan.name, run.file))
        for run in plan.runs
    }
    return timings.table(plan, records, sampled)


def test_a_second_process_on_the_gpu_is_seen(tmp_path: Path, other_process: None) -> None:
    plan = gpu_plan(tmp_path)
    assert measured(plan, plan.runs[0], tmp_path).other_device_processes == 1


def test_a_gpu_alone_is_seen_to_be_alone_and_its_energy_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STUDY_INSTRUMENTS")
    assert devices.activity() is not None
    time.sleep(2)
    training = {"batch_size": 32, "epochs": 60, "freeze_epochs": 0}
    dataset = {"source": "generated", "images": 600, "image_size": 128}
    plan = gpu_plan(tmp_path, dataset=dataset, training=training, loader={"kind": "device"})
    frame = table(plan, tmp_path)
    (record,) = Results(tmp_path).records("tiny").glob("*.json")
    assert read_record(record).other_device_processes == 0
    row = frame.iloc[0]
    print(row.to_string())
    assert row["outcome"] == "ok"
    assert row["energy_joules"] > 0
    assert row["images_per_joule"] > 0
    assert 0 < row["idle_watts"] < row["energy_joules"] / row["fit_seconds"]
    assert row["gpu_utilisation_percent"] > 20
