"""Which torch serves which driver and GPU, and where it is found, without its import."""

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from study.base import devices
from study.base.devices import TorchBuild
from study.base.environment import ALL, without_torch
from tests.conftest import ROOT

VERSION_PY = """from typing import Optional
__version__ = '2.11.0+cu128'
debug = False
cuda: Optional[str] = '12.8'
hip: Optional[str] = None
"""
DRIVER, CAPABILITY = "and the NVIDIA driver", "compute capability"


@pytest.mark.parametrize(
    ("cuda", "driver", "capability", "told"),
    [
        ("13.2", (13, 0), (7, 5), None),
        (
            "13.2",
            (12, 8),
            (9, 0),
            f"needs CUDA 13, {DRIVER} speaks CUDA 12.8: install a driver 580",
        ),
        ("12.8", (13, 1), (6, 0), None),
        ("13.2", (13, 0), (6, 0), f"no kernels for a GPU of {CAPABILITY} 6.0, only from 7.5 on"),
        ("13.2", None, (9, 0), None),
        (None, (13, 0), (9, 0), "is built without CUDA"),
    ],
)
def test_a_driver_and_a_gpu_that_are_too_old_for_torch_are_named_with_what_to_do(
    cuda: str | None, driver: tuple[int, int] | None, capability: tuple[int, int], told: str | None
) -> None:
    trouble = TorchBuild("2.15.0", cuda).trouble(driver, [capability])
    assert (trouble is None) == (told is None)
    assert told is None or told in str(trouble)


def test_a_torch_for_amds_gpus_is_refused_in_a_line() -> None:
    assert "ROCm" in str(TorchBuild("2.15.0", None, rocm=True).trouble(None))


def test_the_lock_names_its_torch_and_the_cuda_that_it_needs() -> None:
    build = TorchBuild.of_lock(ALL)
    assert build is not None
    assert build.cuda is not None
    assert (build.version, build.cuda.partition(".")[0], build.is_old) == ("2.15.0", "13", False)
    assert "(--torch installed)" in str(build.trouble((12, 8)))
    image = TorchBuild.of_lock(ALL, in_image=True)
    assert image
    assert "name an image for CUDA 12 (images.cuda)" in str(image.trouble((12, 8)))


def test_an_installed_torch_is_known_without_its_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(
        "raise SystemExit('imported')", encoding="utf-8"
    )
    (tmp_path / "torch" / "version.py").write_text(VERSION_PY, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    wanted = TorchBuild("2.11.0+cu128", "12.8")
    assert TorchBuild.of_python(sys.executable) == wanted
    here = "from study.base.devices import TorchBuild; print(TorchBuild.here())"
    own = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    assert (
        subprocess.run([sys.executable, "-c", here], capture_output=True, text=True, env=own).stdout
        == f"{wanted}\n"
    )
    assert not wanted.is_old
    assert TorchBuild("2.10.1", None).is_old
    assert TorchBuild.of_python("/nowhere/python") is None


def test_the_driver_is_compared_with_torch_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Mock()
    driver.nvmlDeviceGetCount.return_value = 1
    driver.nvmlSystemGetCudaDriverVersion_v2.return_value = 12080
    driver.nvmlDeviceGetCudaComputeCapability.return_value = [9, 0]
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert devices.unfit(TorchBuild("2.15.0", "12.6")) is None
    assert "CUDA 12.8" in str(devices.unfit(TorchBuild("2.15.0", "13.2")))
    assert devices.unfit(None) is None


def test_a_lock_without_torch_keeps_every_other_package_with_its_hashes() -> None:
    whole, rest = ALL.read_text(encoding="utf-8"), without_torch(ALL.read_text(encoding="utf-8"))
    names = [line.partition("==")[0] for line in rest.splitlines() if line[:1].isalpha()]
    assert {"fastai", "nvidia-ml-py", "safetensors"} <= {*names}
    assert not {"torch", "torchvision", "triton", "nvidia-cublas", "cuda-toolkit[cublas"} & {*names}
    assert 0 < rest.count("--hash") < whole.count("--hash")
