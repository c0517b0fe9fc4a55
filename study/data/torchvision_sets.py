"""CIFAR-10 and MNIST through torchvision, unpacked from what the host has downloaded or the user
given.

torchvision is imported inside functions only, and this is the only module outside the training side
that imports it.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from study.artifacts.layout import Results
from study.artifacts.prepared import Manifest
from study.base.errors import first_line
from study.config.sections import Dataset
from study.data.sources import (
    DatasetInfo,
    Download,
    Source,
    as_text,
    contents,
    given_folder,
    not_obtained,
    refused,
)
from study.data.splits import item_of

if TYPE_CHECKING:
    from study.data.decode import ImageSet


MNIST_SERVER = "https://ossci-datasets.s3.amazonaws.com/mnist/"
MNIST_MD5 = {
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
}


class TorchvisionSet(Source):
    """A published set of ten classes, with its own split, in torchvision's layout."""

    in_the_image = True
    code = ("data/torchvision_sets.py", "data/splits.py")
    torchvision_name: ClassVar[str]
    """Name of the class in ``torchvision.datasets``."""
    unpacked: ClassVar[str]
    """Relative path of one of the unpacked files."""
    archives: ClassVar[str]
    """Glob of the packed files, relative to the same folder."""
    train_images: ClassVar[int]

    def inspect(self, dataset: Dataset) -> DatasetInfo:
        """Return the published numbers, and the name and checksum of the user's files."""
        files = None
        if dataset.path:
            folder = given_folder(dataset.path)
            folders = {Path(self.unpacked).parent, Path(self.archives).parent}
            found = chain.from_iterable(_files(folder / subfolder) for subfolder in folders)
            files = contents(folder, sorted(found))
        return DatasetInfo(10, self.train_images, 10_000, files)

    def make(self, dataset: Dataset, folder: Path, results: Path) -> Manifest:
        """Make sure that the files are there, and return their manifest."""
        base = self.base(dataset, folder, results)
        try:
            try:
                train, valid = self._splits(base)
            except RuntimeError:  # absent or incomplete
                self._unpack(dataset, base, results)
                train, valid = self._splits(base)
        except Exception as error:  # torchvision's readers raise anything for a damaged file
            reason = first_line(error) or error.__class__.__name__
            raise not_obtained(dataset, reason) from None
        files = sorted(_files((base / self.unpacked).parent))
        return Manifest(
            source=dataset.source,
            generated=False,
            seed=dataset.seed,
            valid_fraction=len(valid) / (len(train) + len(valid)),
            classes=list(train.classes),
            train_images=len(train),
            valid_images=len(valid),
            items=[item_of(base, path.relative_to(base).as_posix()) for path in files],
        )

    def base(self, dataset: Dataset, folder: Path, results: Path) -> Path:
        """Return the folder where torchvision finds the files: one that holds them unpacked, or one
        in ``results`` where they are to be.

        What is packed may lie in a folder that is read-only.
        """
        packed = _packed(dataset, results)
        nothing_to_unpack = dataset.path and not any(packed.glob(self.archives))
        if nothing_to_unpack or (packed / self.unpacked).exists():
            return packed
        return Results(results).unpacked

    def open(self, manifest: Manifest, dataset: Dataset, folder: Path, results: Path) -> ImageSet:
        """Return the images of torchvision's training split, followed by those of its test
        split."""
        import numpy as np

        from study.data.decode import ImageSet

        splits = self._splits(self.base(dataset, folder, results))
        arrays = list(chain.from_iterable(np.asarray(split.data) for split in splits))
        labels = [int(label) for label in chain.from_iterable(split.targets for split in splits)]
        train = len(splits[0])
        return ImageSet(
            arrays, labels, list(range(train)), list(range(train, len(arrays))), manifest.classes
        )

    def _splits(self, base: Path) -> tuple[Any, Any]:
        """Return torchvision's own objects for training and test, each with ``data`` and
        ``targets``."""
        return self._open_split(base, train=True), self._open_split(base, train=False)

    def _open_split(self, base: Path, train: bool) -> Any:
        import torchvision.datasets

        return getattr(torchvision.datasets, self.torchvision_name)(str(base), train=train)

    def _unpack(self, dataset: Dataset, base: Path, results: Path) -> None:
        from torchvision.datasets.utils import extract_archive

        packed = _packed(dataset, results)
        archives = sorted(packed.glob(self.archives))
        if not archives:
            raise refused(str(packed), f"torchvision finds no {dataset.source} there")
        for archive in archives:
            target = base / archive.relative_to(packed).parent
            target.mkdir(parents=True, exist_ok=True)
            extract_archive(str(archive), str(target))


class Cifar10(TorchvisionSet):
    """Colour photographs of 32 x 32 pixels."""

    torchvision_name = "CIFAR10"
    unpacked = "cifar-10-batches-py/data_batch_1"
    archives = "cifar-10-python.tar.gz"
    downloads = (
        Download(
            "cifar-10-python.tar.gz",
            "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
            "md5",
            "c58f30108f718f92721af3b95e74349a",
        ),
    )
    train_images = 50_000


class Mnist(TorchvisionSet):
    """Grey digits of 28 x 28 pixels."""

    torchvision_name = "MNIST"
    unpacked = "MNIST/raw/train-images-idx3-ubyte"
    archives = "MNIST/raw/*.gz"
    downloads = tuple(
        Download(f"MNIST/raw/{name}", MNIST_SERVER + name, "md5", checksum)
        for name, checksum in MNIST_MD5.items()
    )
    train_images = 60_000


def _packed(dataset: Dataset, results: Path) -> Path:
    """Return the folder that the user gave, or else that of the downloads."""
    return Path(dataset.path).expanduser() if dataset.path else Results(results).downloads


def _files(folder: Path) -> list[Path]:
    """Return the files of a folder, which need not exist. torchvision reads none whose name is no
    UTF-8."""
    return [path for path in folder.glob("*") if path.is_file() and path.name == as_text(path.name)]
