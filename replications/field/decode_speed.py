"""Time how fast a decoder makes pixels of JPEG files that lie in memory, one CPU thread or a GPU,
nothing else: a command for a study. It prints one line of JSON with the seconds of each image, or
of the mean image of each call where a call decodes several."""

import argparse
import io
import json
import time
from collections.abc import Callable

import numpy as np
from PIL import Image

QUALITY, WARM_UP = 90, 20
DECODERS = ("pillow", "torchcodec", "torchvision", "nvjpeg")
"""nvJPEG is the decoder of torchvision on a GPU."""


def drawn(height: int, seed: int) -> bytes:
    """Return a JPEG file of three to two: smooth shapes below the grain of a photograph."""
    draw, size = np.random.default_rng(seed), (height * 3 // 2, height)
    smooth = Image.fromarray(draw.integers(0, 256, (24, 36, 3), np.uint8)).resize(size)
    grain = draw.normal(0, 6, (height, size[0], 1))
    pixels = np.clip(np.asarray(smooth, float) + grain, 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=QUALITY)
    return file.getvalue()


def decoder_of(name: str) -> Callable[[list[bytes]], object]:
    """Return the function that decodes the bytes of files to 8 bits a channel, and waits for
    them."""
    if name == "pillow":
        return lambda files: [
            np.asarray(Image.open(io.BytesIO(one)).convert("RGB")) for one in files
        ]
    import torch

    def tensors(files: list[bytes]) -> list[torch.Tensor]:
        return [torch.frombuffer(bytearray(one), dtype=torch.uint8) for one in files]

    torch.set_num_threads(1)
    if name == "torchcodec":
        from torchcodec.decoders import decode_jpeg

        return lambda files: [decode_jpeg(one) for one in tensors(files)]
    from torchvision.io import decode_jpeg as decode_all

    device = "cuda" if name == "nvjpeg" else "cpu"

    def decode(files: list[bytes]) -> object:
        pixels = decode_all(tensors(files), device=device)
        if device == "cuda":
            torch.cuda.synchronize()
        return pixels

    return decode


def main() -> None:
    """Decode, and print the seconds of each image."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decoder", choices=DECODERS, required=True)
    parser.add_argument("--height", type=int, default=320)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--at-once", type=int, default=1, help="images that a call decodes")
    parser.add_argument("--seed", type=int, default=42)
    asked = parser.parse_args()
    files = [drawn(asked.height, asked.seed + number) for number in range(10)]
    decode, seconds = decoder_of(asked.decoder), []
    print("ready", flush=True)
    calls, size = asked.images // asked.at_once, asked.at_once
    warm_up = -(-WARM_UP // size)
    for number in range(warm_up + calls):
        chosen = [files[(number * size + one) % len(files)] for one in range(size)]
        started = time.perf_counter()
        decode(chosen)
        seconds.append((time.perf_counter() - started) / size)
    print(json.dumps({"image_seconds": seconds[warm_up:], "bytes": len(files[0])}))


if __name__ == "__main__":
    main()
