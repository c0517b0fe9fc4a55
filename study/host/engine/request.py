"""Which image each device needs: built from our Dockerfile, or the one that is named."""

import re
from pathlib import Path

from study.artifacts.image import ImageRequest
from study.base.errors import StudyError
from study.base.files import ROOT, digest, file_sha256, stat_of
from study.config.sections import Device
from study.config.selection import Selection

DOCKERFILE = ROOT / "docker" / "Dockerfile"
LOCK = ROOT / "requirements.lock"
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
