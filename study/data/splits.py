"""How images are divided: among the classes, into the parts to train and to validate on, and into
batches.

Host side: no torch, no Pillow.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from study.artifacts.prepared import Item, Manifest, Split
from study.base.errors import StudyError
from study.base.files import file_sha256
from study.config.sections import Dataset
from study.config.settings import Settings


def images_a_class(images: int, classes: int) -> list[int]:
    """Return the number of images of each class: ``images`` divided evenly, with a remainder on the
    first classes.

    Raise :class:`StudyError` if a class would get fewer than two.
    """
    counts = [len(range(number, images, classes)) for number in range(classes)]
    if min(counts) < 2:
        context, why = f"with {classes} classes", "each needs at least two"
        raise StudyError(key="dataset.images", value=images, context=context, why=why)
    return counts


def split_counts(images: int, valid_fraction: float) -> int:
    """Return the number of a class's images that are held out: at least one, and one is left to
    train on."""
    return min(max(round(images * valid_fraction), 1), images - 1)


def train_images(counts: Iterable[int], valid_fraction: float) -> int:
    """Return the size of the training set of classes with these numbers of images."""
    return sum(count - split_counts(count, valid_fraction) for count in counts)


def assign_splits(
    names_by_class: dict[str, list[str]], valid_fraction: float, seed: int
) -> dict[str, Split]:
    """Return the split of each file: stratified by class, decided by a seeded hash of its name.

    Ranking by hash keeps the split stable: an added or removed file moves few others.
    """
    splits: dict[str, Split] = {}
    for names in names_by_class.values():
        ranked = sorted(names, key=lambda name: hashlib.sha256(f"{seed}/{name}".encode()).digest())
        held_out = split_counts(len(names), valid_fraction)
        splits |= {
            name: "valid" if rank < held_out else "train" for rank, name in enumerate(ranked)
        }
    return splits


def item_of(folder: Path, name: str, label: str | None = None, split: Split | None = None) -> Item:
    """Return the item of the file ``name`` in ``folder``."""
    path = folder / name
    return Item(
        name=name, bytes=path.stat().st_size, sha256=file_sha256(path), label=label, split=split
    )


def manifest_of(
    dataset: Dataset,
    folder: Path,
    labels: Mapping[str, str],
    splits: Mapping[str, Split],
    **notes: Any,
) -> Manifest:
    """Return the manifest of files in ``folder`` from the class and the split of each, by name."""
    return Manifest(
        source=dataset.source,
        generated=dataset.drawn,
        seed=dataset.seed,
        valid_fraction=dataset.valid_fraction,
        classes=sorted({*labels.values()}),
        train_images=sum(splits[name] == "train" for name in labels),
        valid_images=sum(splits[name] == "valid" for name in labels),
        items=[item_of(folder, name, label, splits[name]) for name, label in labels.items()],
        **notes,
    )


def check_batch_size(settings: Settings, train_images: int, study: str) -> None:
    """Raise :class:`StudyError` if :func:`misfit_of_batches` finds a misfit."""
    if trouble := misfit_of_batches(settings, train_images, f"study {study}"):
        raise trouble


def misfit_of_batches(settings: Settings, train_images: int, source: str = "") -> StudyError | None:
    """Return why the training set cannot be cut into batches as the settings say, or None if it
    can.

    With drop_last a step larger than the training set would train nothing. Without it the last
    batch of an epoch may have fewer images than there are replicas.
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
            why=f"the training set has {train_images} images and training.drop_last drops a "
            "partial batch",
            allowed=f"1 to {train_images // parts}, or drop_last: false"
            if parts <= train_images
            else "fewer parts",
        )
    if not training.drop_last and 0 < rest < training.replicas:
        why = (
            f"the last of the batches of {size} would have {rest} images for "
            f"{training.replicas} replicas"
        )
        allowed = "true, or another training.batch_size"
        return StudyError(
            source=source, key="training.drop_last", value=False, why=why, allowed=allowed
        )
    return None
