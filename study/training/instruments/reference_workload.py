"""The reference workload: a fixed one before and after each run.

A change of its time is a change of the machine, not of the setting.
``python -m study.training.instruments.reference_workload DEVICE`` prints the seconds of each
repetition as a line of JSON, for a run whose own process has no torch.
"""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from study.artifacts.samples import WARM_UP_REPETITIONS

REPETITIONS = {"cpu": 50, "cuda": 25}
SHAPES = {"cpu": (16, 32, 16), "cuda": (512, 64, 32)}
"""Batch size, image side in pixels and channels of the first layer; a step takes a few
milliseconds."""
THREADS = torch.get_num_threads()
"""Number of threads that torch chose itself, read before a study sets it; only ``limits.cpus``
changes it."""
LIMIT_SECONDS = 0.5
"""Seconds from which on no further repetition is begun, once one follows the warm-up: on a machine
where others work, threads wait for each other, and a step takes a hundred times as long."""
MEMORY_COPY_BYTES = {"cpu": 4 * 2**20, "cuda": 256 * 2**20}


def synchronise(device: torch.device) -> None:
    """Wait until the device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def first_use(device: torch.device) -> float:
    """Return the seconds until the device has done its first work: a run's own times do not include
    them."""
    started = time.perf_counter()
    torch.ones(1, device=device).add_(1)
    synchronise(device)
    return time.perf_counter() - started


@contextmanager
def the_same_for_every_setting() -> Iterator[None]:
    """Suspend within the context what a study may set, so that the reference workload judges the
    machine alone."""
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(THREADS)
    if deterministic:  # the call imports torch's compiler, which takes seconds
        torch.use_deterministic_algorithms(False)
    try:
        with torch.backends.cudnn.flags(enabled=True, benchmark=False):
            yield
    finally:
        if deterministic:
            torch.use_deterministic_algorithms(True)
        torch.set_num_threads(threads)


@the_same_for_every_setting()
def repetitions(device: torch.device) -> list[float]:
    """Return the seconds of each repetition.

    The random generators stay as they were, and torch's cache keeps no memory.
    """
    batch, side, width = SHAPES[device.type]
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(2 * width, 10),
        ).to(device)
        images = torch.randn(batch, 3, side, side, device=device)
        labels = torch.randint(0, 10, (batch,), device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    source = torch.zeros(MEMORY_COPY_BYTES[device.type], dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    seconds = []
    synchronise(device)
    ends = time.perf_counter() + LIMIT_SECONDS
    for number in range(WARM_UP_REPETITIONS + REPETITIONS[device.type]):
        started = time.perf_counter()
        if started > ends and number > WARM_UP_REPETITIONS:
            break
        loss = nn.functional.cross_entropy(model(images), labels)
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        target.copy_(source)
        synchronise(device)
        seconds.append(round(time.perf_counter() - started, 7))
    del model, images, labels, optimizer, source, target, loss
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return seconds


def main(name: str) -> None:
    """Print the seconds of each repetition on a device, and of those on the CPUs beside a GPU."""
    device = torch.device(name)
    told = {"first_use": [first_use(device)], "device": repetitions(device)}
    told["host"] = repetitions(torch.device("cpu")) if name != "cpu" else []
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
