"""Time a linear layer's forward and backward pass in float8 or bf16, as torchao's script
``float8_roofline.py`` does: a normalisation before it, a sigmoid behind it, compiled, and of a GPU
the time of its kernels alone. A command for a study. It prints one line of JSON.

float8 needs ``pip install torchao`` and a GPU that has it, an H100 or newer.
"""

import argparse
import json
import time

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

WARM_UP, STEPS_A_TIME = 5, 20


def layer(depth: int, width: int, precision: str) -> nn.Module:
    """Return the layer in bf16 with a weight of ``depth`` x ``width``, or the same in float8."""
    network = nn.Sequential(
        nn.LayerNorm(depth, elementwise_affine=False),
        nn.Linear(depth, width, bias=False),
        nn.Sigmoid(),
    ).to(torch.bfloat16)
    if precision == "float8":
        from torchao.float8 import convert_to_float8_training

        convert_to_float8_training(network)
    return network


def main() -> None:
    """Compute, and print the seconds of a step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", choices=("bf16", "float8"), required=True)
    parser.add_argument("--shape", default="1024x2048x1024", help="rows x depth x width")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    asked = parser.parse_args()
    rows, depth, width = map(int, asked.shape.split("x"))
    network = layer(depth, width, asked.precision).to(asked.device)
    compiled = torch.compile(network) if asked.device == "cuda" else network
    images = torch.randn(rows, depth, dtype=torch.bfloat16, device=asked.device, requires_grad=True)
    gradient = torch.randn(rows, width, dtype=torch.bfloat16, device=asked.device)

    def steps(count: int) -> None:
        for _ in range(count):
            compiled(images).backward(gradient)

    steps(WARM_UP)
    print("ready", flush=True)
    seconds = []
    for _ in range(asked.times):
        if asked.device == "cuda":
            torch.cuda.synchronize()
            with profile(activities=[ProfilerActivity.CUDA]) as seen:
                steps(STEPS_A_TIME)
                torch.cuda.synchronize()
            total = sum(one.self_device_time_total for one in seen.key_averages()) / 1e6
        else:
            started = time.perf_counter()
            steps(STEPS_A_TIME)
            total = time.perf_counter() - started
        seconds.append(total / STEPS_A_TIME)
    print(json.dumps({"step_seconds": seconds}))


if __name__ == "__main__":
    main()
