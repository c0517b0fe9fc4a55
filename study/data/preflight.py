"""What can be said of a dataset before any image is opened. Host side: no torch, no Pillow."""

from pathlib import Path
from typing import Any

from study.config import Dataset, Settings
from study.data.manifest import split_counts
from study.data.torchvision_sets import ARCHIVES, UNPACKED
from study.errors import StudyError

SUFFIXES = {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"}
TRAIN_IMAGES = {"cifar10": 50_000, "mnist": 60_000}


def class_files(folder: Path) -> dict[str, list[Path]]:
    """The image files of each class: the subfolders of ``folder`` by name, their files by relative name.

    Hidden files and folders are passed over; a subfolder without an image is a class without images.
    """
    classes = {}
    for subfolder in sorted(folder.iterdir(), key=lambda path: path.name):
        if subfolder.is_dir() and not subfolder.name.startswith("."):
            classes[subfolder.name] = [path for path in _visible(subfolder) if path.suffix.lower() in SUFFIXES]
    return classes


def other_files(folder: Path) -> list[Path]:
    """Files in the classes' folders whose ending is no image's."""
    subfolders = (path for path in sorted(folder.iterdir()) if path.is_dir() and not path.name.startswith("."))
    return [path for subfolder in subfolders for path in _visible(subfolder) if path.suffix.lower() not in SUFFIXES]


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.name.startswith(".") and path.is_file())


def list_files(dataset: Dataset) -> list[list[Any]] | None:
    """Relative name, size in bytes and time of every file that the user gave; None where none was given."""
    if dataset.source == "generated" or not dataset.path:
        return None
    folder = _given_folder(dataset.path)
    if dataset.source == "folder":
        return list_folder(dataset)
    places = {Path(UNPACKED[dataset.source]).parent, Path(ARCHIVES[dataset.source]).parent}
    files = sorted({path for place in places for path in (folder / place).glob("*") if path.is_file()})
    return _stat(folder, files)


def list_folder(dataset: Dataset) -> list[list[Any]]:
    """Relative name, size in bytes and time of every image file, or one clear error."""
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


def check_classes(counts: dict[str, int], path: str) -> None:
    """At least two classes with at least two images each, or one clear error."""
    if not any(counts.values()):
        raise StudyError(
            f"dataset.path: {path!r} is not allowed: it holds no image in a subfolder; "
            "give a folder with one subfolder per class"
        )
    if len(counts) < 2:
        raise StudyError(
            f"dataset.path: {path!r} is not allowed: it holds one class ({next(iter(counts))!r}); "
            "at least two are needed"
        )
    for name, count in counts.items():
        if count < 2:
            raise StudyError(
                f"dataset.path: {path!r} is not allowed: class {name!r} has {count} image(s); "
                "at least two are needed, one to train and one to validate"
            )


def expected_classes(dataset: Dataset) -> int:
    """How many classes the data will have."""
    if dataset.source == "folder":
        return len(class_files(_given_folder(str(dataset.path))))
    return dataset.classes if dataset.source == "generated" else 10  # CIFAR-10 and MNIST


def expected_train_images(dataset: Dataset, listing: list[list[Any]] | None) -> int:
    """How many images the training set will have if every file can be read."""
    if dataset.source in TRAIN_IMAGES:
        return TRAIN_IMAGES[dataset.source]
    if listing is None:
        counts = [len(range(index, dataset.images, dataset.classes)) for index in range(dataset.classes)]
        if min(counts) < 2:
            raise StudyError(
                f"dataset.images: {dataset.images} is not allowed with dataset.classes {dataset.classes}: "
                "each class needs at least two"
            )
    else:
        names = [str(item[0]).split("/", 1)[0] for item in listing]
        counts = [names.count(name) for name in set(names)]
    return sum(count - split_counts(count, dataset.valid_fraction) for count in counts)


def check_batch_size(settings: Settings, train_images: int, study: str) -> None:
    """With drop_last a step larger than the training set would train nothing at all."""
    training = settings.training
    size, parts = training.batch_size, training.gradient_accumulation
    if training.drop_last and size * parts > train_images:
        accumulated = f" with training.gradient_accumulation {parts}" if parts > 1 else ""
        raise StudyError(
            f"study {study}: training.batch_size: {size} is not allowed{accumulated}: the training set has "
            f"{train_images} images and training.drop_last drops a partial batch; allowed: 1 to "
            f"{train_images // parts}, or drop_last: false"
        )
