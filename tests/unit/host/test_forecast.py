"""What a start looks at and says before its runs, and at each run."""

import platform
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from study.artifacts.block import blocks_of
from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.base import devices
from study.base.files import write_new
from study.host.plan import checks, forecast
from tests.conftest import tiny_plan
from tests.unit.artifacts.test_records import make_record, write_records
from tests.unit.host.test_engines import BUILT


def planned(**changes: object) -> Plan:
    """Two settings in three blocks."""
    return tiny_plan(**({"replicates": 3} | changes))


def test_a_start_says_what_it_will_do_by_study_and_device_and_counts_a_reason_once(
    tmp_path: Path,
) -> None:
    factors = {"device": ["cpu", "cuda"], "training.batch_size": [4, 8]}
    plan, files = planned(factors=factors, curve=None), Results(tmp_path)
    assert forecast.describe([plan], None, files) == [
        "tiny on cpu: 6 runs pending in 3 blocks, 0 done",
        "tiny on cuda: 6 runs left out: no GPU in this test",
        "runs execute on the host (asked for)",
        "expected time: not known until the first block is done",
    ]
    first = blocks_of(plan, files)[0]
    for run in first.runs:
        record = make_record(plan, plan.runs.index(run))
        write_new(files.record("tiny", run.file), record.model_dump_json(indent=1))
    first.write(files)
    told = forecast.describe([plan], 30, files)
    assert told[0] == "tiny on cpu: 4 runs pending in 2 blocks, 2 done"
    assert told[-1].startswith("expected time: about ")
    assert told[-1].endswith(", from earlier runs with the same settings (time budget: 30 min)")


def test_a_dry_run_names_each_run_of_a_block_with_its_setting_its_device_and_its_image(
    tmp_path: Path,
) -> None:
    plan = planned()
    contained = plan.model_copy(update={"engine": "docker", "images": {"cpu": BUILT}})
    block = blocks_of(plan, Results(tmp_path))[0]
    lines = [f"    {run.name} ({run.setting.label}): cpu, " for run in block.runs]
    head = "tiny, block 1 of 3: 2 runs, one after the other"
    assert forecast.listed(plan, block) == [head, *(f"{line}on the host" for line in lines)]
    assert forecast.listed(contained, block) == [head, *(f"{line}in study:cpu-1" for line in lines)]


def test_a_block_that_was_broken_off_is_pending_as_a_whole(tmp_path: Path) -> None:
    plan, files = planned(), Results(tmp_path)
    write_records(plan, files.records("tiny"))
    files.record("tiny", plan.runs[0].file).unlink()
    assert forecast.pending(plan, files) == plan.runs[:2]
    assert forecast.summary(plan, forecast.pending(plan, files), files) == [
        "tiny on cpu: 2 runs pending in 1 block, 4 done"
    ]


MIB = 2**20


def free(monkeypatch: pytest.MonkeyPatch, mib: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=mib * MIB))


@pytest.mark.parametrize(
    ("kind", "mib", "said"), [("workers", 1, 1), ("workers", 512, 0), ("threads", 1, 0)]
)
def test_too_little_shared_memory_is_said_with_the_cure(
    kind: str, mib: int, said: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    free(monkeypatch, mib)
    loader: dict[str, Any] = {"kind": kind, "workers": 4}
    lines = [*checks.warnings([tiny_plan(loader=loader, dataset={"image_size": 64})])]
    assert len(lines) == said
    assert all("/dev/shm has 1 MiB free" in line and "loader.workers" in line for line in lines)


def test_wsl2_is_named_with_its_memory_and_its_name_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "release", lambda: "6.6.87.2-microsoft-standard-WSL2")
    free(monkeypatch, 1024)
    (line,) = checks.warnings([tiny_plan()])
    assert "WSL2" in line
    assert "GiB" in line
    assert devices.system_name().endswith("(WSL2)")
    assert "WSL2" in forecast.where(tiny_plan())


@pytest.mark.parametrize(("variable", "name"), devices.HOSTED.items())
def test_a_hosted_notebook_is_named(
    variable: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "1")
    assert devices.surroundings() == name


@pytest.mark.parametrize(("place", "word"), [(0, "MPS"), (1, "ROCm")])
def test_a_gpu_that_is_not_nvidias_is_named(
    place: int, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(devices, "OTHERS", ((lambda: True, devices.OTHERS[place][1]),))
    assert word in str(devices.absent("cuda"))


def test_windows_is_refused_in_one_line_that_names_wsl2() -> None:
    code = (
        "import sys; sys.platform = 'win32'; sys.argv = ['study', 'plan']; from "
        "study.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "WSL2" in done.stderr
