"""Time how fast a decoder makes pixels of JPEG files that lie in memory, one thread, nothing else:
a command for a study. It prints one line of JSON with the seconds of each decoded image."""

import argparse
import io
import json
import time
from collections.abc import Callable

import numpy as np
from PIL import Image

QUALITY, WARM_UP = 90, 20


def drawn(height: int, seed: int) -> bytes:
    """Return a JPEG file of three to two: smooth shapes below the grain of a photograph."""
    draw, size = np.random.default_rng(seed), (height * 3 // 2, height)
    smooth = Image.fromarray(draw.integers(0, 256, (24, 36, 3), np.uint8)).resize(size)
    grain = draw.normal(0, 6, (height, size[0], 1))
    pixels = np.clip(np.asarray(smooth, float) + grain, 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=QUALITY)
    return file.getvalue()


def decoder_of(name: str) -> Callable[[bytes], object]:
    """Return the function that decodes the bytes of a file to 8 bits a channel."""
    if name == "pillow":
        return lambda data: np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    import torch
    from torchcodec.decoders import decode_jpeg

    torch.set_num_threads(1)
    return lambda data: decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8))


def main() -> None:
    """Decode, and print the seconds of each image."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decoder", choices=("pillow", "torchcodec"), required=True)
    parser.add_argument("--height", type=int, default=320)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--seed", type=int, default=42)
    asked = parser.parse_args()
    files = [drawn(asked.height, asked.seed + number) for number in range(10)]
    decode, seconds = decoder_of(asked.decoder), []
    print("ready", flush=True)
    for number in range(WARM_UP + asked.images):
        started = time.perf_counter()
        decode(files[number % len(files)])
        seconds.append(time.perf_counter() - started)
    print(json.dumps({"image_seconds": seconds[WARM_UP:], "bytes": len(files[0])}))


if __name__ == "__main__":
    main()
