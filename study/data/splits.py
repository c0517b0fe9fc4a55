"""Which images are held out, and the entry of a file in a manifest."""

import hashlib
from pathlib import Path

from study.artifacts.prepared import Item, Split
from study.base.files import file_sha256


def item_of(folder: Path, name: str, label: str | None = None, split: Split | None = None) -> Item:
    """Return the item of the file ``name`` in ``folder``."""
    path = folder / name
    return Item(name=name, bytes=path.stat().st_size, sha256=file_sha256(path), label=label, split=split)


def split_counts(images: int, valid_fraction: float) -> int:
    """Return the number of a class's images that are held out: at least one, and one is left to train on."""
    return min(max(round(images * valid_fraction), 1), images - 1)


def assign_splits(names_by_class: dict[str, list[str]], valid_fraction: float, seed: int) -> dict[str, Split]:
    """Return the split of each file: stratified by class, decided by a seeded hash of its name.

    Ranking by hash keeps the split stable: an added or removed file moves few others.
    """
    splits: dict[str, Split] = {}
    for names in names_by_class.values():
        ranked = sorted(names, key=lambda name: hashlib.sha256(f"{seed}/{name}".encode()).digest())
        held_out = split_counts(len(names), valid_fraction)
        splits |= {name: "valid" if rank < held_out else "train" for rank, name in enumerate(ranked)}
    return splits
