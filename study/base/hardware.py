"""The processor and the GPU of this machine, found without torch."""

import platform
from contextlib import suppress
from pathlib import Path

import psutil

from study.base.devices import nvml_handle, system_name

CPUINFO = Path("/proc/cpuinfo")
CPUFREQ = Path("/sys/devices/system/cpu/cpu0/cpufreq")
UNITS = {"avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8"}
"""Flags of units that decide how fast a precision is on a CPU."""


def processor() -> dict[str, object]:
    """Return what is known of the processor, its memory and its system, by the keys of a record's
    machine."""
    told = of_the_first_cpu("flags")
    flags = None if told is None else set(told.split())
    return {
        "cpu_name": of_the_first_cpu("model name") or platform.processor() or platform.machine(),
        "cpu_cores": psutil.cpu_count(logical=False),
        "cpu_threads": psutil.cpu_count() or 1,
        "cpu_max_mhz": cpu_max_mhz(),
        "cpu_governor": read_line(CPUFREQ / "scaling_governor"),
        "cpu_units": None if flags is None else sorted(flags & UNITS),
        "virtualised": None if flags is None else "hypervisor" in flags,
        "memory_bytes": psutil.virtual_memory().total,
        "system": system_name(),
        "python": platform.python_version(),
    }


def of_the_first_cpu(key: str) -> str | None:
    """Return what the kernel tells of the first CPU under a key; None if it tells nothing (only x86
    has flags)."""
    with suppress(OSError):
        lines = (line.partition(":") for line in CPUINFO.read_text().splitlines())
        return next((value.strip() for name, _, value in lines if name.strip() == key), None)
    return None


def read_line(path: Path) -> str | None:
    """Return the stripped text of a kernel file, or None if it is absent or empty."""
    try:
        return path.read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None


def cpu_max_mhz() -> float | None:
    """Return the highest clock of the first CPU in MHz, or None if the kernel does not say."""
    khz = read_line(CPUFREQ / "cpuinfo_max_freq")
    return int(khz) / 1000 if khz and khz.isdigit() else None


def told_by_nvml() -> dict[str, str | float]:
    """Return the name of torch's first GPU, the driver's version, and its highest clock (MHz) and
    power limit (watts)."""
    told: dict[str, str | float] = {}
    with suppress(Exception):
        import pynvml

        pynvml.nvmlInit()
        with suppress(pynvml.NVMLError):
            told["driver"] = str(pynvml.nvmlSystemGetDriverVersion())
        gpu = nvml_handle(pynvml)
        with suppress(pynvml.NVMLError):
            told["device_name"] = str(pynvml.nvmlDeviceGetName(gpu))
        with suppress(pynvml.NVMLError):
            told["device_max_sm_mhz"] = int(
                pynvml.nvmlDeviceGetMaxClockInfo(gpu, pynvml.NVML_CLOCK_SM)
            )
        with suppress(pynvml.NVMLError):
            told["device_power_limit_watts"] = pynvml.nvmlDeviceGetEnforcedPowerLimit(gpu) / 1000
    return told
