"""What a run ran on: no host, no user, no path. Imports torch only where the caller already has."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil
from pydantic import Field

from study.config import Strict

LIBRARIES = ("torch", "torchvision", "fastai", "numpy", "pillow")


class Machine(Strict):
    """Device, processor and software."""

    device_name: str = Field(description="Model of the device that trained.")
    cpu_name: str
    cpu_cores: int | None = Field(description="Physical cores.")
    cpu_threads: int = Field(description="Logical CPUs.")
    memory_bytes: int
    device_memory_bytes: int | None = None
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


def driver() -> str | None:
    """The NVIDIA driver's version; None where none answers."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return str(pynvml.nvmlSystemGetDriverVersion())
    except Exception:
        return None
