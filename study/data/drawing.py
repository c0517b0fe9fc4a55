"""Images drawn from a seed: JPEG files of two classes in the size of photographs, or small patterns
of any number.

An image depends only on the seed and its own number, so a second drawing has the same bytes. Colour
casts are drawn for each image, so that no single colour separates the classes: a network has to
look at shapes. Patterns have the shapes of CIFAR-10 and MNIST, and lie in arrays.
"""

from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from study.artifacts.prepared import Manifest
from study.base.devices import usable_cpus
from study.base.processes import die_with_parent
from study.config.sections import Dataset
from study.data.decode import write_arrays
from study.data.splits import assign_splits, manifest_of

CLASSES = ("class000", "class001")


def draw_photographs(dataset: Dataset, folder: Path) -> Manifest:
    """Draw ``dataset.images`` JPEG files in the size of photographs into ``folder``, and return
    their manifest."""
    labels = [CLASSES[number % 2] for number in range(dataset.images)]
    names = [f"{label}/{number:05d}.jpg" for number, label in enumerate(labels)]
    for label in CLASSES:
        (folder / label).mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in names]
    with ProcessPoolExecutor(
        max_workers=min(usable_cpus(), 8), initializer=die_with_parent
    ) as pool:
        numbers = range(dataset.images)
        list(pool.map(_save_photograph, repeat(dataset.seed), numbers, paths, chunksize=16))
    splits = assign_splits(
        {label: names[index::2] for index, label in enumerate(CLASSES)},
        dataset.valid_fraction,
        dataset.seed,
    )
    return manifest_of(dataset, folder, dict(zip(names, labels, strict=True)), splits)


def _save_photograph(seed: int, number: int, path: Path) -> None:
    photograph(seed, number).save(path, quality=88)


def photograph(seed: int, number: int) -> Image.Image:
    """Return image ``number`` of the seed: of the first class if the number is even, of the second
    if it is odd.

    The image is RGB, 370 to 430 pixels wide and 275 to 325 high: as large to decode as a
    photograph. Its class's smooth template lies under a texture and a grain of its own, with a
    colour cast as cameras have it.
    """
    rng = np.random.default_rng([seed, number])
    width, height = int(rng.integers(370, 431)), int(rng.integers(275, 326))
    of_class = np.random.default_rng([seed, number % 2])
    channels = []
    for _ in range(3):
        template = field(of_class, width, height, (4, 7)) * rng.uniform(0.5, 1)
        texture = field(rng, width, height, (5, 11, 23, 51, 90, 160))
        channels.append(128 + 55 * template + 40 * texture)
    pixels = np.stack(channels, axis=-1)
    grain = rng.normal(0, rng.uniform(3, 8), (height, width, 1))
    cast = rng.normal(1, 0.06, 3) * rng.uniform(0.75, 1.2)
    return Image.fromarray(np.clip((pixels + grain) * cast, 0, 255).astype(np.uint8))


def field(
    rng: np.random.Generator, width: int, height: int, octaves: tuple[int, ...]
) -> NDArray[np.float32]:
    """Return smooth noise (height, width) float32 in about [-1, 1], the sum of random grids of the
    given sizes."""
    total = np.zeros((height, width), np.float32)
    for octave, cells in enumerate(octaves):
        grid = rng.uniform(-1, 1, (cells, cells)).astype(np.float32)
        total += (
            np.asarray(Image.fromarray(grid).resize((width, height), Image.Resampling.BICUBIC))
            / 1.6**octave
        )
    return total / 1.6


def draw_patterns(dataset: Dataset, folder: Path) -> Manifest:
    """Write the patterns of ``dataset`` as arrays into ``folder``, and return their manifest."""
    images, labels = patterns(dataset)
    classes = [f"class{number:03d}" for number in range(dataset.classes)]
    by_class = {
        name: [str(i) for i in range(number, dataset.images, dataset.classes)]
        for number, name in enumerate(classes)
    }
    splits = assign_splits(by_class, dataset.valid_fraction, dataset.seed)
    valid = np.array([splits[str(index)] == "valid" for index in range(dataset.images)])
    return write_arrays(dataset, folder, images, labels, valid, classes)


def patterns(dataset: Dataset) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return images (n, h, w) or (n, h, w, 3) uint8 and labels (n,) int64.

    Each image is its class's smooth template, shifted, scaled and buried in another template and
    noise.
    """
    rng = np.random.default_rng([dataset.seed, dataset.classes])
    side, channels = dataset.image_size, dataset.channels
    templates = np.stack(
        [
            np.stack([field(rng, side, side, (4, 7)) for _ in range(channels)], axis=-1)
            for _ in range(dataset.classes)
        ]
    )
    labels = np.arange(dataset.images, dtype=np.int64) % dataset.classes
    images = np.empty((dataset.images, side, side, channels), np.uint8)
    reach = max(side // 6, 1)
    for index, label in enumerate(labels):
        shift = rng.integers(-reach, reach + 1, 2)
        other = templates[int(rng.integers(dataset.classes))]
        signal = (
            np.roll(templates[label], tuple(shift), (0, 1)) * rng.uniform(0.5, 1) + 0.45 * other
        )
        noise = rng.standard_normal((side, side, channels), dtype=np.float32) * 0.35
        images[index] = np.clip(128 + 70 * (signal + noise), 0, 255)
    return (images[..., 0] if channels == 1 else images), labels
