"""The ceilings of this machine, and the share of them that a training step of ResNet-18 reaches.

``python -m benchmarks.arithmetic [--device cuda] [--precision bf16]``: 64 px, batch 16, AdamW, images on the device.
"""

import argparse
from contextlib import nullcontext
from typing import get_args

import torch
from torch import nn

from study.analysis.figures.roofline import arithmetic_words, rate_words
from study.artifacts.machine import Ceiling, Ceilings
from study.config.sections import Precision
from study.training.measure.ceilings import measure_ceilings, sample
from study.training.measure.clock import clock_for
from study.training.measure.flops import flops_of_step
from study.training.measure.precision import set_fp32
from study.training.models import build as models

IMAGES, SIDE = 16, 64


def show(name: str, ceiling: Ceiling, unit: str) -> None:
    """Best, spread and number of the samples."""
    low = min(ceiling.samples)
    print(f"{name}: {rate_words(ceiling.best, unit)} (slowest of {len(ceiling.samples)}: {rate_words(low, unit)})")


def step_share(device: torch.device, precision: Precision, ceilings: Ceilings) -> None:
    """Time full training steps as the ceilings are timed, and print what they reach."""
    model = models.with_new_head(models.backbone("resnet18", 0), 2, 0).to(device)
    images, labels = torch.randn(IMAGES, 3, SIDE, SIDE, device=device), torch.randint(2, (IMAGES,), device=device)
    optimizer, loss = torch.optim.AdamW(model.parameters()), nn.CrossEntropyLoss()
    scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)

    def step() -> None:
        with torch.autocast(device.type, kind) if kind else nullcontext():
            value = loss(model(images), labels)
        scaler.scale(value).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

    flops = flops_of_step(model, images, labels, loss)
    reached = sample(step, flops.flop_per_image * IMAGES, clock_for(device))
    roof = ceilings.attainable(flops.flop_per_byte)
    print(
        f"resnet18, {SIDE} px, batch {IMAGES}: {flops.flop_per_image / 1e9:.2f} GFLOP per image "
        f"(backward {flops.backward_flop_per_image / flops.forward_flop_per_image:.2f} x forward), "
        f"at most {flops.flop_per_byte:.1f} FLOP per byte"
    )
    show("training step", reached, "FLOP/s")
    print(f"share of the ceiling at that intensity ({rate_words(roof, 'FLOP/s')}): {reached.best / roof:.1%}")


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", choices=get_args(Precision), default="auto")
    options = parser.parse_args()
    device = torch.device(options.device)
    set_fp32(options.precision)
    ceilings = measure_ceilings(device, options.precision)
    side = ceilings.product_side
    print(
        f"torch {torch.__version__}, {options.device}, {ceilings.threads} threads, {arithmetic_words(ceilings)} "
        f"(fp32 settings: products {ceilings.matmul_fp32_precision}, "
        f"convolutions {ceilings.convolution_fp32_precision})"
    )
    show(f"matrix product, {side} x {side}", ceilings.product_flop_per_second, "FLOP/s")
    show(f"copy of {ceilings.copy_bytes >> 20} MiB, read plus write", ceilings.copy_bytes_per_second, "B/s")
    step_share(device, options.precision, ceilings)


if __name__ == "__main__":
    main()
