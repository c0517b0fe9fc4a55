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
    """What others do on the GPUs that ``CUDA_VISIBLE_DEVICES`` leaves."""

    processes: int
    utilisation_percent: int
    watts: float | None
    """Of all of them; none where the driver does not tell."""


def activity() -> Activity | None:
    """Processes that compute on the GPUs, and how busy the busiest is; None where no driver tells.

    Asked on the host, before a run: a container sees no process but its own. Where even the host is a container, the
    utilisation still tells.
    """
    try:
        import pynvml

        pynvml.nvmlInit()
        try:
            named = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
            chosen = named or list(map(str, range(pynvml.nvmlDeviceGetCount())))
            handles = [
                pynvml.nvmlDeviceGetHandleByIndex(int(name))
                if name.isdigit()
                else pynvml.nvmlDeviceGetHandleByUUID(name)
                for name in chosen
            ]
            return Activity(
                sum(len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle)) for handle in handles),
                max(int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu) for handle in handles),
                _watts(pynvml, handles),
            )
        finally:
            pynvml.nvmlShutdown()
    except Exception:
        return None


def _watts(nvml: Any, handles: list[Any]) -> float | None:
    try:
        return float(sum(nvml.nvmlDeviceGetPowerUsage(handle) for handle in handles) / 1000)
    except nvml.NVMLError:
        return None
