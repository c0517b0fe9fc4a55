"""Which image a device needs, and which it got, as values. Pure but for a look at the files that decide it."""

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from study.base.errors import StudyError
from study.base.strict import Strict
from study.config.sections import Device


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


def path_of(results: Path, device: str) -> Path:
    """Where the image of a device is described."""
    return results / "images" / f"{device}.json"


def read(path: Path) -> Image:
    """What the image step wrote, or one clear error."""
    try:
        return Image.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        raise StudyError(f"images/{path.name}: no image is described there; make it with: make images") from None
