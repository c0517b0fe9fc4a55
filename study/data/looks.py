"""What is seen of a user's pictures before any run: what cannot be read, looks alike, or is read otherwise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from study.artifacts.prepared import InBoth, Item
from study.data.decode import opened, squished, to_channels, undecodable, upright

SIDE = 16
"""Pixels of the side of a thumbnail."""
ALIKE = 0.2
"""Two thumbnails show one picture if their brightness differs by at most this share of its contrast."""
COLOUR_LEVELS = 16.0
"""Levels of 255 by which the mean colour of one picture may differ, unless one of them is grey."""
OTHERWISE_LEVELS = 8.0
"""Levels of 255, on average, by which stock fastai reads a picture otherwise than our decoder before it is named."""
LUMA = np.array([0.299, 0.587, 0.114], np.float32)
"""Share of red, green and blue in the brightness."""
PART = 1024
"""Pictures that are compared with all others at once."""


@dataclass(frozen=True)
class Look:
    """A picture as a thumbnail, and how stock fastai reads it otherwise: None within :data:`OTHERWISE_LEVELS`."""

    thumbnail: NDArray[np.uint8]
    otherwise: str | None


def look(path: Path) -> Look:
    """Return the look of a picture. Raise :class:`StudyError` if a run could not decode it."""
    try:
        with opened(path) as image:
            image.load()
            thumbnail = squished(to_channels(upright(image), 3), SIDE)
            return Look(thumbnail, _otherwise(image, thumbnail))
    except Exception as error:  # Pillow's decoders raise nearly anything on a broken file
        raise undecodable(path, error) from None


def _otherwise(image: Image.Image, ours: NDArray[np.uint8]) -> str | None:
    """Return how fastai reads an image otherwise: it converts what it opened, whatever that is."""
    try:
        theirs = squished(image.convert("RGB"), SIDE)
    except ValueError:
        return f"stock fastai cannot convert it from {image.mode}"
    levels = float(np.abs(theirs.astype(np.int16) - ours).mean())
    if levels <= OTHERWISE_LEVELS:
        return None
    if image.mode.startswith("I") or image.mode == "F":
        why = "its pixels have more than 8 bits, which fastai cuts off"
    elif image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        why = "its transparent pixels are white in our loop, and what lies under them in fastai"
    else:
        why = "it is turned by its EXIF data, which fastai leaves aside"
    return f"stock fastai reads it {levels:.0f} of 255 levels otherwise: {why}"


def in_both(items: Sequence[Item], thumbnails: Sequence[NDArray[np.uint8]]) -> list[InBoth]:
    """Return the pictures to validate on that are also among those to train on: the same file, or encoded anew."""
    train = [number for number, item in enumerate(items) if item.split == "train"]
    valid = [number for number, item in enumerate(items) if item.split == "valid"]
    same = {items[number].sha256: items[number].name for number in reversed(train)}
    near = dict(_near([thumbnails[number] for number in valid], [thumbnails[number] for number in train]))
    found = []
    for index, number in enumerate(valid):
        item = items[number]
        other = same.get(item.sha256) or (items[train[near[index]]].name if index in near else None)
        if other:
            found.append(InBoth(valid=item.name, train=other, same_file=item.sha256 in same))
    return found


def _near(some: Sequence[NDArray[np.uint8]], others: Sequence[NDArray[np.uint8]]) -> Iterator[tuple[int, int]]:
    """Yield the index of each of ``some`` thumbnails that shows one of the ``others``, and the index of that."""
    right = _brightness(others)
    for start in range(0, len(some), PART):
        left = _brightness(some[start : start + PART])
        squares = (left**2).mean(1)[:, None] + (right**2).mean(1) - 2 * left @ right.T / left.shape[1]
        for index, other in enumerate(squares.argmin(1)):
            levels = float(np.sqrt(((left[index] - right[other]) ** 2).mean()))
            if levels <= ALIKE * float(left[index].std()) and _same_colour(some[start + index], others[other]):
                yield start + index, int(other)


def _brightness(thumbnails: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
    """Return one row for each thumbnail. A JPEG file keeps its brightness in finer detail than its colours."""
    return np.stack([np.tensordot(LUMA, one.astype(np.float32), 1).ravel() for one in thumbnails])


def _same_colour(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> bool:
    means = [thumbnail.mean((1, 2)) for thumbnail in (one, other)]
    grey = any((thumbnail == thumbnail[0]).all() for thumbnail in (one, other))
    return grey or bool(np.abs(means[0] - means[1]).max() <= COLOUR_LEVELS)
