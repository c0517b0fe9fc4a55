"""How fast does GPT-2 train here? Drawn tokens, no download, plain PyTorch; the last line is JSON.

In small: ``--device cpu --depth 2 --width 64 --heads 2 --context 64 --vocabulary 500 --drawn 500
--batch-size 2 --steps 6``. The network is that of A. Radford et al., "Language Models are
Unsupervised Multitask Learners" (2019), with the initial weights of nanoGPT. Tokens are drawn by
Zipf's law, as frequent as in a text, so that the loss falls as that is learned.
"""

import argparse
import contextlib
import json
import math
import statistics
import time
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

NUMBERS: dict[str, int | float] = {
    "batch-size": 8,
    "context": 1024,
    "vocabulary": 50257,
    "drawn": 50257,  # tokens that occur; the others are padding
    "depth": 12,
    "width": 768,
    "heads": 12,
    "steps": 30,
    "seed": 1,
    "dropout": 0.0,
}
CHOICES = {  # the first of each is the default
    "device": ["cuda", "cpu"],
    "precision": ["fp32", "tf32", "bf16", "bf16_weights"],  # bf16: autocast over fp32 weights
    "attention": ["sdpa", "flash", "written", "stored_mask"],  # the last two as in a textbook
    "layers": ["torch", "written"],  # LayerNorm and GELU
    "optimizer": ["fused", "foreach", "for_loop"],
}
SWITCHES = ("compile", "pin", "tie")
Options = argparse.Namespace


def options() -> Options:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in NUMBERS.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    for name, known in CHOICES.items():
        parser.add_argument(f"--{name}", choices=known, default=known[0])
    for name in SWITCHES:
        parser.add_argument(f"--{name}", action="store_true")
    return parser.parse_args()


class WrittenNorm(nn.Module):
    """A layer norm of separate operations, as a textbook writes it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``x`` (..., width) with mean 0 and variance 1, scaled and shifted."""
        centred = x - x.mean(-1, keepdim=True)
        deviation = torch.sqrt(centred.square().mean(-1, keepdim=True) + 1e-5)
        return self.scale * centred / deviation + self.shift


def norm(o: Options) -> nn.Module:
    """Return PyTorch's layer norm, or the written one."""
    return nn.LayerNorm(o.width) if o.layers == "torch" else WrittenNorm(o.width)


class Block(nn.Module):
    """One layer: attention and a feed-forward network, each added to its input."""

    def __init__(self, o: Options) -> None:
        super().__init__()
        self.o = o
        self.norm1, self.norm2, self.drop = norm(o), norm(o), nn.Dropout(o.dropout)
        self.qkv, self.out = nn.Linear(o.width, 3 * o.width), nn.Linear(o.width, o.width)
        self.up, self.down = nn.Linear(o.width, 4 * o.width), nn.Linear(4 * o.width, o.width)
        if o.attention == "stored_mask":
            mask = torch.ones(o.context, o.context, dtype=torch.bool).triu(1)
            self.register_buffer("mask", mask)

    def gelu(self, x: torch.Tensor) -> torch.Tensor:
        """Return the activation of ``x``, by PyTorch or written."""
        if self.o.layers == "torch":
            return functional.gelu(x, approximate="tanh")
        return 0.5 * x * (1 + torch.tanh(0.7978846 * (x + 0.044715 * x**3)))

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Return the values (b, heads, n, width / heads) that each token attends to."""
        if self.o.attention in ("sdpa", "flash"):
            return functional.scaled_dot_product_attention(
                q, k, v, is_causal=True, dropout_p=self.o.dropout
            )
        if self.o.attention == "stored_mask":
            mask = self.get_buffer("mask")
        else:
            size = self.o.context
            mask = q.new_ones(size, size, dtype=torch.bool).triu(1)
        scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(mask, -math.inf)
        attended: torch.Tensor = self.drop(scores.softmax(-1)) @ v
        return attended

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output for ``x`` (b, n, width)."""
        b, n, width = x.shape
        heads = self.qkv(self.norm1(x)).view(b, n, 3, self.o.heads, -1)
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        attended = self.attend(q, k, v).transpose(1, 2).reshape(b, n, width)
        x = x + self.drop(self.out(attended))
        fed: torch.Tensor = x + self.drop(self.down(self.gelu(self.up(self.norm2(x)))))
        return fed


class Gpt2(nn.Module):
    """GPT-2, which returns its loss."""

    def __init__(self, o: Options) -> None:
        super().__init__()
        self.tokens = nn.Embedding(o.vocabulary, o.width)
        self.places = nn.Embedding(o.context, o.width)
        self.blocks = nn.Sequential(*(Block(o) for _ in range(o.depth)))
        self.norm, self.head = norm(o), nn.Linear(o.width, o.vocabulary, bias=False)
        for name, weight in self.named_parameters():
            if weight.dim() > 1:  # what ends a residual starts smaller
                ends = ".out." in name or ".down." in name
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * o.depth if ends else 1))
        if o.tie:
            self.head.weight = self.tokens.weight

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the mean cross entropy of the next tokens ``y`` after ``x``, both (b, n)."""
        places = self.places(torch.arange(x.shape[1], device=x.device))
        scores = self.head(self.norm(self.blocks(self.tokens(x) + places)))
        return functional.cross_entropy(scores.flatten(0, 1).float(), y.flatten())


def drawn_tokens(o: Options) -> torch.Tensor:
    """Return the tokens of all steps (steps, batch, context + 1)."""
    zipf = 1 / (torch.arange(min(o.drawn, o.vocabulary)) + 2.7)
    count = o.steps * o.batch_size * (o.context + 1)
    drawn = torch.multinomial(zipf, count, replacement=True)
    pinned = drawn.pin_memory() if o.pin and o.device == "cuda" else drawn
    return pinned.view(o.steps, o.batch_size, -1)


def now(o: Options) -> Any:
    """Return a moment: on a GPU an event in its own timeline, so that no step waits for the
    host."""
    if o.device != "cuda":
        return time.perf_counter()
    event: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event


def between(before: Any, after: Any) -> float:
    """Return the seconds between two moments."""
    if isinstance(before, float):
        return float(after) - before
    after.synchronize()
    return float(before.elapsed_time(after)) / 1000


def train(o: Options) -> tuple[list[float], list[torch.Tensor], int]:
    """Return the seconds and the loss of each step, and the number of parameters."""
    torch.manual_seed(o.seed)
    torch.set_float32_matmul_precision("highest" if o.precision == "fp32" else "high")
    batches = drawn_tokens(o)
    weights = torch.bfloat16 if o.precision == "bf16_weights" else torch.float32
    model = Gpt2(o).to(o.device, weights)
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=5e-4,
        weight_decay=0.1,
        fused=o.optimizer == "fused",
        foreach=o.optimizer == "foreach",
    )
    network = torch.compile(model) if o.compile else model
    print("model ready", flush=True)
    ends, losses = [now(o)], []
    for batch in batches:
        tokens = batch.to(o.device, non_blocking=o.pin)
        flash = o.attention == "flash"
        kernels = sdpa_kernel(SDPBackend.FLASH_ATTENTION) if flash else contextlib.nullcontext()
        with torch.autocast(o.device, torch.bfloat16, enabled=o.precision == "bf16"), kernels:
            loss = network(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
        ends.append(now(o))
    seconds = [between(before, after) for before, after in pairwise(ends)]
    return seconds, losses, sum(one.numel() for one in model.parameters())


def main() -> None:
    """Train, and print what it took."""
    o = options()
    seconds, losses, parameters = train(o)
    steady = statistics.median(seconds[len(seconds) // 3 :])  # the first third warms up
    told = {
        "tokens_per_second": o.batch_size * o.context / steady,
        "step_seconds": seconds,
        "first_loss": losses[0].item(),
        "loss": torch.stack(losses[-5:]).float().mean().item(),
        "parameters": parameters,
        "peak_bytes": torch.cuda.max_memory_allocated() if o.device == "cuda" else None,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
