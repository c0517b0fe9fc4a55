"""Small images of one size, kept as three arrays: what many files of some pixels each would take long to open."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study.artifacts.prepared import Manifest
from study.config.sections import Dataset
from study.data.decode import ImageSet
from study.data.splits import item_of

ARRAYS = ("images", "labels", "valid")
"""Names of the files, without ``.npy``."""


def write(
    dataset: Dataset,
    folder: Path,
    images: NDArray[np.uint8],
    labels: NDArray[np.integer[Any]],
    valid: NDArray[np.bool_],
    classes: list[str],
) -> Manifest:
    """Write images (n, h, w) or (n, h, w, 3), labels (n,) and validation mask (n,), and return their manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays: tuple[NDArray[Any], ...] = (images, labels.astype(np.int64), valid)
    for name, array in zip(ARRAYS, arrays, strict=True):
        np.save(folder / f"{name}.npy", array)
    return Manifest(
        source=dataset.source,
        generated=dataset.drawn,
        seed=dataset.seed,
        valid_fraction=dataset.valid_fraction,
        classes=classes,
        train_images=int((~valid).sum()),
        valid_images=int(valid.sum()),
        items=[item_of(folder, f"{name}.npy") for name in ARRAYS],
    )


def opened(manifest: Manifest, folder: Path) -> ImageSet:
    """Return the images that :func:`write` put into ``folder``."""
    images, labels, valid = (np.load(folder / f"{name}.npy") for name in ARRAYS)
    return ImageSet(
        list(images),
        [int(label) for label in labels],
        [int(index) for index in np.flatnonzero(~valid)],
        [int(index) for index in np.flatnonzero(valid)],
        manifest.classes,
    )
