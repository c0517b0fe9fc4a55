"""Checks of a dataset before any image is opened. Host side: no torch, no Pillow."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from study.artifacts.manifest import Item, Manifest, Origin
from study.base.errors import StudyError
from study.config.sections import Dataset, is_folder_name
from study.config.settings import Settings
from study.data.splits import split_counts
from study.data.torchvision_sets import ARCHIVES, UNPACKED

SUFFIXES = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"}
TRAIN_IMAGES = {"cifar10": 50_000, "mnist": 60_000}


def class_files(folder: Path) -> dict[str, list[Path]]:
    """Return the image files of each class: the subfolders of ``folder`` by name, their files by relative name.

    Hidden files and folders are ignored. A subfolder without an image is a class without images.
    """
    classes = {}
    for subfolder in sorted(folder.iterdir(), key=lambda path: path.name):
        if subfolder.is_dir() and not subfolder.name.startswith("."):
            classes[subfolder.name] = [path for path in _visible(subfolder) if path.suffix.lower() in SUFFIXES]
    return classes


def other_files(folder: Path) -> list[Path]:
    """Return the files in the classes' folders whose suffix is not an image's."""
    subfolders = (path for path in sorted(folder.iterdir()) if path.is_dir() and not path.name.startswith("."))
    return [path for subfolder in subfolders for path in _visible(subfolder) if path.suffix.lower() not in SUFFIXES]


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.name.startswith(".") and path.is_file())


def list_files(dataset: Dataset) -> list[list[Any]] | None:
    """Return the user's files that decide the data, or None if the user gave none.

    For a folder: relative name, size in bytes and modification time (ns) of every file. For a search's manifest: name,
    URL and checksums.
    """
    if dataset.source == "search":
        return None if not dataset.manifest else list_pictures(given_manifest(dataset))
    if dataset.source == "generated" or not dataset.path:
        return None
    folder = _given_folder(dataset.path)
    if dataset.source == "folder":
        return list_folder(dataset)
    places = {Path(UNPACKED[dataset.source]).parent, Path(ARCHIVES[dataset.source]).parent}
    files = sorted({path for place in places for path in (folder / place).glob("*") if path.is_file()})
    return _stat(folder, files)


def list_folder(dataset: Dataset) -> list[list[Any]]:
    """Return relative name, size in bytes and modification time (ns) of every image file, or raise one clear error."""
    given = str(dataset.path)
    folder = _given_folder(given)
    try:
        classes = class_files(folder)
    except OSError as error:
        raise StudyError(f"dataset.path: {given!r} cannot be read: {error.strerror}") from None
    check_classes({name: len(files) for name, files in classes.items()}, given)
    return _stat(folder, [path for files in classes.values() for path in files])


def _stat(folder: Path, files: list[Path]) -> list[list[Any]]:
    return [[path.relative_to(folder).as_posix(), path.stat().st_size, path.stat().st_mtime_ns] for path in files]


def list_pictures(manifest: Manifest) -> list[list[Any]]:
    """Return name, URL, checksum as downloaded and checksum as stored of every picture of a search."""
    return [[item.name, origin.url, origin.sha256, item.sha256] for item, origin in pictures_of(manifest)]


def pictures_of(manifest: Manifest) -> list[tuple[Item, Origin]]:
    """Return the items that have an origin, with it: every item of a search."""
    return [(item, item.origin) for item in manifest.items if item.origin]


def given_manifest(dataset: Dataset) -> Manifest:
    """Return the manifest of an earlier search that ``dataset.manifest`` names, or raise one clear error."""
    path = Path(str(dataset.manifest))
    name = path.name or str(dataset.manifest)
    refused = f"dataset.manifest: {name!r} is not allowed: "
    try:
        manifest = Manifest.model_validate_json(path.expanduser().read_text(encoding="utf-8"))
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StudyError(f"{refused}it cannot be read ({reason}); name a search's manifest.json") from None
    except (ValidationError, UnicodeDecodeError):
        raise StudyError(f"{refused}it is not a manifest of this pipeline; name a search's manifest.json") from None
    if manifest.source != "search" or len(pictures_of(manifest)) < len(manifest.items):
        raise StudyError(f"{refused}its source is {manifest.source!r}, but only a search's manifest lists downloads")
    _check_search(manifest, dataset, name)
    return manifest


def _check_search(manifest: Manifest, dataset: Dataset, name: str) -> None:
    """Raise :class:`StudyError` unless the manifest of a search is sound, and fits the other keys."""
    refused = f"dataset.manifest: {name!r} is not allowed: "
    terms: dict[str, str] = {}
    counts: dict[str, int] = {}
    for item, origin in pictures_of(manifest):
        label = str(item.label)
        if not is_folder_name(label) or not item.name.startswith(f"{label}/"):
            raise StudyError(f"{refused}its class {label!r} cannot be a folder's name")
        terms[label] = origin.term
        counts[label] = counts.get(label, 0) + 1
    check_classes(counts, name, "dataset.manifest")
    if dataset.terms is not None and dataset.terms != terms:
        raise StudyError(f"{refused}it lists a search for {terms}, but dataset.terms says {dataset.terms}")
    if manifest.max_size != dataset.max_size:
        raise StudyError(
            f"dataset.max_size: {dataset.max_size} is not allowed: the pictures of dataset.manifest {name!r} were "
            f"stored with at most {manifest.max_size} pixels; allowed: {manifest.max_size}"
        )


def _given_folder(given: str) -> Path:
    try:
        folder = Path(given).expanduser()
        if not folder.exists():
            raise StudyError(f"dataset.path: {given!r} is not allowed: no such folder")
        if not folder.is_dir():
            raise StudyError(f"dataset.path: {given!r} is not allowed: it is a file; give a folder")
    except (OSError, RuntimeError) as error:
        raise StudyError(f"dataset.path: {given!r} cannot be read: {error}") from None
    return folder


def check_classes(counts: dict[str, int], path: str, key: str = "dataset.path") -> None:
    """Raise one clear error that names ``key`` unless there are at least two classes with at least two images each."""
    refused = f"{key}: {path!r} is not allowed: "
    if not any(counts.values()):
        place = " in a subfolder; give a folder with one subfolder per class" if key == "dataset.path" else ""
        raise StudyError(f"{refused}it holds no image{place}")
    if len(counts) < 2:
        raise StudyError(f"{refused}it holds one class ({next(iter(counts))!r}); at least two are needed")
    for name, count in counts.items():
        if count < 2:
            raise StudyError(
                f"{refused}class {name!r} has {count} image(s); at least two are needed, one to train and one to "
                "validate"
            )


def expected_classes(dataset: Dataset) -> int:
    """Return the number of classes that the data will have."""
    if dataset.source == "folder":
        return len(class_files(_given_folder(str(dataset.path))))
    if dataset.source == "search":
        if dataset.manifest:
            return len({item.label for item in given_manifest(dataset).items})
        return len(dataset.terms or ())
    return dataset.classes if dataset.source == "generated" else 10  # CIFAR-10 and MNIST


def images_a_class(images: int, classes: int) -> list[int]:
    """Return the number of images of each class: ``images`` divided evenly, with a remainder on the first classes."""
    return [len(range(number, images, classes)) for number in range(classes)]


def expected_train_images(dataset: Dataset, listing: list[list[Any]] | None) -> int:
    """Return the size of the training set if every file can be read, and a search finds all wanted pictures."""
    if dataset.source in TRAIN_IMAGES:
        return TRAIN_IMAGES[dataset.source]
    if listing is None:
        classes = len(dataset.terms or ()) if dataset.source == "search" else dataset.classes
        counts = images_a_class(dataset.images, classes)
        if min(counts) < 2:
            raise StudyError(
                f"dataset.images: {dataset.images} is not allowed with {classes} classes: each needs at least two"
            )
    else:
        names = [str(item[0]).split("/", 1)[0] for item in listing]
        counts = [names.count(name) for name in set(names)]
    return sum(count - split_counts(count, dataset.valid_fraction) for count in counts)


def check_batch_size(settings: Settings, train_images: int, study: str) -> None:
    """Raise :class:`StudyError` if :func:`misfit_of_batches` finds a misfit."""
    trouble = misfit_of_batches(settings, train_images)
    if trouble:
        raise StudyError(f"study {study}: {trouble}")


def misfit_of_batches(settings: Settings, train_images: int) -> str | None:
    """Return why the training set cannot be cut into batches as the settings say, or None if it can.

    With drop_last a step larger than the training set would train nothing. Without it the last batch of an epoch may
    have fewer images than there are replicas.
    """
    training = settings.training
    size, parts = training.global_batch_size, training.gradient_accumulation
    rest = train_images % size
    if training.drop_last and size * parts > train_images:
        accumulated = f" with training.gradient_accumulation {parts}" if parts > 1 else ""
        return (
            f"training.batch_size: {size} is not allowed{accumulated}: the training set has "
            f"{train_images} images and training.drop_last drops a partial batch; allowed: 1 to "
            f"{train_images // parts}, or drop_last: false"
        )
    if not training.drop_last and 0 < rest < training.replicas:
        return (
            f"training.drop_last: False is not allowed: the last of the batches of {size} would have "
            f"{rest} images for {training.replicas} replicas; allowed: true, or another training.batch_size"
        )
    return None
