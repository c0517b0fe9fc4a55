"""Which image each device needs: built from our Dockerfile, or the one that is named."""

import re
from pathlib import Path

from study.artifacts.prepared import ImageRequest
from study.base.errors import StudyError
from study.base.files import ROOT, digest, file_sha256, stat_of
from study.config.sections import Device
from study.config.selection import Selection
from study.host.engine.base import Engine

DOCKERFILE = ROOT / "docker" / "Dockerfile"
LOCK = ROOT / "requirements.lock"
INSTALLER = ROOT / "requirements-uv.lock"
"""The lock of what installs the other. It changes nothing of what is installed, so it is in no key."""
TARGETS: dict[Device, str] = {"cpu": "cpu", "cuda": "gpu"}
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".sif")


def base_of(dockerfile: str) -> str:
    """Return the default base image in the text of a Dockerfile. Raise :class:`StudyError` if it names none."""
    found = re.search(r"^ARG BASE_IMAGE=(\S+)", dockerfile, re.MULTILINE)
    if not found:
        raise StudyError("docker/Dockerfile: names no base image: ARG BASE_IMAGE=... is missing")
    return found.group(1)


def request(selection: Selection, device: Device) -> ImageRequest:
    """Return the image that ``device`` needs under a selection. Raise :class:`StudyError` for a missing archive."""
    given = getattr(selection.images, device)
    if given is None:
        return _built(device, selection.base_image or base_of(DOCKERFILE.read_text(encoding="utf-8")), None)
    return named(given, device, f"images.{device}", None)


def named(given: str, device: Device, key: str, base_image: str | None) -> ImageRequest:
    """Return the image that ``key`` names for ``device``: an archive, a reference, or a lock from which it is built.

    ``base_image`` is that of the device's own image, where it is built here. Raise :class:`StudyError` for a file that
    is not there.
    """
    path = Path(given).expanduser()
    if path.suffix == LOCK.suffix and path.is_file():
        return _built(device, base_image or base_of(DOCKERFILE.read_text(encoding="utf-8")), path)
    if path.is_file():
        full, identity = str(path.resolve()), digest(stat_of(path)[:2])  # a copy has another time
        return ImageRequest(device=device, kind="archive", reference=full, base_image=None, identity=identity)
    if given.endswith((*ARCHIVES, LOCK.suffix)) or given.startswith(("/", "./", "../", "~")):
        allowed = "an archive, a lock, a reference"
        raise StudyError(key=key, value=given, why="no such file", allowed=allowed)
    return ImageRequest(device=device, kind="reference", reference=given, base_image=None, identity=digest(given))


def identified(wanted: ImageRequest, engine: Engine) -> ImageRequest:
    """Return the request with the image's own checksum in place of its name, which another image may have one day.

    The name stays where it holds a checksum, and where the engine does not have the image.
    """
    stored = engine.image(wanted.reference) if wanted.kind == "reference" and "@" not in wanted.reference else None
    return wanted.model_copy(update={"identity": digest(stored.digest or stored.id)}) if stored else wanted


def _built(device: Device, base: str, lock: Path | None) -> ImageRequest:
    """Return the image that is built from a base and a lock; None for the project's own lock."""
    identity = digest({"dockerfile": file_sha256(DOCKERFILE), "lock": file_sha256(lock or LOCK), "base": base})
    return ImageRequest(
        device=device,
        kind="built",
        reference=f"study:{TARGETS[device]}-{identity}",
        base_image=base,
        lock=str(lock.resolve()) if lock else None,
        identity=identity,
    )
