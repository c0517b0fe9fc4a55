"""The devices of this machine, and whether a build of torch serves them: both are known without an
import of torch.

It needs Python alone, for it is asked before anything is installed.
"""

import importlib.util
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self


def usable_cpus() -> int:
    """Return the number of CPUs on which the scheduler may run this process; all CPUs if the system
    does not say."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def visible_gpus() -> list[str]:
    """Return the GPUs that ``CUDA_VISIBLE_DEVICES`` names, in its order: PCI indices or UUIDs.
    Empty if none."""
    names = map(str.strip, os.environ.get("CUDA_VISIBLE_DEVICES", "").split(","))
    return [name for name in names if name]


def nvml_handle(nvml: Any, number: int = 0) -> Any:
    """Return NVML's handle of the GPU that torch calls ``number``. Raise NVML's own error if there
    is none."""
    visible = visible_gpus()
    name = visible[number] if number < len(visible) else str(number)
    return (
        nvml.nvmlDeviceGetHandleByIndex(int(name))
        if name.isdigit()
        else nvml.nvmlDeviceGetHandleByUUID(name)
    )


@contextmanager
def _driver() -> Iterator[Any]:
    """Yield NVML. Raise its own error if no driver answers."""
    import pynvml

    pynvml.nvmlInit()
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def absent(device: str) -> str | None:
    """Return why ``device`` cannot be used on this machine, or None if it can."""
    if device == "cpu":
        return None
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides every GPU"
    try:
        with _driver() as nvml:
            return None if nvml.nvmlDeviceGetCount() else "the NVIDIA driver knows no GPU"
    except Exception:
        other = next((words for there, words in OTHERS if there()), "")
        return f"no NVIDIA driver answers on this machine{other}"


OTHERS: tuple[tuple[Callable[[], bool], str], ...] = (
    (lambda: sys.platform == "darwin", ", and the GPU of a Mac (MPS) is not supported"),
    (Path("/dev/kfd").exists, ", and AMD's GPUs (ROCm) are not supported"),
)
"""GPUs that are no NVIDIA's: how each is found, and what is said of it."""


LEAST = (2, 11)
"""The oldest torch on which this code runs."""
OLDEST = ".".join(map(str, LEAST))
DRIVERS = {12: 525, 13: 580}
"""The oldest NVIDIA driver that serves each major version of CUDA, by NVIDIA's table of CUDA's
compatibility."""
CAPABILITIES = {13: (7, 5)}
"""The least compute capability of a GPU for which a major version of CUDA still compiles."""
FIND = (
    "import importlib.util as i; s = i.find_spec('torch'); print(s.origin if s and "
    "s.origin else '')"
)


class TorchBuild(NamedTuple):
    """One build of torch."""

    version: str
    cuda: str | None
    """The version of CUDA that it was built for, such as ``13.2``; None without CUDA."""
    rocm: bool = False
    """Whether it was built for AMD's GPUs."""
    in_image: bool = False
    """Whether it is that of an image."""

    @classmethod
    def here(cls) -> Self | None:
        """Return the build that this interpreter would import; None without one."""
        spec = importlib.util.find_spec("torch")
        return cls._in(Path(spec.origin).parent) if spec and spec.origin else None

    @classmethod
    def of_python(cls, python: str) -> Self | None:
        """Return the build that another interpreter would import; None without one."""
        try:
            done = subprocess.run(
                [python, "-c", FIND], capture_output=True, text=True, timeout=30, cwd="/"
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return cls._in(Path(done.stdout.strip()).parent) if done.stdout.strip() else None

    @classmethod
    def of_lock(cls, lock: Path, in_image: bool = False) -> Self | None:
        """Return the build that a lock names, or that an image has from it; None if it names
        none."""
        text = lock.read_text(encoding="utf-8", errors="replace")
        torch = re.search(r"^torch==([\w.+-]+)", text, re.MULTILINE)
        if torch is None:
            return None
        runtime = re.search(r"^nvidia-cuda-runtime(?:-cu\d+)?==(\d+\.\d+)", text, re.MULTILINE)
        return cls(torch.group(1), runtime.group(1) if runtime else None, in_image=in_image)

    @classmethod
    def _in(cls, folder: Path) -> Self | None:
        try:
            text = (folder / "version.py").read_text(encoding="utf-8")
        except OSError:
            return None
        values = dict(re.findall(r"^(\w+)(?:\s*:[^=\n]+)?\s*=\s*'([^'\n]*)'", text, re.MULTILINE))
        version = values.get("__version__", "")
        return cls(version, values.get("cuda"), "hip" in values) if version else None

    @property
    def is_old(self) -> bool:
        """Whether this code does not run on it."""
        numbers = re.match(r"(\d+)\.(\d+)", self.version)
        return numbers is None or tuple(map(int, numbers.groups())) < LEAST

    def trouble(
        self, driver: tuple[int, int] | None, capabilities: Iterable[tuple[int, int]] = ()
    ) -> str | None:
        """Return why it cannot use this machine's NVIDIA GPUs; None if it can, as far as can be
        known before a run.

        ``driver`` is the newest CUDA that the driver speaks, None if it does not tell;
        ``capabilities`` are those of the GPUs.
        """
        if self.rocm:
            return f"torch {self.version} is built for ROCm, and only NVIDIA's GPUs are supported"
        if self.cuda is None:
            return f"torch {self.version} is built without CUDA"
        major = int(self.cuda.partition(".")[0])
        if driver and driver[0] < major:
            newer = f"a driver {DRIVERS[major]} or newer" if major in DRIVERS else "a newer driver"
            other = (
                f"name an image for CUDA {driver[0]} (images.cuda)"
                if self.in_image
                else f"use a torch for CUDA {driver[0]} that is installed (--torch installed)"
            )
            return (
                f"torch {self.version} needs CUDA {major}, and the NVIDIA driver speaks CUDA "
                f"{driver[0]}.{driver[1]}: install {newer}, or {other}"
            )
        least = CAPABILITIES.get(major, (0, 0))
        if old := [one for one in capabilities if one < least]:
            has, needs = (".".join(map(str, one)) for one in (old[0], least))
            return (
                f"torch {self.version} has no kernels for a GPU of compute capability "
                f"{has}, only from {needs} on"
            )
        return None


def unfit(build: TorchBuild | None) -> str | None:
    """Return why this build of torch cannot use the NVIDIA GPUs that are here; None if it can, or
    none are here."""
    if build is None or absent("cuda"):
        return None
    try:
        with _driver() as nvml:
            version = int(nvml.nvmlSystemGetCudaDriverVersion_v2())  # 12080 for 12.8
            handles = [nvml_handle(nvml, number) for number in range(count("cuda"))]
            capabilities = [tuple(nvml.nvmlDeviceGetCudaComputeCapability(one)) for one in handles]
    except Exception:  # the first run tells
        return None
    return build.trouble((version // 1000, version % 1000 // 10), capabilities)


def count(device: str) -> int:
    """Return how many of ``device`` can train together: the CPUs that this process may use, or
    its visible GPUs."""
    if device == "cpu":
        return usable_cpus()
    if absent(device):
        return 0
    with _driver() as nvml:
        there = int(nvml.nvmlDeviceGetCount())
    return min(there, len(visible_gpus())) if visible_gpus() else there


class Activity(NamedTuple):
    """Activity of other processes on the GPUs that train: sums of processes and power, and the
    highest utilisation."""

    processes: int
    utilisation_percent: int
    watts: float | None
    """Power in watts, summed over GPUs; None if a driver does not report it."""


def activity(gpus: int = 1) -> Activity | None:
    """Return the activity of others on the first ``gpus`` GPUs that torch sees, or None if no
    driver reports it.

    Call it on the host, before a run: a container sees only its own processes. If even the host is
    a container, the utilisation is still right.
    """
    try:
        with _driver() as nvml:
            handles = [nvml_handle(nvml, number) for number in range(gpus)]
            processes = sum(len(nvml.nvmlDeviceGetComputeRunningProcesses(one)) for one in handles)
            utilisation = max(int(nvml.nvmlDeviceGetUtilizationRates(one).gpu) for one in handles)
            watts: float | None = None
            with suppress(nvml.NVMLError):
                watts = sum(nvml.nvmlDeviceGetPowerUsage(one) for one in handles) / 1000
    except Exception:
        return None
    return Activity(processes, utilisation, watts)


HOSTED = {"COLAB_RELEASE_TAG": "Colab", "KAGGLE_KERNEL_RUN_TYPE": "Kaggle"}
"""Variables that hosted notebooks set, and whose they are."""
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the place where processes share memory


def surroundings() -> str | None:
    """Return what this system runs in, where that matters: WSL2, Colab or Kaggle; None
    elsewhere."""
    if "microsoft" in platform.release().lower():
        return "WSL2"
    return next((name for variable, name in HOSTED.items() if variable in os.environ), None)


def system_name() -> str:
    """Return the system, the machine's type and what both run in, such as ``Linux x86_64
    (WSL2)``."""
    inside = surroundings()
    return f"{platform.system()} {platform.machine()}" + (f" ({inside})" if inside else "")
