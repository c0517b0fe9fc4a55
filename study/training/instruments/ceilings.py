"""What the device can do: the rates of a large matrix product and of a large copy, and the reference workload.

They are measured, not read from a data sheet. A multiplication with its addition counts as two FLOPs. The reference
workload is a fixed one before and after each run: a change of its time is a change of the machine, not of the setting.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Literal

import torch
from torch import nn

from study.artifacts.machine import Ceiling, Ceilings
from study.artifacts.samples import WARM_UP_REPETITIONS
from study.config.sections import Precision
from study.training.instruments.clock import Clock, clock_for, synchronise
from study.training.instruments.machine import fp32_backends, fp32_in_use, fp32_settings

SAMPLE_SECONDS = 0.01
"""Shortest sample in seconds: shorter calls are repeated, so that launch overhead and clock resolution do not count."""
SAMPLING_SECONDS = 0.3
FEWEST_SAMPLES = 5
# A larger product uses more of the machine, and the first that takes long is large enough: a few milliseconds may be
# all waiting if another process holds a core. Half precision in software (a CPU's fp16) stops at the smallest.
PRODUCT_SIDES = {"cpu": (256, 512, 1024, 2048, 4096), "cuda": (2048, 4096, 8192)}
LONG_CALL_SECONDS = 0.02
# Several times the last-level cache: a copy that stays in it would be a ceiling of the cache.
COPY_BYTES = {"cpu": 2**28, "cuda": 2**30}
FP32_ARITHMETIC = ("ieee", "tf32", "bf16")
"""torch's names for the arithmetic of fp32, from slow to fast. torch says ``none`` for IEEE when nothing is set."""
HALF: dict[Precision, str] = {"bf16": "bfloat16", "fp16": "float16"}
"""torch's names for the types of mixed precision. The other precisions store fp32."""


def measure_ceilings(device: torch.device, precision: Precision) -> Ceilings:
    """Measure both ceilings: FLOP/s of a product of square matrices, 2 x side^3 / s, and bytes/s of a copy.

    The measurement takes under 3 s on two CPU cores. It allocates up to 0.5 GiB on a CPU and 2 GiB on a GPU, and frees
    it. That moves the memory peaks and drops torch's cached blocks, so call it outside a run. Random numbers come from
    a separate generator. The device's clock does the timing (``instruments.clock``): on a GPU the samples are events in
    its queue, with one synchronisation at their end.
    """
    kind: Literal["cpu", "cuda"] = "cuda" if device.type == "cuda" else "cpu"
    clock = clock_for(device)
    matmul, convolution = fp32_settings(kind)
    single = precision not in HALF
    used = fp32_in_use(kind)
    arithmetic = max((used.products, used.convolutions), key=FP32_ARITHMETIC.index) if single else precision
    with torch.no_grad():
        with _fp32_products(kind, arithmetic if single else matmul):
            side, multiply = _large_product(device, precision, clock)
            product = sample(multiply, 2.0 * side**3, clock)
        del multiply
        copied = sample(_copy(COPY_BYTES[kind], device), 2.0 * COPY_BYTES[kind], clock)
    if kind == "cuda":
        torch.cuda.empty_cache()
    return Ceilings(
        device=kind,
        precision=precision,
        threads=torch.get_num_threads(),
        matmul_fp32_precision=matmul,
        convolution_fp32_precision=convolution,
        product_arithmetic=arithmetic,
        product_side=side,
        copy_bytes=COPY_BYTES[kind],
        product_flop_per_second=product,
        copy_bytes_per_second=copied,
    )


def sample(call: Callable[[], object], work: float, clock: Clock) -> Ceiling:
    """Return the rates of a call that does ``work`` (FLOPs or bytes), sampled for about ``SAMPLING_SECONDS``.

    The call is warmed up before, and the clock is read at the end.
    """
    seconds = seconds_of(call, clock)
    calls = max(1, math.ceil(SAMPLE_SECONDS / seconds))
    count = max(FEWEST_SAMPLES, math.ceil(SAMPLING_SECONDS / (seconds * calls)))
    marks = [clock.mark()]
    for _ in range(count):
        for _ in range(calls):
            call()
        marks.append(clock.mark())
    clock.settle()
    samples = [work * calls / clock.seconds(a, b) for a, b in pairwise(marks)]
    return Ceiling(best=max(samples), samples=samples, calls_per_sample=calls)


def seconds_of(call: Callable[[], object], clock: Clock) -> float:
    """Return the seconds of a warm call: the shorter of two after a first, which pays for libraries and memory."""
    call()
    marks = [clock.mark()]
    for _ in range(2):
        call()
        marks.append(clock.mark())
    clock.settle()
    return max(1e-9, min(clock.seconds(a, b) for a, b in pairwise(marks)))


def _large_product(device: torch.device, precision: Precision, clock: Clock) -> tuple[int, Callable[[], torch.Tensor]]:
    """Return side and call of the first product that takes ``LONG_CALL_SECONDS``, or of the largest product."""
    sides = PRODUCT_SIDES["cuda" if device.type == "cuda" else "cpu"]
    for side in sides:
        call = _product(side, device, precision)
        if seconds_of(call, clock) >= LONG_CALL_SECONDS:
            break
    return side, call


def _product(side: int, device: torch.device, precision: Precision) -> Callable[[], torch.Tensor]:
    """Return a call that multiplies two random square matrices.

    The values are random because a GPU's power, and so its clock, depends on them.
    """
    dtype = getattr(torch, HALF.get(precision, "float32"))
    generator = torch.Generator(device).manual_seed(0)
    a, b = (torch.randn(side, side, generator=generator, device=device, dtype=dtype) for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


def _copy(size: int, device: torch.device) -> Callable[[], torch.Tensor]:
    """Return a call that reads and writes ``size`` bytes; both tensors are touched before, as first use costs more."""
    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.zeros_like(source).fill_(2)
    return lambda: target.copy_(source)


@contextmanager
def _fp32_products(kind: str, arithmetic: str) -> Iterator[None]:
    """Compute fp32 matrix products in ``arithmetic`` within the context, and restore the setting."""
    matmul, _ = fp32_backends(kind)
    before = matmul.fp32_precision
    if before == arithmetic or {before, arithmetic} == {"none", "ieee"}:
        yield
        return
    matmul.fp32_precision = arithmetic
    try:
        yield
    finally:
        matmul.fp32_precision = before


REPETITIONS = {"cpu": 50, "cuda": 25}
SHAPES = {"cpu": (16, 32, 16), "cuda": (512, 64, 32)}
"""Batch size, image side in pixels and channels of the first layer; a step takes a few milliseconds."""
THREADS = torch.get_num_threads()
"""Number of threads that torch chose itself, read before a study sets it; only ``limits.cpus`` changes it."""
MEMORY_COPY_BYTES = {"cpu": 4 * 2**20, "cuda": 256 * 2**20}


def first_use(device: torch.device) -> float:
    """Return the seconds until the device has done its first work: a run's own times do not include them."""
    started = time.perf_counter()
    torch.ones(1, device=device).add_(1)
    synchronise(device)
    return time.perf_counter() - started


@contextmanager
def the_same_for_every_setting() -> Iterator[None]:
    """Suspend within the context what a study may set, so that the reference workload judges the machine alone."""
    threads = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        with torch.backends.cudnn.flags(enabled=True, benchmark=False):
            yield
    finally:
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
    for _ in range(WARM_UP_REPETITIONS + REPETITIONS[device.type]):
        started = time.perf_counter()
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
