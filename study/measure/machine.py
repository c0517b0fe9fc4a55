"""What a run ran on: no host, no user, no path. Imports torch only where the caller already has."""

import platform
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil
from pydantic import Field

from study.config import Strict
from study.measure.telemetry import nvml_handle

CPUFREQ = Path("/sys/devices/system/cpu/cpu0/cpufreq")
LIBRARIES = ("torch", "torchvision", "fastai", "numpy", "pillow")


class Machine(Strict):
    """Device, processor and software."""

    device_name: str = Field(description="Model of the device that trained.")
    cpu_name: str
    cpu_cores: int | None = Field(description="Physical cores.")
    cpu_threads: int = Field(description="Logical CPUs.")
    cpu_max_mhz: float | None = Field(None, description="Highest clock of the first CPU, where the kernel tells.")
    cpu_governor: str | None = Field(None, description="Who chooses the first CPU's clock, where the kernel tells.")
    virtualised: bool | None = Field(None, description="Whether this is a virtual machine; none where unknown.")
    memory_bytes: int
    device_memory_bytes: int | None = None
    device_max_sm_mhz: int | None = Field(None, description="Highest clock of the device's multiprocessors.")
    device_power_limit_watts: float | None = None
    driver: str | None = Field(None, description="NVIDIA driver.")
    cuda: str | None = None
    cudnn: int | None = None
    system: str
    python: str
    libraries: dict[str, str]


def describe(device: str) -> Machine:
    """This machine, as seen from the process that trains on ``device``."""
    common = {
        "cpu_name": cpu_name(),
        "cpu_cores": psutil.cpu_count(logical=False),
        "cpu_threads": psutil.cpu_count() or 1,
        "cpu_max_mhz": cpu_max_mhz(),
        "cpu_governor": read_line(CPUFREQ / "scaling_governor"),
        "virtualised": virtualised(),
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
    """Version of the interpreter."""
    return ".".join(map(str, sys.version_info[:3]))


def libraries() -> dict[str, str]:
    """Versions of what decides the times."""
    versions = {}
    for name in LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def gpu_trouble() -> str | None:
    """Why torch can use no CUDA device, in its own words; None where it can."""
    import torch

    if torch.cuda.is_available():
        return None
    try:
        torch.cuda.init()
    except (AssertionError, RuntimeError) as error:
        return str(error).strip().split(". ")[0].splitlines()[0]
    return "no CUDA device is visible"


def cpu_name() -> str:
    """The processor's model, as the kernel names it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def read_line(path: Path) -> str | None:
    """What a file of the kernel says; None where there is no such file."""
    try:
        return path.read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None


def cpu_max_mhz() -> float | None:
    """The first CPU's highest clock."""
    khz = read_line(CPUFREQ / "cpuinfo_max_freq")
    return int(khz) / 1000 if khz and khz.isdigit() else None


def virtualised(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool | None:
    """Whether a hypervisor says that it is there (the processor's flag of that name, which x86 alone has)."""
    try:
        flags = next(line for line in cpuinfo.read_text().splitlines() if line.startswith("flags"))
    except (OSError, StopIteration):
        return None
    return "hypervisor" in flags.split()


def device_limits() -> dict[str, float | int | None]:
    """The highest clock and the power limit of the GPU that torch sees first; empty where NVML does not tell."""
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
    """The NVIDIA driver's version; None where none answers."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return str(pynvml.nvmlSystemGetDriverVersion())
    except Exception:
        return None
