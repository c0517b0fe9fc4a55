"""Which devices this machine has, asked without importing torch."""

import os
from dataclasses import dataclass
from typing import Any

from study.cpus import usable_cpus


def absent(device: str) -> str | None:
    """Why ``device`` cannot serve on this machine; None where it can."""
    if device == "cpu":
        return None
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides every GPU"
    try:
        import pynvml

        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    except Exception:
        return "no NVIDIA driver answers on this machine"
    return None if count else "the NVIDIA driver knows no GPU"


def count(device: str) -> int:
    """How many of this device can train together: the CPUs that this process may use, or the GPUs that it may see."""
    if device == "cpu":
        return usable_cpus()
    if absent(device):
        return 0
    import pynvml

    pynvml.nvmlInit()
    there = int(pynvml.nvmlDeviceGetCount())
    pynvml.nvmlShutdown()
    return min(there, len(_named())) if _named() else there


def _named() -> list[str]:
    """The GPUs that ``CUDA_VISIBLE_DEVICES`` names, in its order."""
    return [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]


@dataclass(frozen=True)
class Activity:
    """What others do on the GPUs that train: processes and power added up, the utilisation of the busiest."""

    processes: int
    utilisation_percent: int
    watts: float | None
    """None where a driver does not tell."""


def activity(gpus: int = 1) -> Activity | None:
    """What others do on the ``gpus`` GPUs that torch sees first; None where no driver tells.

    Asked on the host, before a run: a container sees no process but its own. Where even the host is a container, the
    utilisation still tells.
    """
    try:
        import pynvml

        pynvml.nvmlInit()
        try:
            seen = [_activity(pynvml, _handle(pynvml, number)) for number in range(gpus)]
        finally:
            pynvml.nvmlShutdown()
    except Exception:
        return None
    watts = [one.watts for one in seen if one.watts is not None]
    return Activity(
        sum(one.processes for one in seen),
        max(one.utilisation_percent for one in seen),
        sum(watts) if len(watts) == len(seen) else None,
    )


def _handle(nvml: Any, number: int) -> Any:
    named = _named()
    name = named[number] if number < len(named) else str(number)
    return nvml.nvmlDeviceGetHandleByIndex(int(name)) if name.isdigit() else nvml.nvmlDeviceGetHandleByUUID(name)


def _activity(nvml: Any, handle: Any) -> Activity:
    processes = len(nvml.nvmlDeviceGetComputeRunningProcesses(handle))
    return Activity(processes, int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu), _watts(nvml, handle))


def _watts(nvml: Any, handle: Any) -> float | None:
    try:
        return float(nvml.nvmlDeviceGetPowerUsage(handle) / 1000)
    except nvml.NVMLError:
        return None
