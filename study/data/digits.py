"""scikit-learn's 1,797 scans of handwritten digits, which its package holds: real images without a
network.

They are the test part of "Optical Recognition of Handwritten Digits" of the UCI repository (E.
Alpaydin and C. Kaynak, 1998; C. Kaynak's thesis, 1995): forms that 13 people filled in, scanned and
reduced to 8 x 8 counts of 0 to 16 pixels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from study.artifacts.prepared import Manifest
from study.base.errors import StudyError
from study.config.sections import SCANS, Dataset
from study.data.sources import DatasetInfo, Source

if TYPE_CHECKING:
    from study.data.decode import ImageSet

DIGITS = [str(digit) for digit in range(10)]


class Digits(Source):
    """The first ``dataset.images`` of the scans, in an order that takes one of each digit in turn.

    The last of them validate, so that both parts have all digits alike, to one scan as long as no
    digit runs out.
    """

    in_the_image = (
        True  # scikit-learn comes with fastai: where runs are in containers, the host has neither
    )
    packages = ("sklearn",)
    code = ("data/digits.py", "data/decode.py")

    def inspect(self, dataset: Dataset) -> DatasetInfo:
        """Return the numbers that the keys ask for, which the table of rules has checked."""
        valid = held_out(dataset)
        return DatasetInfo(len(DIGITS), dataset.images - valid, valid)

    def make(self, dataset: Dataset, folder: Path, results: Path) -> Manifest:
        """Write the chosen scans as arrays into ``folder``."""
        import numpy as np
        from sklearn.datasets import load_digits

        from study.data.decode import write_arrays

        scans, labels = load_digits(return_X_y=True)
        if len(scans) != SCANS:
            raise StudyError(
                f"dataset.source: scikit-learn has {len(scans)} digits here, and not {SCANS}"
            )
        chosen = in_turn(labels.tolist())[: dataset.images]
        pixels = np.round(scans[chosen].reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
        valid = np.arange(dataset.images) >= dataset.images - held_out(dataset)
        return write_arrays(dataset, folder, pixels, labels[chosen], valid, DIGITS)

    def open(self, manifest: Manifest, dataset: Dataset, folder: Path, results: Path) -> ImageSet:
        """Return the scans, dark paper and light ink."""
        from study.data.decode import opened_arrays

        return opened_arrays(manifest, folder)


def held_out(dataset: Dataset) -> int:
    """Return the number of scans that validate: one of each digit at least, and one of each is left
    to train on."""
    classes = len(DIGITS)
    return min(
        max(round(dataset.images * dataset.valid_fraction), classes), dataset.images - classes
    )


def in_turn(labels: Iterable[int]) -> list[int]:
    """Return the places of ``labels``: the first of each label, then the second of each, and so
    on."""
    seen = Counter[int]()
    ranked = []
    for place, label in enumerate(labels):
        seen[label] += 1
        ranked.append((seen[label], label, place))
    return [place for _, _, place in sorted(ranked)]
