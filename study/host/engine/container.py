"""One command in a container, as values: what it may see and use, the mounts of a run, and what
every engine gives it.

This module starts and asks nothing. How an engine is told is the class of that engine.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from study.artifacts.layout import Results
from study.artifacts.run import Run
from study.base.errors import StudyError
from study.base.files import PACKAGE
from study.config import own_model
from study.config.settings import Settings
from study.data.sources import source_of

WORK = "/work"
SCRATCH = "/scratch"
NAME = "study-measures"
"""Name of the one container that measures on a machine: a second guard besides the launcher's
lock."""
LAUNCHER = "study.launcher"
"""Label that names the launcher of a container."""
UNPRIVILEGED = 65532
"""User id inside the container if the caller is root, as is usual in images without users."""
HOST, USER = "study-container", "study-user"
"""Host and user names inside. They are removed from messages, so they must not be words that
messages use."""
FLOAT_BYTES = 4
MIB = 2**20


class Mount(NamedTuple):
    """A file or folder of the host, and its path inside the container."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True)
class Box:
    """One command, with the files that it may see and the resources that it may use.

    ``gpus`` holds names of GPUs: None means no GPU, empty means all. ``scratch`` is the folder that
    the command may write; the engine writes the container's id beside it.
    """

    image: str
    command: Sequence[str]
    scratch: Path
    name: str
    user: tuple[int, int]
    mounts: Sequence[Mount] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[int, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[str, ...] | None = None
    shared_memory_bytes: int = 64 * MIB
    memory_bytes: int | None = None
    cpus: tuple[int, ...] | None = None
    folder: str = WORK
    """Where the command begins: a user's image has no folder of ours but the scratch folder."""


def id_file(scratch: Path) -> Path:
    """Return the path where docker and podman write the id of the container that they made."""
    return scratch.parent / "container-id"


def user_inside(uid: int, gid: int, rootless: bool = False) -> tuple[int, int]:
    """Return the (uid, gid) inside: the caller's, or those of an unprivileged user if the caller is
    root.

    In a rootless docker the caller is root inside.
    """
    if rootless:
        return (0, 0)
    return (uid, gid) if uid else (UNPRIVILEGED, UNPRIVILEGED)


def shared_memory_bytes(settings: Settings, cpus: int) -> int:
    """Return the size of a container's /dev/shm in bytes, at least 1 GiB."""
    return max(1024 * MIB, loader_bytes(settings, cpus))


def loader_bytes(settings: Settings, cpus: int) -> int:
    """Return the bytes of the batches that the loader's workers hand over through /dev/shm, at
    most.

    Each worker of the training and of the validation loader keeps ``loader.prefetch_factor``
    batches ready, and each loader has one more batch in use. ``cpus`` is the number of CPUs, which
    decides ``loader.workers: auto``.
    """
    loader = settings.loader
    workers = loader.workers_on(cpus, settings.training.replicas)
    if loader.kind in ("device", "threads"):
        return 0
    image = settings.dataset.channels * settings.dataset.image_size**2 * FLOAT_BYTES
    batches = 2 * (loader.batches_ahead * workers + 1)
    return batches * settings.training.global_batch_size * image if workers else 0


def environment(device: str, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a run on the host, or of an engine's client.

    It is ``inherited`` without the thread variables, which Snakemake sets from ``--cores``: that
    option must not change a measurement. A run on another device sees no GPU.
    """
    threads = ("OMP", "GOTO", "OPENBLAS", "MKL", "NUMEXPR")
    dropped = {f"{name}_NUM_THREADS" for name in threads} | {"VECLIB_MAXIMUM_THREADS"}
    values = {key: value for key, value in inherited.items() if key not in dropped}
    values["PYTHONUNBUFFERED"] = "1"
    # The driver's own order: a number names the same GPU everywhere.
    values["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    if device != "cuda":
        values["CUDA_VISIBLE_DEVICES"] = ""
    # A plug-in of torch for another device would take the place of its own compiler.
    values["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    return values


def each(option: str, values: Iterable[str]) -> list[str]:
    """Return ``option`` before each of the values."""
    return list(chain.from_iterable((option, value) for value in values))


def pairs(values: Mapping[str, str]) -> list[str]:
    """Return each key and value as ``key=value``."""
    return [f"{key}={value}" for key, value in values.items()]


def mounted(mount: Mount) -> str:
    """Return a mount as the value of an engine's option. Raise :class:`StudyError` if a path has a
    line break, which no engine reads."""
    paths = f"{mount.source} as {mount.target}"
    if "\n" in paths:
        raise StudyError(f"{paths!r}: a path with a line break cannot be mounted into a container")
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    return csv_line(fields if mount.writable else [*fields, "readonly"])


def csv_line(fields: Sequence[str]) -> str:
    """Return the fields as one line of CSV, as engines read them: fields with a comma or a quote
    are quoted."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(fields)
    return text.getvalue()


def settings_inside(settings: Settings) -> tuple[Settings, list[Mount]]:
    """Return the settings with every path as the container sees it, and the mounts that make those
    paths visible."""
    values, mounts = settings.model_dump(), []
    places = (("dataset", "path", "/data"), ("model", "weights", "/weights"))
    for section, key, folder in places:
        given = values[section][key]
        if not given or (section == "model" and given in ("imagenet", "none")):
            continue
        source = Path(given).expanduser().resolve()
        values[section][key] = f"{folder}/{source.name}"
        mounts.append(Mount(source, values[section][key]))
    return Settings.model_validate(values), mounts


def code_mount() -> Mount:
    """Return the mount of the package, which is not part of the image, so that an edit does not
    rebuild the image."""
    return Mount(PACKAGE, f"{WORK}/study")


def own_mounts(settings: Settings) -> list[Mount]:
    """Return the mounts of the user's own model and of its local imports; none if the settings name
    no own model."""
    here, name = Path.cwd(), settings.model.name
    at = own_model.home(name, here)
    own = own_model.sources(name, here)
    return [Mount(path.resolve(), f"{WORK}/{path.relative_to(at).as_posix()}") for path in own]


def run_mounts(run: Run, study: str, results: Path) -> list[Mount]:
    """Return the mounts of all that a run reads: the package, its data, the decision about its
    weights, the weights."""
    files = Results(results)
    dataset, data = run.settings.dataset, files.data(run.dataset)
    base = source_of(dataset).base(dataset, data, results)
    wanted = dict.fromkeys([data, base, files.decisions(study), files.hub])
    inside = Path(WORK, "results")
    seen = [
        Mount(path.resolve(), str(inside / path.relative_to(results)))
        for path in wanted
        if path.is_relative_to(results)
        and path.exists()  # a user's own folder comes with the settings
    ]
    return [code_mount(), *own_mounts(run.settings), *seen]


def check_readable(mounts: Sequence[Mount], user: tuple[int, int]) -> None:
    """Raise :class:`StudyError` if the user inside the container may not read a mount.

    ``user`` is that user's (uid, gid). It differs from the caller only if the caller is root.
    """
    if user[0] != UNPRIVILEGED:
        return
    for mount in mounts:
        needed = 0o005 if mount.source.is_dir() else 0o004
        if mount.source.stat().st_mode & needed != needed:
            raise StudyError(
                f"{mount.source.name}: root's containers run as user {UNPRIVILEGED}, which may not "
                "read it; allow it with: chmod -R o+rX, or run as a user other than root"
            )


def check_visible(folder: Path, names: Sequence[str], root: bool) -> None:
    """Raise :class:`StudyError` if a container with ``folder`` mounted could not read one of the
    files ``names`` in it.

    ``root``: True if the caller is root, so that the container runs as another user.
    """
    base = folder.resolve()
    for name in names:
        path = (base / name).resolve()
        if not path.is_relative_to(base):
            raise StudyError(
                f"dataset.path: {name!r} is a link to outside the folder, which a container does "
                "not see; copy the file, or run on the host: --config container=none"
            )
        if root and not path.stat().st_mode & 0o004:
            raise StudyError(
                f"dataset.path: {name!r} is readable only by root, and containers run as user "
                f"{UNPRIVILEGED}; allow it with: chmod -R o+rX"
            )
