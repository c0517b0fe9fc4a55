"""The sources of images: what the pipeline asks of a source, and the table of them.

A new source is a subclass of :class:`Source` in a file of its own, a line in :data:`SOURCES`, and
its name in ``dataset.source`` (``study/config/sections.py``).
"""

from __future__ import annotations

import ssl
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from study.artifacts.prepared import Manifest
from study.base.errors import StudyError, first_line, say
from study.base.files import code_sha256, content_of, digest, whole
from study.config.sections import Dataset
from study.config.settings import KEYS

if TYPE_CHECKING:
    from study.data.decode import ImageSet

SOURCE = "dataset.source"
EVERY_RUN = ("source", "path", "channels", "image_size")
"""Keys of a dataset that every run uses whatever its source: where the images are, and their shape
in the model."""
Files = list[tuple[str, str]]
"""The user's files that decide the data: name and SHA-256 of each."""


@dataclass(frozen=True)
class DatasetInfo:
    """What is known of the data before any image is opened."""

    classes: int
    train_images: int
    """Size of the training set if every image can be read."""
    valid_images: int
    """Size of the validation set, in the same way."""
    files: Files | None = None
    """None if the user gave no files."""


@dataclass(frozen=True)
class Download:
    """A file that the host downloads once."""

    path: str
    """Its place, relative to the folder of such files."""
    address: str
    algorithm: str
    """``md5`` or ``sha256``."""
    checksum: str
    """Its checksum, or how that begins."""

    def fits(self, path: Path) -> bool:
        """Return whether this is the file, by its checksum."""
        import pooch

        if not path.is_file():
            return False
        return str(pooch.file_hash(str(path), self.algorithm)).startswith(self.checksum)

    def bring(self, folder: Path) -> Path:
        """Return the path of the file in ``folder``, downloaded if it is not there.

        Raise :class:`StudyError` if it cannot be had.
        """
        import pooch

        target = folder / self.path
        if self.fits(target):
            return target
        say(f"downloading {self.address}")
        # What OpenSSL trusts here, a site's own certificates among it.
        trusted = ssl.get_default_verify_paths().cafile or True
        get = pooch.HTTPDownloader(verify=trusted)
        try:
            with whole(target) as temporary:
                get(self.address, str(temporary), None)
                if not self.fits(temporary):
                    raise OSError(f"its {self.algorithm} is not {self.checksum}")
        except OSError as error:  # requests' own errors are such, too
            first: BaseException = error
            while first.__context__:
                first = first.__context__
            raise StudyError(f"{self.address}: {first_line(first)}") from None
        return target


class Source(ABC):
    """A source of images, as the rest of the pipeline knows it.

    ``folder`` is always the dataset's own folder, ``results/data/<dataset>``.
    """

    downloads: ClassVar[Sequence[Download]] = ()
    """What the host brings into ``results/data/downloads``, unless ``dataset.path`` names a folder.

    :meth:`make` may unpack it into ``results/data/unpacked``, and is never called twice at the same
    time.
    """
    in_the_image: ClassVar[bool] = False
    """True if :meth:`make` opens files that nobody has checked, or needs a package of the training
    environment alone.

    It is then called in the image of the runs, if they have one.
    """
    packages: ClassVar[tuple[str, ...]] = ()
    """Modules from elsewhere that hold the images: their packages are part of a run's key."""
    code: ClassVar[tuple[str, ...]] = ()
    """Globs, below the package, of the code that decides the manifest; none if an edit must not
    make it again."""

    def keys(self, dataset: Dataset) -> tuple[str, ...]:
        """Return the keys of ``dataset`` that decide the manifest: by default those with an effect,
        but EVERY_RUN's."""
        return tuple(
            key
            for key in Dataset.model_fields
            if key not in EVERY_RUN
            and not any(
                idle.when.keys() == {SOURCE} and idle.when[SOURCE].hold(dataset.source)
                for idle in KEYS[f"dataset.{key}"].idle
            )
        )

    @abstractmethod
    def inspect(self, dataset: Dataset) -> DatasetInfo:
        """Return what is known before any work. Raise :class:`StudyError` if the data cannot be had
        as asked."""

    @abstractmethod
    def make(self, dataset: Dataset, folder: Path, results: Path) -> Manifest:
        """Draw, verify or unpack the images, and return their manifest, which the caller writes."""

    def base(self, dataset: Dataset, folder: Path, results: Path) -> Path:
        """Return the folder that holds the manifest's files. A run reads it, so a container has to
        see it."""
        return folder

    def open(self, manifest: Manifest, dataset: Dataset, folder: Path, results: Path) -> ImageSet:
        """Return the images of a manifest: by default one file for each item, with its class and
        split."""
        from study.data.decode import listed

        return listed(manifest, self.base(dataset, folder, results))


SOURCES = {
    "generated": "study.data.generated:Generated",
    "folder": "study.data.folder:Folder",
    "cifar10": "study.data.torchvision_sets:Cifar10",
    "mnist": "study.data.torchvision_sets:Mnist",
    "digits": "study.data.digits:Digits",
}
"""Module and class of each ``dataset.source``. A start of the pipeline imports only the sources
that it uses."""


def source_of(dataset: Dataset) -> Source:
    """Return the source that ``dataset`` names."""
    module, _, name = SOURCES[dataset.source].partition(":")
    source: Source = getattr(import_module(module), name)()
    return source


def inspect(dataset: Dataset) -> DatasetInfo:
    """Return what is known of the data before any work. Raise :class:`StudyError` if they cannot be
    had as asked."""
    return source_of(dataset).inspect(dataset)


def name_of(dataset: Dataset, files: Files | None) -> str:
    """Return the name of the data's folder in ``results/data``. It holds a digest of all that
    decides the manifest."""
    source = source_of(dataset)
    identity: dict[str, Any] = {"source": dataset.source}
    if files is not None:
        identity["files"] = files
    for key in source.keys(dataset):
        identity[key] = getattr(dataset, key)
    if source.code:
        identity["code"] = code_sha256(source.code)
    return f"{dataset.source}.{digest(identity)}"


def with_effect(values: Mapping[str, Any], datasets: Iterable[Dataset]) -> dict[str, Any]:
    """Return ``values``, by dotted key, without the keys of a dataset that have no effect on any of
    ``datasets``."""
    used = set(EVERY_RUN).union(*(source_of(dataset).keys(dataset) for dataset in datasets))
    return {
        key: value
        for key, value in values.items()
        if not key.startswith("dataset.") or key.removeprefix("dataset.") in used
    }


def open_set(manifest: Manifest, dataset: Dataset, folder: Path, results: Path) -> ImageSet:
    """Return the images of a manifest, which lies in ``folder``."""
    return source_of(dataset).open(manifest, dataset, folder, results)


def given_folder(given: str) -> Path:
    """Return the folder that ``dataset.path`` names. Raise :class:`StudyError` if there is none."""
    try:
        folder = Path(given).expanduser()
        if not folder.exists():
            raise refused(given, "no such folder")
        if not folder.is_dir():
            raise refused(given, "it is a file; give a folder")
    except (OSError, RuntimeError) as error:
        raise refused(given, f"cannot be read: {error}") from None
    return folder


def refused(given: str, why: str, allowed: str = "", context: str = "") -> StudyError:
    """Return the error of the folder, or of a folder in it, that ``dataset.path`` names."""
    return StudyError(key="dataset.path", value=given, context=context, why=why, allowed=allowed)


def not_obtained(dataset: Dataset, reason: str) -> StudyError:
    """Return the error of a set that cannot be had."""
    return StudyError(
        f"dataset.source: {dataset.source!r} could not be obtained ({reason}); put the files on "
        "disk and name their folder as dataset.path, or use dataset.source: generated"
    )


def as_text(name: str) -> str:
    """Return a file's name with escapes such as ``\\xff`` for bytes that are no UTF-8, which no
    manifest can hold."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def contents(folder: Path, files: Iterable[Path]) -> Files:
    """Return relative name and SHA-256 of each of the ``files`` below ``folder``."""
    return [(path.relative_to(folder).as_posix(), content_of(path)) for path in files]
