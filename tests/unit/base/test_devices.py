"""The GPUs that this process may use, with a driver that is none."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from study.base import devices
from study.base.errors import StudyError
from study.host.engine.engine_choice import DEVICES, EngineChoice
from tests.conftest import plan_at


@pytest.fixture(autouse=True)
def _eight_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 8,
    }
    monkeypatch.setitem(sys.modules, "pynvml", SimpleNamespace(**calls))


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


HOST = EngineChoice("none", "asked for")


def plug_in(monkeypatch: pytest.MonkeyPatch, folder: Path, *chips: tuple[str, str]) -> None:
    """A PCI bus with devices of these vendors and kinds, on a machine with ``torch_tpu``."""
    for number, (vendor, kind) in enumerate(chips):
        (folder / str(number)).mkdir()
        (folder / str(number) / "vendor").write_text(f"{vendor}\n")
        (folder / str(number) / "device").write_text(f"{kind}\n")
    monkeypatch.setattr(devices, "PCI", folder)
    monkeypatch.setattr(devices, "find_spec", lambda name: object())


def test_what_a_tpu_lacks_is_said_before_any_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "torch_tpu is not installed" in (devices.absent("tpu") or "")
    plug_in(monkeypatch, tmp_path, ("0x1ae0", "0x0042"), ("0x10de", "0x0063"))
    assert devices.absent("tpu") == "no TPU is found on this machine", (
        "Google's network card, and another's device"
    )
    assert devices.count("tpu") == 0


def test_every_chip_on_the_bus_trains(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plug_in(monkeypatch, tmp_path, *[("0x1ae0", "0x0063")] * 4, ("0x1ae0", "0x0042"))
    assert (devices.absent("tpu"), devices.count("tpu")) == (None, 4)
    absent: dict[str, str | None] = {device: devices.absent(device) for device in DEVICES}
    training = {
        "loop": "torch",
        "freeze_epochs": 0,
        "epochs": 1,
        "batch_size": 4,
        "strategy": "ddp",
    }
    plan = plan_at(
        HOST, absent, {"tpu": 4}, factors={"device": ["tpu"]}, training=training, curve=None
    )
    assert [
        (run.settings.device, run.settings.training.replicas, run.unavailable) for run in plan.runs
    ] == [("tpu", 4, None)]


def test_a_container_has_no_tpu() -> None:
    with pytest.raises(
        StudyError, match="container: 'docker' is not allowed: there is no image for a TPU"
    ):
        plan_at(EngineChoice("docker", "asked for"), factors={"device": ["tpu"]}, curve=None)
