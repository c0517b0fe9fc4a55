"""A downloaded picture, verified and shrunk as by the fastai course's ``resize_images``: bytes in, bytes out."""

import io

from PIL import Image, features
from PIL import __version__ as pillow_version

from study.base.errors import StudyError
from study.data.decode import opened, to_channels, upright

MIN_SIDE = 32
QUALITY = 75
"""JPEG quality: Pillow's default, and so the course's."""


def shrink(content: bytes, max_size: int) -> bytes:
    """Return the picture as an upright RGB JPEG whose longer side has at most ``max_size`` pixels.

    Raise :class:`StudyError` with the reason if the content is not a picture, or is too small or too large.
    """
    try:
        with opened(io.BytesIO(content)) as picture:
            _check_size(*picture.size)
            image = to_channels(upright(picture), 3)
    except StudyError:
        raise
    except Exception as error:  # Pillow's decoders raise nearly anything on broken bytes
        reason = str(error).splitlines() or [error.__class__.__name__]
        raise StudyError(f"it cannot be decoded: {reason[0]}") from None
    longer = max(image.size)
    if longer > max_size:
        width, height = (max(1, int(side * max_size / longer)) for side in image.size)
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    image.info.clear()  # a comment would be copied
    stored = io.BytesIO()
    image.save(stored, "JPEG", quality=QUALITY)
    return stored.getvalue()


def _check_size(width: int, height: int) -> None:
    if min(width, height) < MIN_SIDE:
        raise StudyError(f"it is {width} x {height} pixels, but each side needs at least {MIN_SIDE}")


def encoder() -> str:
    """Return the software that stores a picture: another version may round differently, and so write other bytes."""
    turbo = features.version("libjpeg_turbo")
    return f"Pillow {pillow_version}, " + (f"libjpeg-turbo {turbo}" if turbo else f"libjpeg {features.version('jpg')}")
