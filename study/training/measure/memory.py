"""Peak memory of this process and of its device."""

import resource
import sys

import torch

from study.artifacts.samples import Memory


def reset_peak(device: torch.device) -> None:
    """Reset the device's memory peaks, so that a new window starts."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak(device: torch.device) -> Memory:
    """Return the peaks in bytes: of the device since :func:`reset_peak`, of the process since its start."""
    unit = 1 if sys.platform == "darwin" else 1024
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    if device.type != "cuda":
        return Memory(host_resident_bytes=resident)
    free, total = torch.cuda.mem_get_info(device)
    return Memory(
        device_allocated_bytes=torch.cuda.max_memory_allocated(device),
        device_reserved_bytes=torch.cuda.max_memory_reserved(device),
        device_used_bytes=total - free,
        host_resident_bytes=resident,
    )
