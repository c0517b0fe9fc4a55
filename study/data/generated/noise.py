"""Smooth noise, of which sky, foliage and patterns are drawn."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def field(rng: np.random.Generator, width: int, height: int, octaves: tuple[int, ...]) -> NDArray[np.float32]:
    """Return smooth noise (height, width) float32 in about [-1, 1], the sum of random grids of the given sizes."""
    total = np.zeros((height, width), np.float32)
    for octave, cells in enumerate(octaves):
        grid = rng.uniform(-1, 1, (cells, cells)).astype(np.float32)
        total += np.asarray(Image.fromarray(grid).resize((width, height), Image.Resampling.BICUBIC)) / 1.6**octave
    return total / 1.6
