"""How fast each kind of loader decodes: threads, worker processes and SPDL, side by side on one machine.

    python -m benchmarks.loaders --images 1000 --rounds 8
    PYTHONPATH=FOLDER python -m benchmarks.loaders ...

The images are generated JPEG files of about 25 kB, which the loaders resize to 192 px and yield in batches of 64 in the
memory of the host; nothing trains. Each side decodes one epoch a round, in an order that is drawn anew. Workers are
started in every epoch, as for a training's, or kept. SPDL (``pip install --target FOLDER --no-deps spdl-io spdl-core``)
is no dependency, and is left out where it is absent. Its threads decode by our decoder, whose pixels are Pillow's, or,
where it finds FFmpeg's libraries, by its own, whose pixels are others. Printed: each side's images/s, and its time over
that of the first side, as the median of the rounds with an exact 95% interval; and the state of the machine.
"""

import argparse
import importlib
import importlib.util
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterable
from ctypes.util import find_library
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from PIL import Image

from benchmarks.instrumentation import ratio
from study.base.cpus import usable_cpus
from study.config.settings import Settings
from study.data.decode import ImageSet, decode
from study.training.loops.loaders import make_loaders

BATCH, SIZE = 64, 192
SIDES: dict[str, dict[str, Any]] = {
    "workers 1": {"kind": "workers", "workers": 1},
    "workers 2": {"kind": "workers", "workers": 2},
    "workers 2, kept": {"kind": "workers", "workers": 2, "persistent_workers": True},
    "threads 1": {"kind": "threads", "workers": 1},
    "threads 2": {"kind": "threads", "workers": 2},
}


def drawn(folder: Path, count: int) -> list[Path]:
    """``count`` files of about 25 kB, each another mixture of coarse and fine noise."""
    rng = np.random.default_rng(1)
    files = [folder / f"{number:05d}.jpg" for number in range(count)]
    for file in files:
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((400, 300))
        pixels = np.asarray(coarse, dtype=np.int16) + rng.integers(-12, 13, (300, 400, 3), dtype=np.int16)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(file, quality=85)
    return files


def ours(files: list[Path], loader: dict[str, Any]) -> Callable[[], Iterable[Any]]:
    """An epoch of one of our loaders."""
    images = ImageSet(list(files), [0] * len(files), list(range(len(files))), [0], ["a"])
    values = {
        "dataset": {"images": len(files), "image_size": SIZE},
        "training": {"batch_size": BATCH, "drop_last": False},
        "loader": loader,
    }
    made = make_loaders(images, Settings.model_validate(values), torch.device("cpu"), 1)
    return lambda: (batch for batch, _ in made.train)


def spdl(files: list[Path], threads: int, own: bool) -> Callable[[], Iterable[Any]]:
    """An epoch of SPDL's pipeline with so many threads, with its ``own`` decoder or with ours."""
    spdl_io, building = importlib.import_module("spdl.io"), importlib.import_module("spdl.pipeline")

    def by_ours(batch: list[Path]) -> torch.Tensor:
        return torch.from_numpy(np.stack([decode(file, 3, SIZE) for file in batch]))

    def by_its_own(batch: list[Path]) -> Any:
        names = [str(file) for file in batch]
        return spdl_io.to_torch(spdl_io.load_image_batch(names, width=SIZE, height=SIZE, pix_fmt="rgb24"))

    def epoch() -> Iterable[Any]:
        order = random.sample(files, len(files))
        batches = [order[first : first + BATCH] for first in range(0, len(order), BATCH)]
        builder = building.PipelineBuilder().add_source(batches)
        piped = builder.pipe(by_its_own if own else by_ours, concurrency=threads, output_order="input")
        with (pipeline := piped.add_sink(2).build(num_threads=threads)).auto_stop():
            yield from pipeline

    return epoch


def seconds(epoch: Callable[[], Iterable[Any]], count: int) -> float:
    """Seconds of one epoch, which yields ``count`` images."""
    started = time.perf_counter()
    found = sum(len(batch) for batch in epoch())
    if found != count:
        raise SystemExit(f"{found} images in place of {count}")
    return time.perf_counter() - started


def main() -> None:
    """Print a line for each side."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=8)
    options: Any = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = drawn(Path(folder), options.images)
        kilobytes = median(file.stat().st_size for file in files) / 1000
        sides = {name: ours(files, loader) for name, loader in SIDES.items()}
        if importlib.util.find_spec("spdl"):
            sides["SPDL 2, our decoder"] = spdl(files, 2, False)
        if importlib.util.find_spec("spdl") and find_library("avcodec"):
            sides["SPDL 2, its decoder"] = spdl(files, 2, True)
        for epoch in sides.values():
            seconds(epoch, options.images)
        found: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(options.rounds):
            for name in random.sample(list(sides), len(sides)):
                found[name].append(seconds(sides[name], options.images))
    print(f"{options.images} files of {kilobytes:.0f} kB; {usable_cpus()} CPUs, load {os.getloadavg()[0]:.1f}")
    first = next(iter(found))
    for name, taken in found.items():
        print(f"{name}: {options.images / median(taken):.0f} images/s, time over {first} {ratio(taken, found[first])}")


if __name__ == "__main__":
    main()
