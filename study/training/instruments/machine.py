"""The machine of a run as the process that trains sees it: a description without names and paths,
fp32, peak memory.

``python -m study.training.instruments.machine`` is the probe of an image and of an environment:
it prints Python, libraries and any trouble with the GPU as one line of JSON, and fails if the
training stack cannot be imported.
"""

import json
import os
import platform
import resource
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from study.artifacts.machine import MAIN, Fp32, Machine
from study.artifacts.samples import Memory
from study.base.errors import StudyError
from study.base.files import PACKAGE
from study.base.hardware import processor, told_by_nvml
from study.base.imports import PYTHON, distributions, outside, version, versions
from study.config.sections import Precision, Training

MOST = 5
"""Packages that an error names."""


def describe(device: str, packages: Iterable[str] = ()) -> Machine:
    """Return a description of this machine, as seen from the process that trains on ``device``.

    ``packages`` are those whose versions it tells beside those of the main ones.
    """
    names = dict.fromkeys([*MAIN, *packages])
    common = processor() | {
        "libraries": {
            name: installed for name in names if name != PYTHON and (installed := version(name))
        },
    }
    if device != "cuda":
        return Machine.model_validate({"device_name": common["cpu_name"]} | common)
    properties = torch.cuda.get_device_properties(0)
    return Machine.model_validate(
        common
        | told_by_nvml()
        | {
            "device_name": properties.name,
            "device_memory_bytes": properties.total_memory,
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),
        }
    )


def check_packages(wanted: Mapping[str, str]) -> None:
    """Raise :class:`StudyError` if a package has another version than the one for which the run was
    planned."""
    others = [
        f"{name} {version(name) or 'none'} in place of {planned}"
        for name, planned in wanted.items()
        if version(name) != planned
    ]
    if others:
        more = f" and {len(others) - MOST} more" if len(others) > MOST else ""
        raise StudyError(
            "the packages are not those for which this run was planned: "
            f"{', '.join(others[:MOST])}{more}; start again for runs of the packages that are there"
        )


def gpu_trouble() -> str | None:
    """Return why torch can use no CUDA device, in its own words, or None if it can use one."""
    if torch.cuda.is_available():
        return None
    try:
        torch.cuda.init()
    except (AssertionError, RuntimeError) as error:
        return str(error).strip().split(". ")[0].splitlines()[0]
    return "no CUDA device is visible"


FIRST_CAPABILITY_WITH_TF32 = 8
"""Lowest major compute capability of an NVIDIA GPU with TF32 (Ampere)."""


def set_fp32(precision: Precision) -> None:
    """Let torch compute fp32 on a GPU in IEEE single precision or in TF32, if ``precision`` names
    one of them.

    The function uses torch's older switches: the newer ones make the older unreadable, and torch's
    own compiler still reads those.
    """

    if precision in ("fp32", "tf32"):
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = precision == "tf32"


def set_algorithms(training: Training) -> None:
    """Let torch take only algorithms that repeat their results, or any. Call it before the device's
    libraries start."""
    cudnn = torch.backends.cudnn
    if training.deterministic:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # without it torch refuses cuBLAS
    # the call imports torch's compiler
    if torch.are_deterministic_algorithms_enabled() != training.deterministic:
        torch.use_deterministic_algorithms(training.deterministic)
    cudnn.deterministic = training.deterministic
    cudnn.benchmark = training.cudnn_benchmark and not training.deterministic


def fp32_in_use(kind: str) -> Fp32:
    """Return the arithmetic of fp32 on the device as torch is set now. An older GPU has no TF32 in
    any setting."""
    # its settings are made at import, out of sight of a type checker
    backends: Any = torch.backends
    on_gpu = (backends.cuda.matmul, backends.cudnn.conv)
    on_cpu = (backends.mkldnn.matmul, backends.mkldnn.conv)
    # inherited ones resolved
    names = [str(part.fp32_precision) for part in (on_gpu if kind == "cuda" else on_cpu)]
    plain = ("none", "tf32") if kind == "cuda" and not has_tf32() else ("none",)
    products, convolutions = ("ieee" if name in plain else name for name in names)
    return Fp32(products=products, convolutions=convolutions)


def has_tf32() -> bool:
    """Return whether the current GPU computes in TF32."""

    return torch.cuda.get_device_capability()[0] >= FIRST_CAPABILITY_WITH_TF32


def reset_peak(device: torch.device) -> None:
    """Reset the device's memory peaks, so that a new window starts."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak(device: torch.device) -> Memory:
    """Return the peaks in bytes: of the device since :func:`reset_peak`, of the process since its
    start."""
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


if __name__ == "__main__":
    packages = versions(distributions(outside(PACKAGE.glob("training/**/*.py"))))
    print(
        json.dumps(
            {
                "python": platform.python_version(),
                "libraries": packages,
                "gpu_trouble": gpu_trouble(),
            }
        )
    )
