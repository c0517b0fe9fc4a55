"""The manifest of a filled folder: where each picture came from, by which the same ones are brought again."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from study.base.errors import StudyError
from study.base.strict import Strict

SHA256 = "^[0-9a-f]{64}$"


class Picture(Strict):
    """One picture of the folder."""

    label: str = Field(description="Its class: the name of the subfolder.")
    term: str = Field(description="Search term that found the picture.")
    url: str
    bytes: int = Field(ge=0, description="Size of the download in bytes.")
    sha256: str = Field(pattern=SHA256, description="Checksum of the download, before it was shrunk.")
    stored_sha256: str = Field(pattern=SHA256, description="Checksum of the stored, shrunk picture.")

    @property
    def name(self) -> str:
        """Path in the folder, from the content: it is the same on every machine, and so is the split of a study."""
        return f"{self.label}/{self.sha256[:16]}.jpg"


class LeftOut(Strict):
    """A picture that could not be used."""

    url: str
    reason: str


class Manifest(Strict):
    """What a search brought."""

    schema_version: Literal[1] = 1
    max_size: int = Field(ge=32, le=4096, description="Largest longer side of a stored picture in pixels.")
    encoder: str = Field(description="Software that stored the pictures.")
    pictures: list[Picture]
    left_out: list[LeftOut]

    @property
    def counts(self) -> dict[str, int]:
        """The number of pictures of each class."""
        return Counter(picture.label for picture in self.pictures)


def read_earlier(path: Path) -> Manifest:
    """Return the manifest of an earlier search. Raise :class:`StudyError` if it is none, or fills no folder."""
    refused = f"--manifest: {path.name or str(path)!r} is not allowed: "
    try:
        manifest = Manifest.of_file(path.expanduser())
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StudyError(f"{refused}it cannot be read ({reason}); name a search's manifest.json") from None
    except StudyError as error:
        raise StudyError(f"{refused}it is not the manifest of a search ({error})") from None
    try:
        check_labels(list(manifest.counts))
    except StudyError as error:
        raise StudyError(f"{refused}{error}") from None
    for label, count in manifest.counts.items():
        if count < 2:
            raise StudyError(f"{refused}class {label!r} has {count} picture; at least two are needed")
    return manifest


def check_labels(labels: Sequence[str]) -> None:
    """Raise :class:`StudyError` unless these are the names of two folders or more."""
    for label in labels:
        if not is_folder_name(label):
            raise StudyError(f"class {label!r} is not allowed: give a name that every system accepts for a folder")
    if len(labels) < 2:
        raise StudyError(f"at least two classes are needed, and there is {labels[0]!r} alone" if labels else "no class")


def is_folder_name(text: str) -> bool:
    """Return whether ``text`` is a valid folder name on every system, and clashes with no other file of the folder."""
    plain = text.isprintable() and not set(text) & set('/\\:*?"<>|') and text == text.strip(" ")
    return plain and 0 < len(text) <= 80 and not text.startswith(".") and not text.endswith((".", ".json"))
