"""The list of a dataset's images: name, size, checksum, class and split. Made once, before any run."""

import hashlib
from pathlib import Path
from typing import Literal

from pydantic import Field

from study.config import Strict
from study.fingerprint import file_sha256

Split = Literal["train", "valid"]


class Origin(Strict):
    """Where a picture came from."""

    url: str
    term: str = Field(description="What was searched for.")
    bytes: int = Field(ge=0, description="Size of what was downloaded.")
    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="Checksum of what was downloaded, before it was shrunk.")


class Item(Strict):
    """One file."""

    name: str = Field(description="Path relative to the data's folder, with forward slashes.")
    bytes: int = Field(ge=0, description="Size of the file.")
    sha256: str = Field(description="Checksum of the file's content.")
    label: str | None = Field(description="Class; null for a file that holds images of every class.")
    split: Split | None = Field(description="`train` or `valid`; null for a file that holds both.")
    origin: Origin | None = Field(None, description="`search`: where it was downloaded from.")


class LeftOut(Strict):
    """A file that could not be used."""

    name: str = Field(description="Path relative to the data's folder, or the URL.")
    reason: str


class Manifest(Strict):
    """What a dataset step leaves for every run."""

    schema_version: Literal[1] = 1
    source: str
    generated: bool = Field(description="Whether the images were drawn and are no photographs.")
    seed: int
    valid_fraction: float
    max_size: int | None = Field(None, description="`search`: the longer side of a stored picture, in pixels at most.")
    encoder: str | None = Field(None, description="`search`: the software that stored the pictures.")
    classes: list[str]
    train_images: int
    valid_images: int
    items: list[Item]
    left_out: list[LeftOut] = Field(default_factory=list)

    @property
    def sha256(self) -> str:
        """One checksum for the whole dataset: names, contents, classes and split."""
        text = "\n".join(f"{item.name}\0{item.sha256}\0{item.label}\0{item.split}" for item in self.items)
        return hashlib.sha256(text.encode()).hexdigest()


def item_of(folder: Path, name: str, label: str | None = None, split: Split | None = None) -> Item:
    """The item of the file ``name`` in ``folder``."""
    path = folder / name
    return Item(name=name, bytes=path.stat().st_size, sha256=file_sha256(path), label=label, split=split)


def split_counts(images: int, valid_fraction: float) -> int:
    """How many of a class's images are held out: at least one, and one is left to train on."""
    return min(max(round(images * valid_fraction), 1), images - 1)


def assign_splits(names_by_class: dict[str, list[str]], valid_fraction: float, seed: int) -> dict[str, Split]:
    """The split of each file: stratified by class, decided by a seeded hash of its name.

    Ranking by hash keeps the split stable: a file that is added or removed moves few others.
    """
    splits: dict[str, Split] = {}
    for names in names_by_class.values():
        ranked = sorted(names, key=lambda name: hashlib.sha256(f"{seed}/{name}".encode()).digest())
        held_out = split_counts(len(names), valid_fraction)
        splits |= {name: "valid" if rank < held_out else "train" for rank, name in enumerate(ranked)}
    return splits


def read_manifest(path: Path) -> Manifest:
    """The manifest that a dataset step wrote."""
    return Manifest.model_validate_json(path.read_text(encoding="utf-8"))
