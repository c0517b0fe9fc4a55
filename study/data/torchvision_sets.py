"""CIFAR-10 and MNIST through torchvision: from disk if present, otherwise downloaded once. Imports torchvision."""

from pathlib import Path
from typing import Any

from study.artifacts.layout import Results
from study.artifacts.manifest import Manifest
from study.base.errors import StudyError
from study.config.sections import Dataset
from study.data.splits import item_of

CLASS = {"cifar10": "CIFAR10", "mnist": "MNIST"}
UNPACKED = {"cifar10": "cifar-10-batches-py/data_batch_1", "mnist": "MNIST/raw/train-images-idx3-ubyte"}
ARCHIVES = {"cifar10": "cifar-10-python.tar.gz", "mnist": "MNIST/raw/*.gz"}


def root(dataset: Dataset, results: Path) -> Path:
    """Return the folder where torchvision finds the files: the given one, or one in ``results``.

    Downloaded and unpacked files lie in ``results``. A given folder may hold only the packed files and may be
    read-only: they are unpacked elsewhere.
    """
    if not dataset.path:
        return Results(results).downloads
    given = Path(dataset.path).expanduser()
    if not (given / UNPACKED[dataset.source]).exists() and any(given.glob(ARCHIVES[dataset.source])):
        return Results(results).unpacked
    return given


def open_split(source: str, folder: Path, train: bool, download: bool = False) -> Any:
    """Return torchvision's own dataset object, with ``data`` and ``targets``."""
    import torchvision.datasets

    return getattr(torchvision.datasets, CLASS[source])(str(folder), train=train, download=download)


def fetch(dataset: Dataset, results: Path) -> Manifest:
    """Make sure that the files are there, and return their manifest."""
    folder = root(dataset, results)
    source = dataset.source
    try:
        try:
            train, valid = (open_split(source, folder, part) for part in (True, False))
        except RuntimeError:  # absent or incomplete: an interrupted download is resumed
            _bring(dataset, folder)
            train, valid = (open_split(source, folder, part) for part in (True, False))
    except (OSError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise StudyError(
            f"dataset.source: {source!r} could not be obtained ({reason}); put the files on disk and name their "
            "folder as dataset.path, or use dataset.source: generated"
        ) from None
    files = sorted(path for path in (folder / UNPACKED[source]).parent.iterdir() if path.is_file())
    return Manifest(
        source=source,
        generated=False,
        seed=dataset.seed,
        valid_fraction=len(valid) / (len(train) + len(valid)),
        classes=list(train.classes),
        train_images=len(train),
        valid_images=len(valid),
        items=[item_of(folder, path.relative_to(folder).as_posix()) for path in files],
    )


def _bring(dataset: Dataset, folder: Path) -> None:
    """Unpack the given archives, or download them (torchvision then checks them by their MD5)."""
    from torchvision.datasets.utils import extract_archive

    if not dataset.path:
        open_split(dataset.source, folder, train=True, download=True)
        return
    given = Path(dataset.path).expanduser()
    archives = sorted(given.glob(ARCHIVES[dataset.source]))
    if not archives:
        raise StudyError(f"dataset.path: {dataset.path!r} is not allowed: torchvision finds no {dataset.source} there")
    for archive in archives:
        target = folder / archive.relative_to(given).parent
        target.mkdir(parents=True, exist_ok=True)
        extract_archive(str(archive), str(target))
