"""What is prepared before a run, as values: the data, the weights, the image. Host side: no
torch."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Literal
from unicodedata import normalize

from pydantic import Field

from study.base.strict import Strict
from study.config.sections import Device

Split = Literal["train", "valid"]


class Item(Strict):
    """One file of the dataset."""

    name: str
    """Path relative to the data's folder, with forward slashes."""
    bytes: int = Field(ge=0)
    """Size of the file in bytes."""
    sha256: str
    """Checksum of the file's content."""
    label: str | None
    """Class of the image; null for a file that holds images of every class."""
    split: Split | None
    """`train` or `valid`; null for a file that holds both."""


class LeftOut(Strict):
    """A file that is named with a reason."""

    name: str
    """Path relative to the data's folder."""
    reason: str


class InBoth(Strict):
    """A picture to validate on whose file, byte for byte, is also one to train on."""

    valid: str
    """Path of the picture to validate on."""
    train: str
    """Path of the one to train on."""


class Manifest(Strict):
    """The list of a dataset's images, written by the dataset step and read by every run."""

    remedy = "the next start makes it"
    schema_version: Literal[1] = 1
    source: str
    generated: bool
    """True if the images were drawn, and are not photographs."""
    seed: int
    valid_fraction: float
    classes: list[str]
    train_images: int
    valid_images: int
    items: list[Item]
    left_out: list[LeftOut] = []
    """Files below the folder that are not used."""
    in_both: list[InBoth] = []
    otherwise: list[LeftOut] = []
    """Used files that stock fastai reads otherwise than our decoder."""

    def said(self, with_fastai: bool) -> Iterator[str]:
        """Yield what there is, and what makes an accuracy look better than it is, or gives the
        loops other pictures."""
        left_out = ""
        if self.left_out:
            first = self.left_out[0]
            left_out = f", {len(self.left_out)} left out (first {first.name!r}: {first.reason})"
        yield (
            f"data: {self.source}, {self.train_images} images to train and {self.valid_images} to "
            f"validate, {len(self.classes)} classes{left_out}"
        )
        seen: dict[str, str] = {}
        for name in self.classes:
            other = seen.setdefault(normalize("NFKC", name).casefold(), name)
            if other != name:
                yield f"the classes {other!a} and {name!a} have one name in two spellings"
        if self.in_both:
            one = self.in_both[0]
            yield (
                f"{len(self.in_both)} of the images to validate on are files that are also trained "
                f"on, first {one.valid!r}, which is {one.train!r}"
            )
        if with_fastai and self.otherwise:
            odd = self.otherwise[0]
            yield (
                f"{len(self.otherwise)} read otherwise by fastai, first {odd.name!r}: {odd.reason}"
            )

    @property
    def valid_majority_images(self) -> int | None:
        """Validation images of their most frequent class; None if files hold images of several
        classes."""
        labels = Counter(item.label for item in self.items if item.split == "valid")
        return max(labels.values()) if labels and None not in labels else None

    @property
    def sha256(self) -> str:
        """Checksum of the whole dataset: names, contents, classes and split."""
        text = "\n".join(
            f"{item.name}\0{item.sha256}\0{item.label}\0{item.split}" for item in self.items
        )
        return hashlib.sha256(text.encode()).hexdigest()


class Weights(Strict):
    """The decision for one model of a study: made once, before any run, and followed by every
    run."""

    remedy = "the next start makes it"
    model: str
    requested: str
    """`imagenet`, `none`, or the base name of the file that was asked for."""
    kind: Literal["imagenet", "file", "random"]
    file: str | None
    """Base name of the file; null for random weights."""
    sha256: str | None
    """Checksum of the file; null for random weights."""
    body_sha256: str
    """Checksum of the body's tensors, from which every run starts."""
    reason: str
    """Reason for this kind."""
    parameters: dict[str, list[int]] | None = None
    """Shape of each parameter of a user's own model, which every run has to find; null in
    records."""

    @property
    def fell_back(self) -> bool:
        """Whether ImageNet weights were asked for and not available."""
        return self.requested == "imagenet" and self.kind == "random"


class Packages(Strict):
    """An environment of packages on the host, described in `results/environments/<name>.json`."""

    remedy = "the next start makes it"
    lock: str
    """Base name of the lock from which it was made."""
    lock_sha256: str
    """Checksum of that lock."""
    python: str
    libraries: dict[str, str]
    """Versions of the packages that a run may import, by their names."""


class ImageRequest(Strict):
    """The image that the runs on a device are to use, known before anything is built."""

    device: Device
    lock: str | None = None
    """`built`: path of the lock; null for the project's own."""
    kind: Literal["built", "reference", "archive"]
    reference: str
    """The tag for the build, the given reference, or the path of the archive."""
    base_image: str | None
    """`built`: the base image of the Dockerfile."""
    identity: str
    """Hash (eight hex digits) of all that decides the image; part of each run's key."""


class Image(Strict):
    """An available image, described in `results/images/<device>.json`."""

    remedy = "the next start makes it"
    request: ImageRequest
    engine: str
    engine_version: str
    id: str
    """The image's own checksum, by which the engine runs it."""
    digest: str | None
    """The image's checksum in a registry; none if built here."""
    lock_sha256: str | None
    """Checksum of the lock that it was built from, from its own label."""
    base_digest: str | None = None
    """`built`: the base image's checksum in its registry."""
    build_seconds: float | None = None
    """Duration of the build in seconds, if this step built it."""
    python: str
    libraries: dict[str, str]
    gpu_seen: bool
    """True if torch found a GPU when the image was tested."""
