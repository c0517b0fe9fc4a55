"""The machine of a run: what it is, and what others did on it."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from study.artifacts.samples import Count, Samples
from study.base.strict import Strict


class Fp32(Strict):
    """The arithmetic that a run's device used for fp32: ``ieee``, ``tf32`` or ``bf16``."""

    products: str
    """Arithmetic of matrix products."""
    convolutions: str


MAIN = ("torch", "torchvision", "fastai", "numpy", "pillow")
"""The packages that decide most."""
Magnitude = Annotated[float, Field(ge=-1e12, le=1e12)]
"""A frequency, a power or a share that a machine tells."""


class Machine(Strict):
    """Device, processor and software of one run."""

    device_name: str
    """Model of the device that trained."""
    cpu_name: str
    cpu_cores: Count | None
    """Number of physical cores."""
    cpu_threads: Count
    """Number of logical CPUs."""
    cpu_max_mhz: Magnitude | None = None
    """Highest clock of the first CPU in MHz; null if the kernel does not say."""
    cpu_governor: str | None = None
    """Governor of the first CPU's clock; null if the kernel does not say."""
    cpu_units: list[str] | None = None
    """Flags of the processor's units for wide and low-precision arithmetic, such as `amx_bf16`;
    null if unknown."""
    virtualised: bool | None = None
    """True in a virtual machine; null if unknown."""
    memory_bytes: Count
    device_memory_bytes: Count | None = None
    device_max_sm_mhz: Count | None = None
    """Highest clock of the device's multiprocessors in MHz."""
    device_power_limit_watts: Magnitude | None = None
    driver: str | None = None
    """Version of the NVIDIA driver."""
    cuda: str | None = None
    cudnn: Count | None = None
    system: str
    python: str
    libraries: dict[str, str]
    """Versions of the packages that the run imports and that these ask for, as found by its
    process."""

    @property
    def software(self) -> str:
        """The versions of Python and of the packages that decide most, in one line."""
        there = [f"{name} {self.libraries[name]}" for name in MAIN if name in self.libraries]
        return ", ".join([f"Python {self.python}", *there])


class Observed(Samples):
    """The machine over a time, such as from the start of a run's process to its end. Null:
    unknown."""

    others_cpu_percent: Magnitude | None = None
    """CPU time of processes that are not the run's, its launcher's or its container's, in percent
    of the CPUs that the run may use."""
    steal_percent: Magnitude | None = None
    """Time in which a virtual machine's host ran others on those CPUs, in percent of them."""
    cpu_pressure_percent: Magnitude | None = None
    """Share of the time in which some process of the machine waited for a CPU (PSI, `some`)."""
    io_pressure_percent: Magnitude | None = None
    """Share of the time in which all processes with work waited for a disk (PSI, `full`)."""
    memory_pressure_percent: Magnitude | None = None
    """Share of the time in which all processes with work waited for memory (PSI, `full`)."""
    throttled_percent: Magnitude | None = None
    """Share of the samples in which heat, power supply or hardware slowed the GPU down."""
    device_processes: Count | None = None
    """Number of processes of others on the GPU, before or after the run."""
    device_percent: Magnitude | None = None
    """Utilisation of the GPU by others, before the run."""

    def crossed(self, limits: Mapping[str, float | None]) -> list[str]:
        """Return the keys of ``limits`` that a known value lies above. A limit of None is none."""
        given = {key: limit for key, limit in limits.items() if limit is not None}
        return [key for key, limit in given.items() if (getattr(self, key) or 0) > limit]
