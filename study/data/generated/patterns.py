"""Small images drawn from a seed, of any number of classes, in arrays of the shapes of CIFAR-10 and MNIST.

The noise is that of which photographs are drawn, too.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from study.artifacts.prepared import Manifest
from study.config.sections import Dataset
from study.data.arrays import write
from study.data.splits import assign_splits


def field(rng: np.random.Generator, width: int, height: int, octaves: tuple[int, ...]) -> NDArray[np.float32]:
    """Return smooth noise (height, width) float32 in about [-1, 1], the sum of random grids of the given sizes."""
    total = np.zeros((height, width), np.float32)
    for octave, cells in enumerate(octaves):
        grid = rng.uniform(-1, 1, (cells, cells)).astype(np.float32)
        total += np.asarray(Image.fromarray(grid).resize((width, height), Image.Resampling.BICUBIC)) / 1.6**octave
    return total / 1.6


def draw(dataset: Dataset, folder: Path) -> Manifest:
    """Write the patterns of ``dataset`` as arrays into ``folder``, and return their manifest."""
    images, labels = patterns(dataset)
    classes = [f"class{number:03d}" for number in range(dataset.classes)]
    by_class = {
        name: [str(i) for i in range(number, dataset.images, dataset.classes)] for number, name in enumerate(classes)
    }
    splits = assign_splits(by_class, dataset.valid_fraction, dataset.seed)
    valid = np.array([splits[str(index)] == "valid" for index in range(dataset.images)])
    return write(dataset, folder, images, labels, valid, classes)


def patterns(dataset: Dataset) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return images (n, h, w) or (n, h, w, 3) uint8 and labels (n,) int64.

    Each image is its class's smooth template, shifted, scaled and buried in another template and noise.
    """
    rng = np.random.default_rng([dataset.seed, dataset.classes])
    side, channels = dataset.image_size, dataset.channels
    templates = np.stack(
        [np.stack([field(rng, side, side, (4, 7)) for _ in range(channels)], axis=-1) for _ in range(dataset.classes)]
    )
    labels = np.arange(dataset.images, dtype=np.int64) % dataset.classes
    images = np.empty((dataset.images, side, side, channels), np.uint8)
    reach = max(side // 6, 1)
    for index, label in enumerate(labels):
        shift = rng.integers(-reach, reach + 1, 2)
        other = templates[int(rng.integers(dataset.classes))]
        signal = np.roll(templates[label], tuple(shift), (0, 1)) * rng.uniform(0.5, 1) + 0.45 * other
        noise = rng.standard_normal((side, side, channels), dtype=np.float32) * 0.35
        images[index] = np.clip(128 + 70 * (signal + noise), 0, 255)
    return (images[..., 0] if channels == 1 else images), labels
