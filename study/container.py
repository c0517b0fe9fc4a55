"""Where a run executes: detecting an engine and composing the argv of one run.

This is the seam for containers. The host is the one engine that serves so far; the launcher
knows nothing but :class:`Engine` and :func:`command`.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from study.errors import StudyError


@dataclass(frozen=True)
class Engine:
    """The engine that runs execute in, and why it was chosen."""

    name: str
    reason: str


def choose(requested: str) -> Engine:
    """The engine for ``container: <requested>``; one named outright is an error when it cannot serve."""
    if requested == "none":
        return Engine("none", "asked for")
    if requested == "auto":
        return Engine("none", "this version has no container images yet")
    raise StudyError(f"container: {requested!r} cannot serve in this version; allowed: auto, none")


def command(engine: Engine, job: Path, scratch: Path) -> list[str]:
    """The argv that executes the job file ``job`` and leaves its measurement in the folder ``scratch``."""
    if engine.name != "none":
        raise StudyError(f"container: no command for engine {engine.name!r}")
    return [sys.executable, "-m", "study.job", str(job), str(scratch)]


def environment(device: str, inherited: dict[str, str]) -> dict[str, str]:
    """The environment of one run.

    Snakemake sets the thread variables of every job from ``--cores``, which must never change
    what is measured; and a CPU run must not see a GPU.
    """
    threads = ("OMP", "GOTO", "OPENBLAS", "MKL", "NUMEXPR")
    dropped = {f"{name}_NUM_THREADS" for name in threads} | {"VECLIB_MAXIMUM_THREADS"}
    values = {key: value for key, value in inherited.items() if key not in dropped}
    values["PYTHONUNBUFFERED"] = "1"
    if device == "cpu":
        values["CUDA_VISIBLE_DEVICES"] = ""
    return values
