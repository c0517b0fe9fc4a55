"""CIFAR-10 and MNIST through torchvision: from disk where present, else downloaded once. Imports torchvision."""

from pathlib import Path
from typing import Any

from study.config import Dataset
from study.data.manifest import Item, Manifest
from study.errors import StudyError
from study.fingerprint import file_sha256

CLASS = {"cifar10": "CIFAR10", "mnist": "MNIST"}


def root(dataset: Dataset, results: Path) -> Path:
    """Where torchvision keeps the files."""
    return Path(dataset.path).expanduser() if dataset.path else results / "data" / "downloads"


def open_split(source: str, folder: Path, train: bool, download: bool = False) -> Any:
    """torchvision's own dataset object, with ``data`` and ``targets``."""
    import torchvision.datasets

    return getattr(torchvision.datasets, CLASS[source])(str(folder), train=train, download=download)


def fetch(dataset: Dataset, results: Path) -> Manifest:
    """Make sure that the files are there, and list them."""
    folder = root(dataset, results)
    source = dataset.source
    try:
        try:
            splits = [open_split(source, folder, train) for train in (True, False)]
        except RuntimeError:
            if dataset.path:
                raise StudyError(
                    f"dataset.path: {dataset.path!r} is not allowed: torchvision finds no {source} there"
                ) from None
            splits = [open_split(source, folder, train, download=True) for train in (True, False)]
    except (OSError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise StudyError(
            f"dataset.source: {source!r} could not be downloaded ({reason}); put the files on disk and name their "
            "folder as dataset.path, or use dataset.source: generated"
        ) from None
    train, valid = splits
    files = sorted(path for path in _files(source, folder) if path.is_file())
    return Manifest(
        source=source,
        generated=False,
        seed=dataset.seed,
        valid_fraction=len(valid) / (len(train) + len(valid)),
        classes=list(train.classes),
        train_images=len(train),
        valid_images=len(valid),
        items=[
            Item(
                name=path.relative_to(folder).as_posix(),
                bytes=path.stat().st_size,
                sha256=file_sha256(path),
                label=None,
                split=None,
            )
            for path in files
        ],
    )


def _files(source: str, folder: Path) -> list[Path]:
    if source == "mnist":
        return list((folder / "MNIST" / "raw").iterdir())
    return list((folder / "cifar-10-batches-py").iterdir())
