"""The devices of this machine, found without importing torch."""

import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from study.base.torch_build import TorchBuild


def usable_cpus() -> int:
    """Return the number of CPUs on which the scheduler may run this process; all CPUs if the system
    does not say."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def visible_gpus() -> list[str]:
    """Return the GPUs that ``CUDA_VISIBLE_DEVICES`` names, in its order: PCI indices or UUIDs.
    Empty if none."""
    return [
        name.strip()
        for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        if name.strip()
    ]


def nvml_handle(nvml: Any, number: int = 0) -> Any:
    """Return NVML's handle of the GPU that torch calls ``number``. Raise NVML's own error if there
    is none."""
    visible = visible_gpus()
    name = visible[number] if number < len(visible) else str(number)
    return (
        nvml.nvmlDeviceGetHandleByIndex(int(name))
        if name.isdigit()
        else nvml.nvmlDeviceGetHandleByUUID(name)
    )


@contextmanager
def _driver() -> Iterator[Any]:
    """Yield NVML. Raise its own error if no driver answers."""
    import pynvml

    pynvml.nvmlInit()
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def absent(device: str) -> str | None:
    """Return why ``device`` cannot be used on this machine, or None if it can."""
    if device == "cpu":
        return None
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides every GPU"
    try:
        with _driver() as nvml:
            return None if nvml.nvmlDeviceGetCount() else "the NVIDIA driver knows no GPU"
    except Exception:
        other = next((words for there, words in OTHERS if there()), "")
        return f"no NVIDIA driver answers on this machine{other}"


OTHERS: tuple[tuple[Callable[[], bool], str], ...] = (
    (lambda: sys.platform == "darwin", ", and the GPU of a Mac (MPS) is not supported"),
    (Path("/dev/kfd").exists, ", and AMD's GPUs (ROCm) are not supported"),
)
"""GPUs that are no NVIDIA's: how each is found, and what is said of it."""


def unfit(build: TorchBuild | None) -> str | None:
    """Return why this build of torch cannot use the NVIDIA GPUs that are here; None if it can, or
    none are here."""
    if build is None or absent("cuda"):
        return None
    try:
        with _driver() as nvml:
            version = int(nvml.nvmlSystemGetCudaDriverVersion_v2())  # 12080 for 12.8
            handles = [nvml_handle(nvml, number) for number in range(count("cuda"))]
            capabilities = [tuple(nvml.nvmlDeviceGetCudaComputeCapability(one)) for one in handles]
    except Exception:  # the first run tells
        return None
    return build.trouble((version // 1000, version % 1000 // 10), capabilities)


def count(device: str) -> int:
    """Return how many of ``device`` can train together: the CPUs that this process may use, or
    its visible GPUs."""
    if device == "cpu":
        return usable_cpus()
    if absent(device):
        return 0
    with _driver() as nvml:
        there = int(nvml.nvmlDeviceGetCount())
    return min(there, len(visible_gpus())) if visible_gpus() else there


@dataclass(frozen=True)
class Activity:
    """Activity of other processes on the GPUs that train: sums of processes and power, and the
    highest utilisation."""

    processes: int
    utilisation_percent: int
    watts: float | None
    """Power in watts, summed over GPUs; None if a driver does not report it."""


def activity(gpus: int = 1) -> Activity | None:
    """Return the activity of others on the first ``gpus`` GPUs that torch sees, or None if no
    driver reports it.

    Call it on the host, before a run: a container sees only its own processes. If even the host is
    a container, the utilisation is still right.
    """
    try:
        with _driver() as nvml:
            handles = [nvml_handle(nvml, number) for number in range(gpus)]
            processes = sum(len(nvml.nvmlDeviceGetComputeRunningProcesses(one)) for one in handles)
            utilisation = max(int(nvml.nvmlDeviceGetUtilizationRates(one).gpu) for one in handles)
            watts = [watts for one in handles if (watts := _watts(nvml, one)) is not None]
    except Exception:
        return None
    return Activity(processes, utilisation, sum(watts) if len(watts) == gpus else None)


def _watts(nvml: Any, handle: Any) -> float | None:
    try:
        return float(nvml.nvmlDeviceGetPowerUsage(handle) / 1000)
    except nvml.NVMLError:
        return None


HOSTED = {"COLAB_RELEASE_TAG": "Colab", "KAGGLE_KERNEL_RUN_TYPE": "Kaggle"}
"""Variables that hosted notebooks set, and whose they are."""
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the place where processes share memory


def surroundings() -> str | None:
    """Return what this system runs in, where that matters: WSL2, Colab or Kaggle; None
    elsewhere."""
    if "microsoft" in platform.release().lower():
        return "WSL2"
    return next((name for variable, name in HOSTED.items() if variable in os.environ), None)


def system_name() -> str:
    """Return the system, the machine's type and what both run in, such as ``Linux x86_64
    (WSL2)``."""
    inside = surroundings()
    return f"{platform.system()} {platform.machine()}" + (f" ({inside})" if inside else "")
