"""The manifest of a dataset: name, size, checksum, class and split of each file. It is made once, before any run."""

import hashlib
from collections import Counter
from pathlib import Path
from typing import Literal

from pydantic import Field

from study.base.strict import Strict

Split = Literal["train", "valid"]


class Origin(Strict):
    """The source of a downloaded picture."""

    url: str
    term: str = Field(description="Search term that found the picture.")
    bytes: int = Field(ge=0, description="Size of the download in bytes.")
    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="Checksum of the download, before it was shrunk.")


class Item(Strict):
    """One file of the dataset."""

    name: str = Field(description="Path relative to the data's folder, with forward slashes.")
    bytes: int = Field(ge=0, description="Size of the file in bytes.")
    sha256: str = Field(description="Checksum of the file's content.")
    label: str | None = Field(description="Class of the image; null for a file that holds images of every class.")
    split: Split | None = Field(description="`train` or `valid`; null for a file that holds both.")
    origin: Origin | None = Field(None, description="Source of the download, for `search`; null otherwise.")


class LeftOut(Strict):
    """A file that could not be used."""

    name: str = Field(description="Path relative to the data's folder, or the URL.")
    reason: str


class Manifest(Strict):
    """The list of a dataset's images, written by the dataset step and read by every run."""

    schema_version: Literal[1] = 1
    source: str
    generated: bool = Field(description="True if the images were drawn, and are not photographs.")
    seed: int
    valid_fraction: float
    max_size: int | None = Field(
        None, description="Largest longer side of a stored picture in pixels, for `search`; null otherwise."
    )
    encoder: str | None = Field(None, description="Software that stored the pictures, for `search`; null otherwise.")
    classes: list[str]
    train_images: int
    valid_images: int
    items: list[Item]
    left_out: list[LeftOut] = Field(default_factory=list)

    @property
    def valid_majority_images(self) -> int | None:
        """Validation images of their most frequent class; None if files hold images of several classes."""
        labels = Counter(item.label for item in self.items if item.split == "valid")
        return max(labels.values()) if labels and None not in labels else None

    @property
    def sha256(self) -> str:
        """Checksum of the whole dataset: names, contents, classes and split."""
        text = "\n".join(f"{item.name}\0{item.sha256}\0{item.label}\0{item.split}" for item in self.items)
        return hashlib.sha256(text.encode()).hexdigest()


def read_manifest(path: Path) -> Manifest:
    """Return the manifest that a dataset step wrote. Raise :class:`StudyError` if there is none."""
    return Manifest.read(path, "make it with: python -m study dataset")
