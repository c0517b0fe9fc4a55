"""Which devices this machine has, asked without importing torch."""

import os
from dataclasses import dataclass
from typing import Any


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


@dataclass(frozen=True)
class Activity:
    """What others do on the GPU that torch sees first, which trains."""

    processes: int
    utilisation_percent: int
    watts: float | None
    """None where the driver does not tell."""


def activity() -> Activity | None:
    """Processes that compute on the GPU, how busy it is and its power; None where no driver tells.

    Asked on the host, before a run: a container sees no process but its own. Where even the host is a container, the
    utilisation still tells.
    """
    try:
        import pynvml

        pynvml.nvmlInit()
        try:
            named = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
            first = named[0] if named else "0"
            handle = (
                pynvml.nvmlDeviceGetHandleByIndex(int(first))
                if first.isdigit()
                else pynvml.nvmlDeviceGetHandleByUUID(first)
            )
            return Activity(
                len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle)),
                int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),
                _watts(pynvml, handle),
            )
        finally:
            pynvml.nvmlShutdown()
    except Exception:
        return None


def _watts(nvml: Any, handle: Any) -> float | None:
    try:
        return float(nvml.nvmlDeviceGetPowerUsage(handle) / 1000)
    except nvml.NVMLError:
        return None
