"""Checks that sources share, and the check of batches, before any image is opened. Host side: no torch, no Pillow."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from study.base.errors import StudyError
from study.config.settings import Settings
from study.data.splits import split_counts


def given_folder(given: str) -> Path:
    """Return the folder that ``dataset.path`` names. Raise :class:`StudyError` if there is none."""
    try:
        folder = Path(given).expanduser()
        if not folder.exists():
            raise StudyError(key="dataset.path", value=given, why="no such folder")
        if not folder.is_dir():
            raise StudyError(key="dataset.path", value=given, why="it is a file; give a folder")
    except (OSError, RuntimeError) as error:
        raise StudyError(key="dataset.path", value=given, why=f"cannot be read: {error}") from None
    return folder


def as_text(name: str) -> str:
    """Return a file's name with escapes such as ``\\xff`` for bytes that are no UTF-8, which no manifest can hold."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def stat_files(folder: Path, files: Iterable[Path]) -> list[list[Any]]:
    """Return relative name, size in bytes and modification time (ns) of each of the ``files`` below ``folder``."""
    return [[path.relative_to(folder).as_posix(), path.stat().st_size, path.stat().st_mtime_ns] for path in files]


def check_classes(counts: dict[str, int], path: str) -> None:
    """Raise one clear error that names ``path`` unless there are at least two classes with at least two images each."""
    refused = partial(StudyError, key="dataset.path", value=path)
    if not any(counts.values()):
        raise refused(why="it holds no image in a subfolder; give a folder with one subfolder per class")
    if len(counts) < 2:
        raise refused(why=f"it holds one class ({next(iter(counts))!r}); at least two are needed")
    for name, count in counts.items():
        if count < 2:
            needed = "at least two are needed, one to train and one to validate"
            raise refused(why=f"class {name!r} has {count} image(s); {needed}")


def images_a_class(images: int, classes: int) -> list[int]:
    """Return the number of images of each class: ``images`` divided evenly, with a remainder on the first classes.

    Raise :class:`StudyError` if a class would get fewer than two.
    """
    counts = [len(range(number, images, classes)) for number in range(classes)]
    if min(counts) < 2:
        context, why = f"with {classes} classes", "each needs at least two"
        raise StudyError(key="dataset.images", value=images, context=context, why=why)
    return counts


def train_images(counts: Iterable[int], valid_fraction: float) -> int:
    """Return the size of the training set of classes with these numbers of images."""
    return sum(count - split_counts(count, valid_fraction) for count in counts)


def check_batch_size(settings: Settings, train_images: int, study: str) -> None:
    """Raise :class:`StudyError` if :func:`misfit_of_batches` finds a misfit."""
    if trouble := misfit_of_batches(settings, train_images, f"study {study}"):
        raise trouble


def misfit_of_batches(settings: Settings, train_images: int, source: str = "") -> StudyError | None:
    """Return why the training set cannot be cut into batches as the settings say, or None if it can.

    With drop_last a step larger than the training set would train nothing. Without it the last batch of an epoch may
    have fewer images than there are replicas.
    """
    training = settings.training
    size, parts = training.global_batch_size, training.gradient_accumulation
    rest = train_images % size
    if training.drop_last and size * parts > train_images:
        return StudyError(
            source=source,
            key="training.batch_size",
            value=size,
            context=f"with training.gradient_accumulation {parts}" if parts > 1 else "",
            why=f"the training set has {train_images} images and training.drop_last drops a partial batch",
            allowed=f"1 to {train_images // parts}, or drop_last: false",
        )
    if not training.drop_last and 0 < rest < training.replicas:
        why = f"the last of the batches of {size} would have {rest} images for {training.replicas} replicas"
        allowed = "true, or another training.batch_size"
        return StudyError(source=source, key="training.drop_last", value=False, why=why, allowed=allowed)
    return None
