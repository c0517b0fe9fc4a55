"""The GPUs that this process may use, with a driver that is none."""

import sys
from unittest.mock import Mock

import pytest

from study.base import devices


@pytest.fixture(autouse=True)
def _eight_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Mock(**{"nvmlDeviceGetCount.return_value": 8})
    monkeypatch.setitem(sys.modules, "pynvml", driver)


@pytest.mark.parametrize(
    ("visible", "names", "count"),
    [
        (None, [], 8),
        ("", [], 0),
        ("-1", ["-1"], 0),
        ("1, GPU-7", ["1", "GPU-7"], 2),
        (",".join(map(str, range(9))), list("012345678"), 8),
    ],
)
def test_cuda_visible_devices_names_the_gpus(
    visible: str | None, names: list[str], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert devices.visible_gpus() == names
    assert devices.count("cuda") == count
    assert (devices.absent("cuda") is None) == (count > 0)
