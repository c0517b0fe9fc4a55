"""The argv with which an engine executes one command in a container. This module starts and asks nothing.

The container sees only its mounts, and has no network, no capabilities and no writable root.
"""

import csv
import io
import os
from collections.abc import Mapping, Sequence
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


def argv(engine: str, box: Box) -> list[str]:
    """Return the command line with which ``engine`` executes ``box``.

    Raise :class:`StudyError` if a path cannot be mounted, or if the engine is unknown.
    """
    if engine in ("docker", "podman"):
        return _docker(engine, box)
    if engine == "apptainer":
        return _apptainer(box)
    raise StudyError(f"container: {engine!r} is not allowed: docker, podman, apptainer")


def _docker(engine: str, box: Box) -> list[str]:
    line = [
        engine,
        "run",
        "--name",
        box.name,
        "--cidfile",
        str(id_file(box.scratch)),
        "--init",
        "--pull",
        "never",
        "--log-driver",
        "none",
    ]
    line += ["--hostname", HOST, "--workdir", WORK, "--user", "{}:{}".format(*box.user)]
    line += ["--network", "host" if box.network else "none", "--read-only"]
    line += ["--tmpfs", "/tmp:rw,exec,nosuid,nodev,mode=1777"]  # noqa: S108 - inside; torch.compile executes there
    line += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--pids-limit", "4096"]
    # With SELinux a container could not read the user's folders, and relabelling would change the user's folders.
    line += ["--security-opt", "label=disable", "--shm-size", str(box.shared_memory_bytes)]
    if engine == "podman" and box.user[0] != UNPRIVILEGED:
        line += ["--userns", "keep-id"] + (["--group-add", "keep-groups"] if box.groups else [])
    else:
        line += [item for group in box.groups for item in ("--group-add", str(group))]
    if box.memory_bytes:
        line += ["--memory", str(box.memory_bytes), "--memory-swap", str(box.memory_bytes)]
    if box.cpus:
        line += ["--cpuset-cpus", ",".join(map(str, box.cpus))]
    if box.gpus is not None and engine == "docker":
        line += ["--gpus", _csv([f"device={','.join(box.gpus)}"]) if box.gpus else "all"]
    elif box.gpus is not None:
        line += [item for gpu in box.gpus or ("all",) for item in ("--device", f"nvidia.com/gpu={gpu}")]
    for key, value in _environment(engine, box).items():
        line += ["--env", f"{key}={value}"]
    for name in box.passed:
        line += ["--env", name]
    for key, value in box.labels.items():
        line += ["--label", f"{key}={value}"]
    for mount in [*box.mounts, Mount(box.scratch, SCRATCH, writable=True)]:
        line += ["--mount", _mount(mount, "readonly")]
    return [*line, box.image, *box.command]


def _apptainer(box: Box) -> list[str]:
    line = ["apptainer", "--silent", "exec", "--containall", "--cleanenv", "--no-home", "--no-privs", "--pwd", WORK]
    if not box.network:
        line += ["--net", "--network", "none"]
    if box.user[0] == UNPRIVILEGED:  # only root may change the user, and only root has to
        line += ["--security", f"uid:{box.user[0]}", "--security", f"gid:{box.user[1]}"]
    if box.memory_bytes:
        line += ["--memory", str(box.memory_bytes), "--memory-swap", str(box.memory_bytes)]
    if box.cpus:
        line += ["--cpuset-cpus", ",".join(map(str, box.cpus))]
    if box.gpus is not None:
        line += ["--nv"]
    temporary = Mount(box.scratch / "tmp", "/tmp", writable=True)  # noqa: S108 - its own /tmp holds 64 MB
    shared = Mount(Path("/dev/shm"), "/dev/shm", writable=True)  # noqa: S108 - the same
    for mount in [*box.mounts, temporary, shared, Mount(box.scratch, SCRATCH, writable=True)]:
        line += ["--mount", _mount(mount, "ro")]
    # apptainer splits its --env at commas: env sets them inside instead.
    inside = [f"{key}={value}" for key, value in _environment("apptainer", box).items()]
    return [*line, box.image, "env", *inside, *box.command]


def _environment(engine: str, box: Box) -> dict[str, str]:
    """Return the environment variables of the container. No other variable of the caller reaches it."""
    values = {
        "HOME": "/tmp",  # noqa: S108 - fastai and torch.hub write there
        "USER": USER,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "MPLCONFIGDIR": "/tmp/matplotlib",  # noqa: S108
        "PYTHONPATH": WORK,
        "PYTHONUNBUFFERED": "1",
        "STUDY_CONTAINER": engine,
    }
    if box.gpus is None:
        values["CUDA_VISIBLE_DEVICES"] = ""
    elif engine == "docker":  # the toolkit's older hook reads this, and the image sets "all"
        values["NVIDIA_VISIBLE_DEVICES"] = ",".join(box.gpus) or "all"
    elif engine == "apptainer" and box.gpus:
        values["CUDA_VISIBLE_DEVICES"] = ",".join(box.gpus)
    return values | dict(box.environment)


def _mount(mount: Mount, read_only: str) -> str:
    for path in (str(mount.source), mount.target):
        if "\n" in path:
            raise StudyError(f"{path!r}: a path with a line break cannot be mounted into a container")
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    return _csv(fields if mount.writable else [*fields, read_only])


def _csv(fields: Sequence[str]) -> str:
    """Return the fields as one line of CSV, as engines read them: fields with a comma or a quote are quoted."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(fields)
    return text.getvalue()


def user_inside(uid: int, gid: int, rootless: bool = False) -> tuple[int, int]:
    """Return the (uid, gid) inside: the caller's, or those of an unprivileged user if the caller is root.

    In a rootless docker the caller is root inside.
    """
    if rootless:
        return (0, 0)
    return (uid, gid) if uid else (UNPRIVILEGED, UNPRIVILEGED)


def chosen_gpus(visible: str | None) -> tuple[str, ...]:
    """Return the GPUs that ``visible``, the value of ``CUDA_VISIBLE_DEVICES``, names. Empty means all GPUs."""
    return tuple(name.strip() for name in (visible or "").split(",") if name.strip())


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
