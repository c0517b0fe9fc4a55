"""A build of torch, known without its import: its version, the CUDA that it was built for, and
whether it serves here.

It needs Python alone, for it is asked before anything is installed.
"""

import importlib.util
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

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


@dataclass(frozen=True)
class TorchBuild:
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
