"""The processes that train one model together, as one of them sees it: what they wrap, add up and wait for."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch
import torch.distributed
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from study.config import Settings
from study.data.sharding import Share


@dataclass(frozen=True)
class Replicas:
    """This process's number among so many; ``together`` is false where one process trains without a group."""

    rank: int = 0
    count: int = 1
    together: bool = False
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def share(self, settings: Settings) -> Share:
        """What this process trains on of each batch."""
        return Share(self.rank, self.count, settings.loader.sharding)

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model with its gradients averaged over the processes in the backward pass; one process's as it is.

        Wrap after freezing: what needs no gradient at this moment is never exchanged. Batch normalisation takes the
        statistics of each process's own shard, as data parallel training does unless its layers are replaced: of k
        times fewer images they are noisier, so that a network with it does not train just as one process would. The
        running statistics are those of process 0.
        """
        if not self.together:
            return model
        return DistributedDataParallel(model, device_ids=[self.device.index] if self.device.type == "cuda" else None)

    def exchanging(self, model: nn.Module, now: bool) -> AbstractContextManager[None]:
        """Around a forward and a backward pass: whether gradients are exchanged at its end, or add up here first."""
        return model.no_sync() if isinstance(model, DistributedDataParallel) and not now else nullcontext()

    def weight(self, own: int, batch: int) -> float:
        """What the mean loss of a process's ``own`` images counts for: 1 where all shards of ``batch`` are as large.

        With it the average of the processes' gradients is that of the mean over the whole batch, also of an epoch's
        last one, which may not divide evenly.
        """
        return own * self.count / batch

    def agree(self, model: nn.Module) -> None:
        """Give every process the running statistics of process 0, which stand for the model."""
        if self.together:
            for buffer in model.buffers():
                torch.distributed.broadcast(buffer, 0)

    def added(self, values: Sequence[float]) -> list[float]:
        """The sums over all processes of numbers that each of them has; every process waits for the last one here."""
        if not self.together:
            return list(values)
        sums = torch.tensor(values, dtype=torch.float64, device=self.device)
        torch.distributed.all_reduce(sums)
        return [float(value) for value in sums.tolist()]

    def meet(self) -> None:
        """Return when every process has come this far."""
        self.added([0.0])
