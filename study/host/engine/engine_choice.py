"""The place where runs execute: an engine that can be used, or the host, and why; and the image of
each device, built from our Dockerfile or named.
"""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from study.artifacts.prepared import ImageRequest
from study.base import devices
from study.base.devices import TorchBuild
from study.base.errors import StudyError
from study.base.files import LARGEST_LOCK, LARGEST_WEIGHTS, digest, existing_file, file_sha256
from study.config.sections import Device
from study.config.selection import Selection
from study.host.engine.base import Trouble
from study.host.engine.docker import DOCKERFILE, LOCK, TARGETS, Docker, Podman, base_of

ENGINES: dict[str, Docker] = {engine.name: engine for engine in (Docker(), Podman())}


def engine(name: str) -> Docker:
    """Return the engine called ``name``. Raise :class:`StudyError` if it is none, such as ``none``,
    the host."""
    if name not in ENGINES:
        raise StudyError(key="container", value=name, allowed=ENGINES)
    return ENGINES[name]


ARCHIVES = (".tar", ".tar.gz", ".tgz")


class EngineChoice(NamedTuple):
    """The place where runs execute: the engine (``none``: the host), the reason, and the image of
    each device."""

    engine: str
    reason: str
    images: Mapping[Device, ImageRequest] = {}
    inside: str | None = None
    """The engine of the container around the whole pipeline, if there is one."""

    def absent(self, device: Device) -> str | None:
        """Return why runs cannot use ``device`` here: there is none, or torch cannot use it; None
        if they can."""
        return devices.absent(device) or (
            devices.unfit(self._torch(device)) if device == "cuda" else None
        )

    def _torch(self, device: Device) -> TorchBuild | None:
        """Return the build of torch with which runs execute; None if unknown, as in an image from
        elsewhere."""
        if self.engine == "none":
            return TorchBuild.here()
        image = self.images[device]
        if image.kind != "built":
            return None
        return TorchBuild.of_lock(Path(image.lock or LOCK), in_image=True)


DEVICES: tuple[Device, ...] = ("cpu", "cuda")


def choose_engine(selection: Selection, on_other_machines: bool = False) -> EngineChoice:
    """Return the place for the key ``container``: ``auto`` asks docker, then podman, and falls
    back to the host; a named engine must be usable.

    Where an executor makes the runs ``on_other_machines``, this one tells nothing of their engines
    and GPUs: ``auto`` is the host, and the plans tell which images are needed. Nothing is pulled.
    Raise :class:`StudyError` if a named engine cannot be used.
    """
    requested, inside = selection.container, os.environ.get("STUDY_CONTAINER")
    host = partial(EngineChoice, "none", inside=inside)
    if requested == "none":
        return host(f"asked for, inside a container ({inside})" if inside else "asked for")
    if requested == "auto" and on_other_machines:
        return host("the engines of an executor's machines are not known")
    wanted: dict[Device, ImageRequest] = {device: request(selection, device) for device in DEVICES}
    asked_for = DEVICES if selection.devices == "auto" else selection.devices
    needed = [one for one in asked_for if not on_other_machines and devices.absent(one) is None]
    troubles = []
    names = list(ENGINES) if requested == "auto" else [requested]
    if inside:
        troubles.append(Trouble(f"the pipeline itself runs inside a container ({inside})"))
        names = []
    for name in names:
        asked = engine(name)
        trouble = asked.why_not()
        for device in needed:
            trouble = trouble or (asked.gpu_trouble() if device == "cuda" else None)
            trouble = trouble or asked.image_trouble(wanted[device])
        if trouble is None:
            named = {device: identified(wanted[device], asked) for device in needed}
            answers = "; ".join([*(one.reason for one in troubles), f"{name} answers"])
            return EngineChoice(
                name, answers if requested == "auto" else "asked for", wanted | named
            )
        troubles.append(trouble)
    if requested == "auto":
        return host("; ".join(one.reason for one in troubles))
    raise StudyError(
        f"container: {requested!r} cannot be used: {troubles[0]}; fix that, or run on the host: "
        "--config container=none"
    )


def request(selection: Selection, device: Device) -> ImageRequest:
    """Return the image that ``device`` needs under a selection. Raise :class:`StudyError` for a
    missing archive."""
    given = getattr(selection.images, device)
    if given is None:
        return _built(device, selection.base_image, None)
    return named(given, device, f"images.{device}", None)


def named(given: str, device: Device, key: str, base_image: str | None) -> ImageRequest:
    """Return the image that ``key`` names for ``device``: an archive, a reference, or a lock from
    which it is built.

    ``base_image`` is that of the device's own image, where it is built here. Raise
    :class:`StudyError` for a file that is not there.
    """
    is_lock = given.endswith(LOCK.suffix)
    path = existing_file(given, LARGEST_LOCK if is_lock else LARGEST_WEIGHTS)
    if path and is_lock:
        return _built(device, base_image, path)
    if path:
        full, identity = str(path.resolve()), digest([path.name, path.stat().st_size])
        return ImageRequest(
            device=device, kind="archive", reference=full, base_image=None, identity=identity
        )
    if given.endswith((*ARCHIVES, LOCK.suffix)) or given.startswith(("/", "./", "../", "~")):
        raise StudyError(
            key=key,
            value=given,
            why="no such file, or too large a one",
            allowed="an archive, a lock, a reference",
        )
    return ImageRequest(
        device=device, kind="reference", reference=given, base_image=None, identity=digest(given)
    )


def identified(wanted: ImageRequest, engine: Docker) -> ImageRequest:
    """Return the request with the image's own checksum in place of its name, which another image
    may have one day.

    The name stays where it holds a checksum, and where the engine does not have the image.
    """
    if wanted.kind != "reference" or "@" in wanted.reference:
        return wanted
    stored = engine.image(wanted.reference)
    identity = digest(stored.digest or stored.id) if stored else wanted.identity
    return wanted.model_copy(update={"identity": identity})


def _built(device: Device, base: str | None, lock: Path | None) -> ImageRequest:
    """Return the image that is built from a base, by default the Dockerfile's, and a lock, by
    default the project's."""
    base = base or base_of(DOCKERFILE.read_text(encoding="utf-8"))
    identity = digest(
        {"dockerfile": file_sha256(DOCKERFILE), "lock": file_sha256(lock or LOCK), "base": base}
    )
    return ImageRequest(
        device=device,
        kind="built",
        reference=f"study:{TARGETS[device]}-{identity}",
        base_image=base,
        lock=str(lock.resolve()) if lock else None,
        identity=identity,
    )
