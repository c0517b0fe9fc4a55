"""How near our fastest step comes to the bare captured one, and how long the blog's job takes from its files.

    python -m benchmarks.fastest step --batch-sizes 16 64 256 1024 [--compile]
    python -m benchmarks.fastest job PHOTOS --batch-sizes 16 64 256

Both need a GPU. ``step`` alternates, in pairs whose order is drawn, epochs of our loop with all its marks (images on
the device, bf16, channels_last, a fused optimizer, captured steps) and replays of one graph that holds the whole bare
step: the images' normalisation, both passes and the optimizer, on one batch that never changes. Printed: images/s of
both, and the bare epoch's time over ours, as the median of the pairs with an exact 95% interval.

``job`` trains ResNet-18 on 1030 files, the photographs of PHOTOS (a folder a class) again and again, at 192 px: one
frozen and three unfrozen epochs, with validation. Each training is a process of its own, forked from one that has
imported torch and fastai and has not started CUDA. Printed for stock fastai, our loop as published, and our fastest
loop: seconds from the files to the trained and validated network (the start of CUDA included), and the same once more
in the same process, warm. The order is drawn. ``--device cpu`` compares what a CPU has: fp32, and bf16 with
channels_last.
"""

import argparse
import contextlib
import importlib
import io
import json
import os
import random
import tempfile
import time
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.instrumentation import ratio, timed
from study.config.settings import Settings
from study.data.decode import ImageSet
from study.training.common import ProgressLines, loop_of, seed_everything
from study.training.instruments.clock import StepRecorder, marks_of
from study.training.loops.contract import TrainingJob
from study.training.loops.loaders import make_loaders
from study.training.loops.schedule import stages
from study.training.loops.torch.loop import Trainer
from study.training.models import build, pretrained

FAST = {
    "loop": "torch",
    "precision": "bf16",
    "memory_format": "channels_last",
    "cuda_graph": True,
    "optimizer_implementation": "fused",
    "cudnn_benchmark": False,
}
CUDA = torch.device("cuda")
HELD = {"kind": "device"}
BF16 = {"loop": "torch", "precision": "bf16", "memory_format": "channels_last"}
PUBLISHED: dict[str, dict[str, Any]] = {
    "stock fastai": {"training": {"loop": "fastai"}},
    "our loop as published, images on the device": {"training": {"loop": "torch"}, "loader": HELD},
}
WAYS: dict[str, dict[str, dict[str, Any]]] = {
    "cuda": PUBLISHED
    | {
        "our fastest loop": {"training": FAST, "loader": HELD},
        "our fastest loop, decoded on the GPU": {"training": FAST, "loader": HELD | {"decoder": "torchcodec_cuda"}},
    },
    "cpu": PUBLISHED | {"our loop, bf16 and channels_last": {"training": BF16, "loader": HELD}},
}


def job_of(images: ImageSet, size: int, device: str, **changes: dict[str, Any]) -> TrainingJob:
    """A training of ResNet-18 with random weights; ``changes`` are sections of the settings."""
    dataset = {"images": len(images.labels), "image_size": size}
    settings = Settings.model_validate({"device": device, "dataset": dataset} | changes)
    with tempfile.TemporaryDirectory() as folder:
        weights = pretrained.decide("resnet18", "none", 1, Path(folder))
    return TrainingJob(settings, images, weights, None, torch.device(device), 1, lambda done, total, words: None)


class Bare:
    """The whole step, as one graph that is replayed, or as it is: nothing is measured, loaded, scheduled or told."""

    def __init__(self, batch_size: int, size: int, compiled: bool = False, captured: bool = True) -> None:
        model = build.build("resnet18", classes=2, channels=3, seed=1, head_seed=1, state=None)
        model = model.to(CUDA).to(memory_format=torch.channels_last)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True, capturable=captured)
        network = torch.compile(model) if compiled else model
        images = torch.randint(0, 256, (batch_size, 3, size, size), dtype=torch.uint8, device=CUDA)
        labels = torch.randint(0, 2, (batch_size,), device=CUDA)
        mean, std = (
            torch.tensor(values, device=CUDA).view(1, -1, 1, 1) for values in build.normalisation("resnet18", 3)
        )

        def step() -> None:
            optimizer.zero_grad()
            inputs = (images.to(torch.float32, memory_format=torch.channels_last).div_(255) - mean) / std
            with torch.autocast("cuda", torch.bfloat16, cache_enabled=not captured):
                loss = nn.functional.cross_entropy(network(inputs), labels)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()

        self.step = step  # the graph reads what the step holds
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        self.again: Callable[[], object] = step
        if captured:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()
            self.again = graph.replay

    def epoch(self, steps: int) -> None:
        """Do the step again and again."""
        for _ in range(steps):
            self.again()


def compare_steps(batch_size: int, size: int, pairs: int, compiled: bool = False, captured: bool = True) -> str:
    """Our epoch against the bare one, in pairs, both compiled or not, captured or not."""
    steps = max(20, 4096 // batch_size)
    pixels = np.random.default_rng(1).integers(0, 256, (size, size, 3), dtype=np.uint8)
    count = batch_size * steps
    images = ImageSet(
        [pixels] * (count + 2), [n % 2 for n in range(count + 2)], [*range(count)], [count, count + 1], ["a", "b"]
    )
    training = FAST | {"compile": compiled, "cuda_graph": captured}
    training |= {"batch_size": batch_size, "freeze_epochs": 0, "epochs": 1}
    job = job_of(images, size, "cuda", training=training, loader={"kind": "device"})
    loop_of(job.settings)  # sets cuDNN as the settings say
    trainer = Trainer(job, make_loaders(images, job.settings, CUDA, 1))
    bare = Bare(batch_size, size, compiled, captured)
    clock, stage = trainer.recorder.clock, stages(job.settings, len(trainer.groups))[0]

    def ours() -> None:
        trainer.train_epoch(stage, 0, 1)

    found: dict[str, list[float]] = {"ours": [], "bare": []}
    for number in range(pairs + 1):
        for kind in random.sample(("ours", "bare"), 2):
            trainer.recorder, trainer.done = StepRecorder(clock), 0
            trainer.job = TrainingJob(**{**trainer.job.__dict__, "progress": ProgressLines()})
            clock.reserve(marks_of(steps, 1))
            seconds = timed(clock, ours if kind == "ours" else lambda: bare.epoch(steps), None)["seconds"]
            if number:
                found[kind].append(seconds)
    rates = {kind: count / float(np.median(seconds)) for kind, seconds in found.items()}
    quotient = ratio(found["bare"], found["ours"])
    return f"ours {rates['ours']:.0f} images/s, bare {rates['bare']:.0f}; the bare epoch's time over ours {quotient}"


def train_twice(job: TrainingJob) -> dict[str, float]:
    """Seconds from the files to the trained and validated network, cold and warm, with what was reached.

    The device starts in the cold one. What follows the training (its samples, the arithmetic of a step) is left out.
    """
    seed_everything(job.seed, "auto")
    found = {}
    for name in ("cold", "warm"):
        begun = time.time()
        with contextlib.redirect_stdout(io.StringIO()):
            measured = loop_of(job.settings)(job)
        assert measured.fit_started is not None
        found[name] = measured.fit_started + measured.fit_seconds - begun
        found[f"{name}_setup"], found[f"{name}_model"] = measured.setup_seconds, measured.model_seconds
        found[f"{name}_schedule"], found[f"{name}_accuracy"] = measured.fit_seconds, measured.epochs[-1].accuracy or 0.0
    return found


def in_a_process(job: TrainingJob) -> dict[str, float]:
    """The same in a forked process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.write(writer, json.dumps(train_twice(job)).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as answer:
        told = answer.read()
    os.waitpid(child, 0)
    return dict(json.loads(told)) if told else {}


def photographs(folder: Path, count: int) -> ImageSet:
    """So many files: those of the folder again and again, each fifth for validation."""
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
    files = [(file, number) for number, name in enumerate(classes) for file in sorted((folder / name).iterdir())]
    random.Random(1).shuffle(files)
    chosen = [files[index % len(files)] for index in range(count)]
    valid = list(range(0, count, 5))
    train = sorted(set(range(count)) - set(valid))
    return ImageSet([file for file, _ in chosen], [label for _, label in chosen], train, valid, classes)


def compare_jobs(images: ImageSet, device: str, batch_sizes: list[int], repetitions: int) -> None:
    """Print a line for each training, and then the medians."""
    importlib.import_module("study.training.loops.fastai.loop")  # once, before anything is forked
    ways, found = WAYS[device], dict[tuple[str, int], list[dict[str, float]]]()
    # Whole blocks in drawn orders: what ends too early leaves each way with the same number of trainings.
    settings = [(way, size) for way in ways for size in batch_sizes]
    for way, batch_size in chain.from_iterable(random.sample(settings, len(settings)) for _ in range(repetitions)):
        training = ways[way]["training"] | {"batch_size": batch_size, "freeze_epochs": 1, "epochs": 3}
        told = in_a_process(job_of(images, 192, device, **ways[way] | {"training": training}))
        print(json.dumps({"way": way, "batch_size": batch_size} | told), flush=True)
        if told:
            found.setdefault((way, batch_size), []).append(told)
    stock = next(iter(ways))
    for (way, batch_size), runs in sorted(found.items()):
        parts = {key: float(np.median([run[key] for run in runs])) for key in runs[0]}
        print(f"{way}, batch size {batch_size}: " + ", ".join(f"{key} {value:.3f}" for key, value in parts.items()))
        for key in ("cold", "warm_schedule"):
            if way != stock and len(runs) == len(found.get((stock, batch_size), [])):
                both = [[run[key] for run in chosen] for chosen in (found[stock, batch_size], runs)]
                print(f"  {stock} over it, {key}: {ratio(*both)}")


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["step", "job"])
    parser.add_argument("photos", type=Path, nargs="?", help="a folder of photographs, for `job`")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--device", choices=list(WAYS), default="cuda", help="of `job`")
    parser.add_argument("--images", type=int, default=1030, help="of `job`")
    parser.add_argument("--image-size", type=int, default=224, help="of `step`")
    parser.add_argument("--compile", action="store_true", help="of `step`: compile the network of both")
    options: Any = parser.parse_args()
    if options.what == "job":
        if options.device == "cpu":
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # stock fastai takes the best device that it sees
        images = photographs(options.photos, options.images)
        compare_jobs(images, options.device, options.batch_sizes, options.repetitions)
        return
    for batch_size in options.batch_sizes:
        told = compare_steps(batch_size, options.image_size, options.pairs, options.compile)
        print(f"batch size {batch_size}: {told}", flush=True)


if __name__ == "__main__":
    main()
