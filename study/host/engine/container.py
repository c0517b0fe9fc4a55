"""One command in a container, as the argv of its engine. Pure: nothing is asked and nothing is run here.

The container sees what its mounts show and nothing else: no network, no capability, no writable root.
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
"""Name of the one container that measures on a machine: a second guard beside the launcher's lock."""
LAUNCHER = "study.launcher"
"""Label that says which launcher a container belongs to."""
UNPRIVILEGED = 65532
"""The user inside where the caller is root, as in other images that hold no user."""
HOST, USER = "study-container", "study-user"
"""Names inside: no words of ours, for names of host and user are taken out of messages."""
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""Variables that a step with network, and a build, take from the caller."""
FLOAT_BYTES = 4
TORCH_PREFETCHES = 2
"""Batches that each worker of a DataLoader keeps ready where nothing else is said."""
MIB = 2**20


@dataclass(frozen=True)
class Mount:
    """A file or folder of the host, and where the container sees it."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class Box:
    """One command and what it may see and use. ``gpus``: None for none, empty for all, else their names.

    ``scratch`` is the folder that it may write; the engine leaves the container's id beside it.
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
    """Where docker and podman write the id of the container that they made."""
    return scratch.parent / "container-id"


def argv(engine: str, box: Box) -> list[str]:
    """The command line of ``engine`` that executes ``box``.

    Raises :class:`StudyError` where a path cannot be mounted, or the engine is none that is known.
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
    # Where SELinux is enforced a container could not read the user's folders; relabelling them would change them.
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
    """Nothing of the caller's environment reaches the container but what is named here and in the box."""
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
    elif engine == "docker":  # the toolkit's older hook goes by this, and the image says "all"
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
    """The fields as engines read them: one with a comma or a quote in it is quoted."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(fields)
    return text.getvalue()


def user_inside(uid: int, gid: int, rootless: bool = False) -> tuple[int, int]:
    """The caller, or nobody where the caller is root. In a rootless docker the caller is called root inside."""
    if rootless:
        return (0, 0)
    return (uid, gid) if uid else (UNPRIVILEGED, UNPRIVILEGED)


def chosen_gpus(visible: str | None) -> tuple[str, ...]:
    """The GPUs that ``CUDA_VISIBLE_DEVICES`` names, empty where it is not set: all of them."""
    return tuple(name.strip() for name in (visible or "").split(",") if name.strip())


def shared_memory_bytes(settings: Settings, cpus: int) -> int:
    """Size of /dev/shm, through which the loader's workers hand over batches; at least 1 GiB.

    Every worker of the training and of the validation set keeps so many batches ready, and one is in use.
    """
    workers = settings.loader.workers if isinstance(settings.loader.workers, int) else min(16, cpus)
    if settings.loader.kind == "device":
        workers = 0
    image = settings.dataset.channels * settings.dataset.image_size**2 * FLOAT_BYTES
    batches = 2 * ((settings.loader.prefetch_factor or TORCH_PREFETCHES) * workers + 1)
    return max(1024 * MIB, batches * settings.training.global_batch_size * image)


def environment(device: str, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of one run on the host, and of an engine's client.

    Snakemake sets the thread variables of every job from ``--cores``, which must never change
    what is measured; and a CPU run must not see a GPU.
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
    """The engine of the container in which this very process runs; None on a host."""
    if os.environ.get("APPTAINER_CONTAINER") or os.environ.get("SINGULARITY_CONTAINER"):
        return "apptainer"
    return os.environ.get("STUDY_CONTAINER")
