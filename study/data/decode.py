"""Images as they are stored, and their decoding, which is the same for every source. No torch."""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from study.artifacts.prepared import Manifest
from study.base.errors import StudyError
from study.config.sections import Dataset
from study.data.splits import item_of

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
"""Formats that a file of a user or a download may have. Pillow knows others, some of which start
external programs."""
MAX_PIXELS = 65_000_000
"""Largest image: cameras and phones reach 64 million pixels. Its decoding takes up to 1 GB."""
DEEP = re.compile(r";(16|32|64)[BLNSF]")
"""In Pillow's name of how pixels are stored: more than 8 bits, of which it would keep the upper
ones or cut them off. No file says which of its values is white."""

ARRAYS = ("images", "labels", "valid")
"""Small images of one size are kept as three arrays, in files of these names: thousands of files
take long to open."""

Stored = Path | NDArray[Any]


@dataclass(frozen=True)
class ImageSet:
    """Images as they are stored, their labels as class numbers, and the image numbers of each
    split."""

    stored: Sequence[Stored]
    labels: list[int]
    train: list[int]
    valid: list[int]
    classes: list[str]


def listed(manifest: Manifest, base: Path) -> ImageSet:
    """Return the images of a manifest that lists one file in ``base`` for each image, with its
    class and split."""
    numbers = {name: number for number, name in enumerate(manifest.classes)}
    return ImageSet(
        [base / item.name for item in manifest.items],
        [numbers[str(item.label)] for item in manifest.items],
        [index for index, item in enumerate(manifest.items) if item.split == "train"],
        [index for index, item in enumerate(manifest.items) if item.split == "valid"],
        manifest.classes,
    )


def write_arrays(
    dataset: Dataset,
    folder: Path,
    images: NDArray[np.uint8],
    labels: NDArray[np.integer[Any]],
    valid: NDArray[np.bool_],
    classes: list[str],
) -> Manifest:
    """Write images (n, h, w) or (n, h, w, 3), labels (n,) and validation mask (n,), and return
    their manifest."""
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


def opened_arrays(manifest: Manifest, folder: Path) -> ImageSet:
    """Return the images that :func:`write_arrays` put into ``folder``."""
    images, labels, valid = (np.load(folder / f"{name}.npy") for name in ARRAYS)
    return ImageSet(
        list(images),
        labels.tolist(),
        np.flatnonzero(~valid).tolist(),
        np.flatnonzero(valid).tolist(),
        manifest.classes,
    )


def decode(stored: Stored, channels: int, size: int) -> NDArray[np.uint8]:
    """Return one image squished to a square, (channels, size, size) uint8.

    Raise :class:`StudyError` with the file's name if it cannot be decoded.
    """
    if isinstance(stored, Path):
        try:
            with opened(stored) as image_file:
                image = to_channels(upright(image_file), channels)
        except Exception as error:  # Pillow's decoders raise nearly anything on a broken file
            raise undecodable(stored, error) from None
    else:
        image = to_channels(Image.fromarray(stored), channels)
    return squished(image, size)


def squished(image: Image.Image, size: int) -> NDArray[np.uint8]:
    """Return an ``L`` or ``RGB`` image squished to a square, (1 or 3, size, size) uint8."""
    if image.size != (size, size):
        image = image.resize((size, size), Image.Resampling.BILINEAR)
    pixels = np.array(image)
    return pixels[None] if image.mode == "L" else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def undecodable(stored: Path, error: Exception) -> StudyError:
    """Return the error of a file that cannot be decoded, with its name and the reason."""
    reason = str(error).replace(str(stored), stored.name).splitlines() or [error.__class__.__name__]
    return StudyError(f"{stored.name}: cannot be decoded: {reason[0]}")


@contextmanager
def opened(file: Path | BinaryIO) -> Iterator[Image.Image]:
    """Yield the image of a file, whose header alone has been read.

    Raise :class:`StudyError` with the reason if it has none of the :data:`FORMATS`, more than
    :data:`MAX_PIXELS`, or pixels of more than 8 bits.
    """
    with warnings.catch_warnings():
        # Pillow warns of an image that is refused here, and of damaged EXIF data
        warnings.simplefilter("ignore")
        try:
            image = Image.open(file, formats=FORMATS)
        except UnidentifiedImageError:
            raise StudyError(f"it is not a picture ({', '.join(FORMATS)})") from None
        with image:
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise StudyError(
                    f"it is {width} x {height} pixels, more than {MAX_PIXELS // 1_000_000} million"
                )
            if image.mode[0] in "IF" or DEEP.search(str(image.tile)):
                raise StudyError(
                    "its pixels have more than 8 bits, and nothing says what is white: use 8"
                )
            yield image


def upright(image: Image.Image) -> Image.Image:
    """Return the image rotated as its EXIF data say; unchanged if these are damaged."""
    image.load()
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # damaged EXIF data raise nearly anything, and the pixels are sound
        return image


def to_channels(image: Image.Image, channels: int) -> Image.Image:
    """Return an 8-bit ``L`` or ``RGB`` image from one that is grey, CMYK, palette or transparent.

    Transparent pixels become white.
    """
    if image.mode in ("La", "RGBa"):  # premultiplied: Pillow converts these to one mode alone
        image = image.convert("LA" if image.mode == "La" else "RGBA")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("L" if channels == 1 else "RGB")
