"""One command in a container, as values: what it may see and use, and what every engine gives it.

This module starts and asks nothing. How an engine is told is the class of that engine.
"""

import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from study.base.errors import StudyError
from study.config.settings import Settings

WORK = "/work"
SCRATCH = "/scratch"
NAME = "study-measures"
"""Name of the one container that measures on a machine: a second guard besides the launcher's lock."""
LAUNCHER = "study.launcher"
"""Label that names the launcher of a container."""
UNPRIVILEGED = 65532
"""User id inside the container if the caller is root, as is usual in images without users."""
HOST, USER = "study-container", "study-user"
"""Host and user names inside. They are removed from messages, so they must not be words that messages use."""
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""Variables that a step with network, and a build, take from the caller."""
FLOAT_BYTES = 4
TORCH_PREFETCHES = 2
"""Number of batches that each worker of a DataLoader keeps ready by default."""
MIB = 2**20


@dataclass(frozen=True)
class Mount:
    """A file or folder of the host, and its path inside the container."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class Box:
    """One command, with the files that it may see and the resources that it may use.

    ``gpus`` holds names of GPUs: None means no GPU, empty means all. ``scratch`` is the folder that the command may
    write; the engine writes the container's id beside it.
    """

    image: str
    command: Sequence[str]
    scratch: Path
    name: str
    user: tuple[int, int]
    mounts: Sequence[Mount] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    passed: Sequence[str] = ()  # names whose values the engine takes from its own environment: no secret in an argv
    groups: tuple[int, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[str, ...] | None = None
    network: bool = False
    shared_memory_bytes: int = 64 * MIB
    memory_bytes: int | None = None
    cpus: tuple[int, ...] | None = None


def id_file(scratch: Path) -> Path:
    """Return the path where docker and podman write the id of the container that they made."""
    return scratch.parent / "container-id"


def user_inside(uid: int, gid: int, rootless: bool = False) -> tuple[int, int]:
    """Return the (uid, gid) inside: the caller's, or those of an unprivileged user if the caller is root.

    In a rootless docker the caller is root inside.
    """
    if rootless:
        return (0, 0)
    return (uid, gid) if uid else (UNPRIVILEGED, UNPRIVILEGED)


def shared_memory_bytes(settings: Settings, cpus: int) -> int:
    """Return the size of /dev/shm in bytes, at least 1 GiB. The loader's workers hand over batches through it.

    Each worker of the training and of the validation loader keeps ``loader.prefetch_factor`` batches ready, and each
    loader has one more batch in use. ``cpus`` is the number of CPUs, which decides ``loader.workers: auto``.
    """
    workers = settings.loader.workers if isinstance(settings.loader.workers, int) else min(16, cpus)
    if settings.loader.kind == "device":
        workers = 0
    image = settings.dataset.channels * settings.dataset.image_size**2 * FLOAT_BYTES
    batches = 2 * ((settings.loader.prefetch_factor or TORCH_PREFETCHES) * workers + 1)
    return max(1024 * MIB, batches * settings.training.global_batch_size * image)


def environment(device: str, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a run on the host, or of an engine's client.

    It is ``inherited`` without the thread variables, which Snakemake sets from ``--cores``: that option must not change
    a measurement. A run on a CPU sees no GPU.
    """
    threads = ("OMP", "GOTO", "OPENBLAS", "MKL", "NUMEXPR")
    dropped = {f"{name}_NUM_THREADS" for name in threads} | {"VECLIB_MAXIMUM_THREADS"}
    values = {key: value for key, value in inherited.items() if key not in dropped}
    values["PYTHONUNBUFFERED"] = "1"
    values["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # the driver's own order: a number names the same GPU everywhere
    if device == "cpu":
        values["CUDA_VISIBLE_DEVICES"] = ""
    return values


def inside() -> str | None:
    """Return the engine of the container in which this process runs. None on a host."""
    if os.environ.get("APPTAINER_CONTAINER") or os.environ.get("SINGULARITY_CONTAINER"):
        return "apptainer"
    return os.environ.get("STUDY_CONTAINER")


def each(option: str, values: Iterable[str]) -> list[str]:
    """Return ``option`` before each of the values."""
    return [item for value in values for item in (option, value)]


def pairs(values: Iterable[tuple[str, str]]) -> list[str]:
    """Return each (key, value) as ``key=value``."""
    return [f"{key}={value}" for key, value in values]


def limits(box: Box) -> list[str]:
    """Return the options for memory and CPUs. Swap adds nothing to the memory."""
    memory = [str(box.memory_bytes)] if box.memory_bytes else []
    cpus = [",".join(map(str, box.cpus))] if box.cpus else []
    return [*each("--memory", memory), *each("--memory-swap", memory), *each("--cpuset-cpus", cpus)]


def mounts(shown: Iterable[Mount], read_only: str) -> list[str]:
    """Return the options for mounts. ``read_only`` is the engine's word for a mount that nobody may write.

    Raise :class:`StudyError` if a path has a line break, which no engine reads.
    """
    return each("--mount", [_mount(mount, read_only) for mount in shown])


def _mount(mount: Mount, read_only: str) -> str:
    for path in (str(mount.source), mount.target):
        if "\n" in path:
            raise StudyError(f"{path!r}: a path with a line break cannot be mounted into a container")
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    return csv_line(fields if mount.writable else [*fields, read_only])


def csv_line(fields: Sequence[str]) -> str:
    """Return the fields as one line of CSV, as engines read them: fields with a comma or a quote are quoted."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(fields)
    return text.getvalue()
