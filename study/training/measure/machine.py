"""Description of the machine of a run: no host name, no user, no path.

The module imports torch only in functions whose caller has imported it already.
"""

import platform
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from study.artifacts.machine import Machine
from study.base.devices import nvml_handle

CPUFREQ = Path("/sys/devices/system/cpu/cpu0/cpufreq")
UNITS = {"avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8"}
"""Flags of units that decide how fast a precision is on a CPU."""
LIBRARIES = ("torch", "torchvision", "fastai", "numpy", "pillow")


def describe(device: str) -> Machine:
    """Return a description of this machine, as seen from the process that trains on ``device``."""
    flags = cpu_flags()
    common = {
        "cpu_name": cpu_name(),
        "cpu_cores": psutil.cpu_count(logical=False),
        "cpu_threads": psutil.cpu_count() or 1,
        "cpu_max_mhz": cpu_max_mhz(),
        "cpu_governor": read_line(CPUFREQ / "scaling_governor"),
        "cpu_units": None if flags is None else sorted(flags & UNITS),
        "virtualised": None if flags is None else "hypervisor" in flags,
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.machine()}",
        "python": python(),
        "libraries": libraries(),
    }
    if device != "cuda":
        return Machine.model_validate({"device_name": common["cpu_name"]} | common)
    import torch

    properties = torch.cuda.get_device_properties(0)
    return Machine.model_validate(
        common
        | {
            "device_name": properties.name,
            "device_memory_bytes": properties.total_memory,
            "driver": driver(),
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),
        }
        | device_limits()
    )


def python() -> str:
    """Return the version of the interpreter."""
    return ".".join(map(str, sys.version_info[:3]))


def libraries() -> dict[str, str]:
    """Return the versions of the installed libraries that determine the times."""
    versions = {}
    for name in LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def gpu_trouble() -> str | None:
    """Return why torch can use no CUDA device, in its own words, or None if it can use one."""
    import torch

    if torch.cuda.is_available():
        return None
    try:
        torch.cuda.init()
    except (AssertionError, RuntimeError) as error:
        return str(error).strip().split(". ")[0].splitlines()[0]
    return "no CUDA device is visible"


def cpu_name() -> str:
    """Return the processor's model, as the kernel names it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


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


def cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> set[str] | None:
    """Return the flags of the first CPU; None where the kernel lists none (only x86 has them)."""
    try:
        line = next(line for line in cpuinfo.read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        return None
    return set(line.partition(":")[2].split())


def device_limits() -> dict[str, float | int | None]:
    """Return the highest clock (MHz) and the power limit (watts) of torch's first GPU; empty if NVML does not say."""
    limits: dict[str, float | int | None] = {}
    with suppress(Exception):
        import pynvml

        gpu = nvml_handle(pynvml)
        with suppress(pynvml.NVMLError):
            limits["device_max_sm_mhz"] = int(pynvml.nvmlDeviceGetMaxClockInfo(gpu, pynvml.NVML_CLOCK_SM))
        with suppress(pynvml.NVMLError):
            limits["device_power_limit_watts"] = pynvml.nvmlDeviceGetEnforcedPowerLimit(gpu) / 1000
    return limits


def driver() -> str | None:
    """Return the version of the NVIDIA driver, or None if no driver answers."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return str(pynvml.nvmlSystemGetDriverVersion())
    except Exception:
        return None
