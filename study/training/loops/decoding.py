"""Decoding of stored images into tensors: one by one by a decoder, or a whole set at once."""

import math
import mmap
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from study.artifacts.samples import PixelDifference
from study.base.devices import usable_cpus
from study.config.settings import Settings
from study.data.decode import ImageSet, Stored, decode, opened, squished, undecodable

Decode = Callable[[Stored], NDArray[np.uint8]]
"""Returns an image as (channels, size, size) uint8."""
LEAST_BYTES = 4 * 2**20
"""Bytes of files, and an eighth of the pixels', for which a process more is started: about as long
as a fork takes."""
PART = 16
"""Images that a process decodes before it asks for more."""
COMPARED = 32
"""Images over which a decoder is compared with Pillow."""


def shape_of(settings: Settings) -> tuple[int, int, int]:
    """Return the shape of a decoded image: channels, height and width in pixels."""
    return settings.dataset.channels, settings.dataset.image_size, settings.dataset.image_size


def decoder_of(settings: Settings) -> Decode:
    """Return the decoder of single images on the CPU that the settings name."""
    channels, size, _ = shape_of(settings)
    if settings.loader.decoder == "pillow":
        return lambda stored: decode(stored, channels, size)
    return lambda stored: by_torchcodec(stored, channels, size)


def by_torchcodec(stored: Stored, channels: int, size: int) -> NDArray[np.uint8]:
    """Return one image as :func:`study.data.decode.decode` does, but let torchcodec decode a grey
    or RGB JPEG file.

    Pillow squishes the image in both cases, so that the decoder is all that differs.
    """
    if not isinstance(stored, Path) or not _is_plain_jpeg(stored):
        return decode(stored, channels, size)
    from torchcodec.decoders import decode_jpeg

    try:
        pixels = decode_jpeg(stored, mode="GRAY" if channels == 1 else "RGB")
    except Exception as error:
        raise undecodable(stored, error) from None
    image = Image.fromarray(pixels[0].numpy() if channels == 1 else pixels.permute(1, 2, 0).numpy())
    return squished(image, size)


def _is_plain_jpeg(stored: Path) -> bool:
    """Return whether the file is a grey or RGB JPEG of an allowed size, by its header."""
    try:
        with opened(stored) as image:
            return image.format == "JPEG" and image.mode in ("L", "RGB")
    except Exception:  # Pillow's decoder says what is wrong with it
        return False


def begin(
    stored: Sequence[Stored], settings: Settings, device: torch.device
) -> Callable[[], torch.Tensor]:
    """Begin to decode images, and return what waits for them: (n, channels, size, size) uint8 on
    ``device``.

    On the CPU processes decode while the caller goes on, if the work is worth them. Threads hold
    each other up: of the 2 ms for a small photograph Pillow keeps Python's lock for most. Waiting
    raises the error of the first image that cannot be decoded.
    """
    decoder, shape, starts = decoder_of(settings), shape_of(settings), range(0, len(stored), PART)
    # Anonymous memory that is shared with forked processes: a container's /dev/shm may be small.
    memory = mmap.mmap(-1, max(1, len(stored) * math.prod(shape)))
    pixels = np.ndarray((len(stored), *shape), np.uint8, buffer=memory)

    def fill(start: int) -> None:
        for index in range(start, min(start + PART, len(stored))):
            pixels[index] = decoder(stored[index])

    def filled() -> torch.Tensor:
        if pool is None:
            for start in starts:
                fill(start)
        else:
            with pool:
                for part in parts:
                    part.result()
        return torch.from_numpy(pixels).to(device)

    files = sum(
        image.stat().st_size for image in stored if isinstance(image, Path) and image.is_file()
    )
    work = files + len(stored) * math.prod(shape) // 8
    processes, pool = min(usable_cpus(), len(stored), work // LEAST_BYTES), None
    if processes > 1:
        pool = ProcessPoolExecutor(
            processes, get_context("fork"), initializer=_LENT.append, initargs=(fill,)
        )
        parts = [pool.submit(_fill_part, start) for start in starts]
    return cache(filled)


_LENT: list[Callable[[int], None]] = []
"""What a forked process fills with its images: it is inherited, and nothing is sent."""


def _fill_part(start: int) -> None:
    _LENT[0](start)


def difference_from_pillow(
    images: ImageSet, settings: Settings, device: torch.device
) -> PixelDifference | None:
    """Return how far the decoder's pixels lie from Pillow's over the first training images; None
    for Pillow itself."""
    if settings.loader.decoder == "pillow":
        return None
    stored = [images.stored[index] for index in images.train[:COMPARED]]
    channels, size, _ = shape_of(settings)
    wanted = np.stack([decode(image, channels, size) for image in stored]).astype(np.int16)
    far = np.abs(begin(stored, settings, device)().cpu().numpy() - wanted)
    return PixelDifference(
        images=len(stored), mean=round(float(far.mean()), 4), largest=int(far.max())
    )
