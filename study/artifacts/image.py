"""The image that a device needs, and the image that it got, as values. Only reads files that decide the image."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from study.base.strict import Strict
from study.config.sections import Device


class ImageRequest(Strict):
    """The image that the runs on a device are to use, known before anything is built."""

    device: Device
    lock: str | None = Field(None, description="`built`: path of the lock; null for the project's own.")
    kind: Literal["built", "reference", "archive"]
    reference: str = Field(description="The tag for the build, the given reference, or the path of the archive.")
    base_image: str | None = Field(description="`built`: the base image of the Dockerfile.")
    identity: str = Field(description="Hash (eight hex digits) of all that decides the image; part of each run's key.")


class Image(Strict):
    """An available image, described in `results/images/<device>.json`."""

    request: ImageRequest
    engine: str
    engine_version: str
    id: str = Field(description="The image's own checksum.")
    digest: str | None = Field(description="The image's checksum in a registry; none if built here.")
    run_as: str = Field(description="The name by which the engine runs it: the id; for apptainer a file.")
    created: str | None = Field(description="Time when the image was made, from its own description.")
    lock_sha256: str | None = Field(description="Checksum of the lock that it was built from, from its own label.")
    base_digest: str | None = Field(None, description="`built`: the base image's checksum in its registry.")
    build_seconds: float | None = Field(None, description="Duration of the build in seconds, if this step built it.")
    python: str
    libraries: dict[str, str]
    gpu_seen: bool = Field(description="True if torch found a GPU when the image was tested.")


def read(path: Path) -> Image:
    """Return the description that the image step wrote to ``path``. Raise :class:`StudyError` if there is none."""
    return Image.read(path, "make it with: make images")
