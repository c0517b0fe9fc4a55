"""What a start says of the system that it is made on, before the first run."""

import platform
import shutil
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from study.base import devices, system
from study.host.plan import forecast, machine_limits
from tests.conftest import tiny_plan

MIB = 2**20


def free(monkeypatch: pytest.MonkeyPatch, mib: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=mib * MIB))


@pytest.mark.parametrize(("kind", "mib", "said"), [("workers", 1, 1), ("workers", 512, 0), ("threads", 1, 0)])
def test_shared_memory_that_is_too_small_for_the_workers_is_said_with_the_run_and_the_cure(
    kind: str, mib: int, said: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    free(monkeypatch, mib)
    loader: dict[str, Any] = {"kind": kind, "workers": 4}
    lines = [*machine_limits.warnings([tiny_plan(loader=loader, dataset={"image_size": 64})])]
    assert len(lines) == said
    assert all("/dev/shm has 1 MiB free" in line and "loader.workers" in line for line in lines)


def test_in_containers_the_engine_gives_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, 0)
    plan = tiny_plan(loader={"kind": "workers", "workers": 4}).model_copy(update={"engine": "docker"})
    assert not [*machine_limits.warnings([plan])]


def test_wsl2_is_named_with_its_memory_and_its_name_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "release", lambda: "6.6.87.2-microsoft-standard-WSL2")
    free(monkeypatch, 1024)
    (line,) = machine_limits.warnings([tiny_plan()])
    assert "WSL2" in line
    assert "GiB" in line
    assert system.system_name().endswith("(WSL2)")
    assert "WSL2" in forecast.where(tiny_plan())


@pytest.mark.parametrize(("variable", "name"), system.HOSTED.items())
def test_a_hosted_notebook_is_named(variable: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "1")
    assert system.surroundings() == name


@pytest.mark.parametrize(("place", "word"), [(0, "MPS"), (1, "ROCm")])
def test_a_gpu_that_is_no_nvidias_is_named_in_the_reason(
    place: int, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(devices, "OTHERS", ((lambda: True, devices.OTHERS[place][1]),))
    assert word in str(devices.absent("cuda"))


def test_windows_is_refused_in_one_line_that_names_wsl2() -> None:
    code = "import sys; sys.platform = 'win32'; sys.argv = ['study', 'plan']; from study.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "WSL2" in done.stderr
