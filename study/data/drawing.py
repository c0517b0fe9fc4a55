"""Images drawn from a seed: photographs of birds and of woodland, or small patterns of any number of classes.

A photograph depends only on the seed and its own number, so a second drawing has the same bytes. Both classes share
sky, foliage, colour casts and grain, so that no single colour separates them: a network has to look at shapes and
texture. Patterns have the shapes of CIFAR-10 and MNIST, and lie in arrays.
"""

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from study.artifacts.prepared import Manifest
from study.base.devices import usable_cpus
from study.base.processes import die_with_parent
from study.config.sections import Dataset
from study.data.decode import write_arrays
from study.data.splits import assign_splits, manifest_of

Colour = tuple[int, int, int]
CLASSES = ("bird", "woodland")
SKIES = ((110, 160, 215), (165, 180, 195), (225, 175, 130), (205, 220, 235), (95, 110, 135))
LEAVES = ((60, 95, 40), (95, 125, 50), (150, 120, 45), (165, 85, 35), (45, 70, 55), (120, 130, 110))
BARK = ((60, 45, 35), (95, 80, 65), (130, 125, 115), (40, 38, 36))
PLUMAGE = ((35, 30, 30), (110, 75, 50), (200, 195, 185), (150, 60, 45), (60, 80, 120), (95, 95, 90))


def draw_photographs(dataset: Dataset, folder: Path) -> Manifest:
    """Draw ``dataset.images`` photographs as JPEG files into ``folder``, and return the manifest that names them."""
    labels = [CLASSES[number % 2] for number in range(dataset.images)]
    names = [f"{label}/{number:05d}.jpg" for number, label in enumerate(labels)]
    for label in CLASSES:
        (folder / label).mkdir(parents=True, exist_ok=True)
    jobs = [(dataset.seed, number, str(folder / name)) for number, name in enumerate(names)]
    with ProcessPoolExecutor(max_workers=min(usable_cpus(), 8), initializer=die_with_parent) as pool:
        list(pool.map(_save_photograph, jobs, chunksize=16))
    splits = assign_splits(
        {label: names[index::2] for index, label in enumerate(CLASSES)}, dataset.valid_fraction, dataset.seed
    )
    return manifest_of(dataset, folder, dict(zip(names, labels, strict=True)), splits)


def _save_photograph(job: tuple[int, int, str]) -> None:
    seed, number, path = job
    photograph(seed, number).save(path, quality=88)


def photograph(seed: int, number: int) -> Image.Image:
    """Return image ``number`` of the seed: a bird if the number is even, woodland if it is odd.

    The image is RGB, 370 to 430 pixels wide and 275 to 325 high.
    """
    rng = np.random.default_rng([seed, number])
    width, height = int(rng.integers(370, 431)), int(rng.integers(275, 326))
    bird = number % 2 == 0
    # A quarter of the birds sit in front of foliage; a third of the woods open to the sky.
    leafy = rng.random() < 0.25 if bird else rng.random() < 0.67
    image = _foliage_ground(rng, width, height) if leafy else _sky(rng, width, height)
    if bird:
        if leafy:
            image = image.filter(ImageFilter.GaussianBlur(float(rng.uniform(2, 6))))
        elif rng.random() < 0.4:
            _branches(rng, image)
        if rng.random() < 0.35:  # birds perch in trees too, so trunks and leaves do not reveal the class
            _trunks(rng, image, 1, 4)
            _leaves(rng, image)
        for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
            _bird(rng, image)
    else:
        _trunks(rng, image, 2, 15)
        _leaves(rng, image)
    return _camera(rng, image)


def _shade(rng: np.random.Generator, colour: Colour, spread: float = 22) -> Colour:
    shaded = np.clip(np.asarray(colour) + rng.normal(0, spread, 3) * [1, 0.8, 1] + rng.normal(0, spread), 0, 255)
    return int(shaded[0]), int(shaded[1]), int(shaded[2])


def _pick(rng: np.random.Generator, colours: tuple[Colour, ...]) -> Colour:
    return _shade(rng, colours[int(rng.integers(len(colours)))])


def _sky(rng: np.random.Generator, width: int, height: int) -> Image.Image:
    top, bottom = np.asarray(_pick(rng, SKIES)), np.asarray(_pick(rng, SKIES))
    ramp = np.linspace(0, 1, height)[:, None, None]
    clouds = field(rng, width, height, (3, 6, 13, 29))[..., None] * rng.uniform(10, 55)
    return Image.fromarray(np.clip(top * (1 - ramp) + bottom * ramp + clouds, 0, 255).astype(np.uint8))


def _foliage_ground(rng: np.random.Generator, width: int, height: int) -> Image.Image:
    first, second = np.asarray(_pick(rng, LEAVES)), np.asarray(_pick(rng, LEAVES))
    blend = (field(rng, width, height, (5, 11, 23, 51))[..., None] + 1) / 2
    light = np.linspace(rng.uniform(-10, 60), rng.uniform(-40, 10), height)[:, None, None]
    return Image.fromarray(np.clip(first * blend + second * (1 - blend) + light, 0, 255).astype(np.uint8))


def _trunks(rng: np.random.Generator, image: Image.Image, fewest: int, most: int) -> None:
    pen = ImageDraw.Draw(image)
    width, height = image.size
    for _ in range(int(rng.integers(fewest, most))):
        x, lean, half = rng.uniform(0, width), rng.normal(0, 18), rng.uniform(2, 15)
        top = rng.uniform(-0.2, 0.35) * height
        colour = _pick(rng, BARK)
        pen.polygon(
            [(x - half, height), (x + lean - half / 2, top), (x + lean + half / 2, top), (x + half, height)], colour
        )
        for _ in range(int(rng.integers(0, 4))):
            start = rng.uniform(top, height * 0.7)
            reach, rise = rng.normal(0, 60), rng.uniform(10, 70)
            pen.line([(x + lean / 2, start), (x + reach, start - rise)], colour, width=max(1, int(half / 2)))


def _leaves(rng: np.random.Generator, image: Image.Image) -> None:
    pen = ImageDraw.Draw(image)
    width, height = image.size
    colours = [_pick(rng, LEAVES) for _ in range(4)]
    for _ in range(int(rng.integers(2, 9))):
        x0, y0, spread = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(20, 90)
        count = int(rng.integers(30, 110))
        xs, ys = rng.normal(x0, spread, count), rng.normal(y0, spread * 0.6, count)
        sizes = rng.uniform(1.5, 7, count)
        for x, y, size in zip(xs, ys, sizes, strict=True):
            colour = _shade(rng, colours[int(rng.integers(4))], 14)
            pen.ellipse([x - size, y - size * 0.7, x + size, y + size * 0.7], colour)


def _branches(rng: np.random.Generator, image: Image.Image) -> None:
    pen = ImageDraw.Draw(image)
    width, height = image.size
    for _ in range(int(rng.integers(1, 4))):
        y, tilt = rng.uniform(0.3, 1.0) * height, rng.normal(0, 60)
        pen.line([(0, y), (width, y + tilt)], _pick(rng, BARK), width=int(rng.integers(2, 11)))


def _bird(rng: np.random.Generator, image: Image.Image) -> None:
    """Draw a bird of two overlapping ellipses, a beak, a tail and, in flight, two wings; rotated as a whole."""
    length = float(rng.uniform(28, 90))
    size = int(length * 3)
    middle = size / 2
    sprite = Image.new("RGBA", (size, size), (0, 0, 0, 0))
    pen = ImageDraw.Draw(sprite)
    body, wing = _pick(rng, PLUMAGE), _pick(rng, PLUMAGE)
    half, depth = length / 2, length * float(rng.uniform(0.17, 0.3))
    pen.polygon(
        [
            (middle - half * 0.7, middle),
            (middle - half * 1.6, middle - depth / 2),
            (middle - half * 1.5, middle + depth / 2),
        ],
        wing,
    )
    pen.ellipse([middle - half, middle - depth, middle + half, middle + depth], body)
    head = depth * float(rng.uniform(0.6, 0.85))
    x, y = middle + half * 0.95, middle - depth * 0.6
    pen.ellipse([x - head, y - head, x + head, y + head], _shade(rng, body, 10))
    pen.polygon(
        [(x + head * 0.8, y - head * 0.3), (x + head * 1.9, y + head * 0.1), (x + head * 0.8, y + head * 0.4)],
        _pick(rng, BARK),
    )
    if rng.random() < 0.65:
        for side in (1.0, float(rng.uniform(-1, 1))):
            span = length * float(rng.uniform(0.5, 1.1)) * side
            pen.polygon(
                [
                    (middle - half * 0.5, middle),
                    (middle - half * 0.7, middle - span),
                    (middle + half * 0.5, middle - depth / 3),
                ],
                _shade(rng, wing, 12),
            )
    if rng.random() < 0.5:
        sprite = sprite.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    sprite = sprite.rotate(float(rng.normal(0, 18)), Image.Resampling.BICUBIC)
    sprite = sprite.filter(ImageFilter.GaussianBlur(0.7))
    x0 = int(rng.uniform(0.05, 0.95) * image.width - middle)
    y0 = int(rng.uniform(0.1, 0.9) * image.height - middle)
    image.paste(sprite, (x0, y0), sprite)


def _camera(rng: np.random.Generator, image: Image.Image) -> Image.Image:
    """Return the image with grain, exposure and a colour cast, as a camera leaves them."""
    pixels = np.asarray(image, np.float32)
    grain = rng.normal(0, rng.uniform(3, 8), pixels.shape[:2]).astype(np.float32)[..., None]
    texture = field(rng, image.width, image.height, (90, 160))[..., None] * rng.uniform(4, 14)
    cast = rng.normal(1, 0.06, 3).astype(np.float32) * np.float32(rng.uniform(0.75, 1.2))
    return Image.fromarray(np.clip((pixels + grain + texture) * cast, 0, 255).astype(np.uint8))


def field(rng: np.random.Generator, width: int, height: int, octaves: tuple[int, ...]) -> NDArray[np.float32]:
    """Return smooth noise (height, width) float32 in about [-1, 1], the sum of random grids of the given sizes."""
    total = np.zeros((height, width), np.float32)
    for octave, cells in enumerate(octaves):
        grid = rng.uniform(-1, 1, (cells, cells)).astype(np.float32)
        total += np.asarray(Image.fromarray(grid).resize((width, height), Image.Resampling.BICUBIC)) / 1.6**octave
    return total / 1.6


def draw_patterns(dataset: Dataset, folder: Path) -> Manifest:
    """Write the patterns of ``dataset`` as arrays into ``folder``, and return their manifest."""
    images, labels = patterns(dataset)
    classes = [f"class{number:03d}" for number in range(dataset.classes)]
    by_class = {
        name: [str(i) for i in range(number, dataset.images, dataset.classes)] for number, name in enumerate(classes)
    }
    splits = assign_splits(by_class, dataset.valid_fraction, dataset.seed)
    valid = np.array([splits[str(index)] == "valid" for index in range(dataset.images)])
    return write_arrays(dataset, folder, images, labels, valid, classes)


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
