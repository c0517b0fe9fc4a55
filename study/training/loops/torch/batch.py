"""A micro-batch, and how the parts of its work are executed: one operation after another, or as
CUDA graphs.

A graph is recorded once for each shape, and one launch replays what the host would have launched
kernel by kernel.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass(eq=False)
class Batch:
    """Images (n, c, s, s) uint8 and labels (n,) int64 on the device, the fraction that they are of
    their step, and what the parts of the work make of them."""

    images: torch.Tensor
    labels: torch.Tensor
    share: float = 1.0
    inputs: torch.Tensor = field(default_factory=lambda: torch.empty(0))
    loss: torch.Tensor = field(default_factory=lambda: torch.zeros(()))
    right: torch.Tensor = field(default_factory=lambda: torch.zeros(()))


Part = Callable[[Batch], None]
"""A part of the work on a batch: it reads tensors of the batch, and sets others."""


class Eager:
    """Executes each operation as it comes."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def batch(
        self, images: torch.Tensor, labels: torch.Tensor, share: float = 1.0, first: bool = True
    ) -> Batch:
        """Return the batch on the device."""
        there = [values.to(self.device, non_blocking=True) for values in (images, labels)]
        return Batch(there[0], there[1], share)

    def warm_up(self, batch: Batch) -> bool:
        """Do nothing: no operation waits for a recording."""
        return False

    def run(self, part: Part, batch: Batch) -> None:
        """Execute a part."""
        part(batch)

    def kept(self, value: torch.Tensor) -> torch.Tensor:
        """Return a value of a batch that later batches leave alone."""
        return value.detach()

    def forget_gradients(self, optimizer: torch.optim.Optimizer) -> None:
        """Let the next backward pass begin with no gradient."""
        optimizer.zero_grad()


@dataclass(eq=False)
class Recorded(Batch):
    """A batch at a fixed place in memory, with the graphs that work on it and the gradients that
    they write."""

    graphs: dict[str, torch.cuda.CUDAGraph] = field(default_factory=dict)
    gradients: list[torch.Tensor | None] = field(default_factory=list)
    warm: bool = False
    """Whether its parts have been executed once."""


class Captured:
    """Records each part at its first use with a shape, and replays it from then on.

    The graphs of all shapes share their memory: nothing but losses and gradients outlives a batch,
    losses are copied, and the optimizer has read the gradients before another graph runs. The
    optimizer is outside: it reads its rates on the host.
    """

    def __init__(
        self, device: torch.device, model: nn.Module, rehearse: Sequence[Part], judge: Part
    ) -> None:
        """``rehearse`` are the parts of training in their order. ``judge`` is the only part of a
        validation."""
        self.device, self.model, self.training_parts, self.judge = device, model, rehearse, judge
        self.parameters = list(model.parameters())
        self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.pool = torch.cuda.graph_pool_handle()
        self.batches: dict[Hashable, Recorded] = {}
        self.owner: Recorded | None = None
        """The batch whose gradients the parameters have, the first of its step."""

    def batch(
        self, images: torch.Tensor, labels: torch.Tensor, share: float = 1.0, first: bool = True
    ) -> Batch:
        """Return the batch of this shape, filled with these images and labels.

        The graphs of a step's ``first`` micro-batch write the gradients; those of the others add to
        them.
        """
        # A validation is the same whatever the stage trains.
        training = self.model.training
        trained = (
            tuple(parameter.requires_grad for parameter in self.parameters) if training else ()
        )
        added_to = None if first else id(self.owner)
        key = (tuple(images.shape), share, training, trained, added_to)
        if key not in self.batches:
            inputs = [torch.empty_like(values, device=self.device) for values in (images, labels)]
            self.batches[key] = Recorded(inputs[0], inputs[1], share)
        batch = self.batches[key]
        batch.images.copy_(images, non_blocking=True)
        batch.labels.copy_(labels, non_blocking=True)
        if training and first and self.owner is not batch:
            self.owner = batch
            # none: not recorded yet
            self._set_gradients(batch.gradients or [None] * len(self.parameters))
        return batch

    def _set_gradients(self, gradients: Sequence[torch.Tensor | None]) -> None:
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient

    def warm_up(self, batch: Batch) -> bool:
        """Execute the parts once if the batch is new, and return whether it was: no recording can
        hold a search."""
        assert isinstance(batch, Recorded)
        cold, batch.warm = not batch.warm, True
        if cold:
            self._rehearse(batch)
        return cold

    def run(self, part: Part, batch: Batch) -> None:
        """Replay a part, which is recorded first if it is new for the batch."""
        assert isinstance(batch, Recorded)
        name = part.__name__
        if name not in batch.graphs:
            self.warm_up(batch)
            batch.graphs[name] = self._recorded(part, batch)
            if batch is self.owner:
                batch.gradients = [parameter.grad for parameter in self.parameters]
        batch.graphs[name].replay()

    def _recorded(self, part: Part, batch: Batch) -> torch.cuda.CUDAGraph:
        """Return the graph of a part. Threads that load images may allocate memory meanwhile."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(
            graph, pool=self.pool, stream=self.stream, capture_error_mode="thread_local"
        ):
            part(batch)
        return graph

    def _rehearse(self, batch: Batch) -> None:
        """Execute the parts with no lasting effect on statistics, gradients and random numbers.

        cuDNN searches its algorithms here, and libraries make what they keep: no recording can hold
        that.
        """
        parts = self.training_parts if self.model.training else [self.judge]
        gradients = [parameter.grad for parameter in self.parameters]
        buffers = list(self.model.buffers())
        before = [buffer.clone() for buffer in buffers]
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.random.fork_rng([self.device]), torch.cuda.stream(self.stream):
            self._set_gradients([None] * len(self.parameters))
            for part in parts:
                part(batch)
        torch.cuda.current_stream().wait_stream(self.stream)
        with torch.no_grad():
            for buffer, value in zip(buffers, before, strict=True):
                buffer.copy_(value)
        self._set_gradients(gradients)

    def kept(self, value: torch.Tensor) -> torch.Tensor:
        """Return a copy: the next batch of the shape writes to the same place."""
        return value.detach().clone()

    def forget_gradients(self, optimizer: torch.optim.Optimizer) -> None:
        """Do nothing: the graphs of the next step's first batch write, and do not add."""
