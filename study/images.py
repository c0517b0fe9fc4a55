"""Which image a device needs, and which it got, as values. Pure but for a look at the files that decide it."""

import re
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from study.config import Device, Selection, Strict
from study.errors import StudyError
from study.fingerprint import ROOT, digest, file_sha256, stat_of

DOCKERFILE = ROOT / "docker" / "Dockerfile"
LOCK = ROOT / "requirements.lock"
TARGETS: dict[Device, str] = {"cpu": "cpu", "cuda": "gpu"}
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".sif")


class ImageRequest(Strict):
    """Which image the runs on a device are to use. Known before anything is built."""

    device: Device
    kind: Literal["built", "reference", "archive"]
    reference: str = Field(description="The tag that a build gets, a reference that was given, or the archive's path.")
    base_image: str | None = Field(description="`built`: what the Dockerfile builds on.")
    identity: str = Field(description="Eight hex digits over what decides the image; part of each run's key.")


class Image(Strict):
    """An image that is there: `results/images/<device>.json`."""

    request: ImageRequest
    engine: str
    engine_version: str
    id: str = Field(description="The image's own checksum.")
    digest: str | None = Field(description="The checksum by which a registry knows it; none for one built here.")
    run_as: str = Field(description="What the engine is told to run: the id; for apptainer a file.")
    created: str | None = Field(description="When the image was made, as it says itself.")
    lock_sha256: str | None = Field(description="The lock that it was built from, as it says itself.")
    base_digest: str | None = Field(None, description="`built`: the base's checksum in its registry.")
    build_seconds: float | None = Field(None, description="`built` by this step: how long that took.")
    python: str
    libraries: dict[str, str]
    gpu_seen: bool = Field(description="Whether torch found a GPU in it when it was tried.")


def base_of(dockerfile: str) -> str:
    """The base that the Dockerfile names itself."""
    found = re.search(r"^ARG BASE_IMAGE=(\S+)", dockerfile, re.MULTILINE)
    if not found:
        raise StudyError("docker/Dockerfile: names no base: ARG BASE_IMAGE=... is missing")
    return found.group(1)


def request(selection: Selection, device: Device) -> ImageRequest:
    """The image that ``device`` needs under a selection; one clear error for an archive that is not there."""
    given = getattr(selection.images, device)
    if given is None:
        base = selection.base_image or base_of(DOCKERFILE.read_text(encoding="utf-8"))
        identity = digest({"dockerfile": file_sha256(DOCKERFILE), "lock": file_sha256(LOCK), "base": base})
        tag = f"study:{TARGETS[device]}-{identity}"
        return ImageRequest(device=device, kind="built", reference=tag, base_image=base, identity=identity)
    path = Path(given).expanduser()
    if path.is_file():
        full, identity = str(path.resolve()), digest(stat_of(path)[:2])  # a copy has another time
        return ImageRequest(device=device, kind="archive", reference=full, base_image=None, identity=identity)
    if given.endswith(ARCHIVES) or given.startswith(("/", "./", "../", "~")):
        raise StudyError(f"images.{device}: {given!r} is not allowed: no such file; allowed: an archive, a reference")
    return ImageRequest(device=device, kind="reference", reference=given, base_image=None, identity=digest(given))


def path_of(results: Path, device: str) -> Path:
    """Where the image of a device is described."""
    return results / "images" / f"{device}.json"


def read(path: Path) -> Image:
    """What the image step wrote, or one clear error."""
    try:
        return Image.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        raise StudyError(f"images/{path.name}: no image is described there; make it with: make images") from None
