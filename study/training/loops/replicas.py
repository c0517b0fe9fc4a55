"""The processes that train one model together, as seen by one of them: its shares, model wrapper,
sums, barriers and count of images.

Every batch holds the images that a single process's batch would hold. This module does not use
torch's ``DistributedSampler``. That sampler divides the whole epoch first, so that a step of all
processes together holds other images than the step of one process, and it repeats images until
every process has the same number. Here the batches are those of one process, and each is cut into
shards: the work is equal, and no image counts twice.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch.distributed
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from study.base.errors import StudyError
from study.config.settings import Settings


@dataclass(frozen=True)
class Share:
    """The part of every batch that process ``rank`` of ``replicas`` trains on; the whole batch for
    a single process."""

    rank: int = 0
    replicas: int = 1

    def of(self, batch: Any) -> Any:
        """Return this process's shard of a list or a tensor (n, ...), along the first axis.

        The sizes of the shards differ by one at most, and no two shards overlap.
        """
        if self.replicas == 1:
            return batch
        return batch[
            self.rank * len(batch) // self.replicas : (self.rank + 1) * len(batch) // self.replicas
        ]


def planned_steps(settings: Settings, train_images: int) -> list[int]:
    """Return the number of images in every step of an epoch, summed over processes; the last step
    may have fewer."""
    size = settings.training.step_images
    images = [min(size, train_images - start) for start in range(0, train_images, size)]
    return [count for count in images if count == size or not settings.training.drop_last]


@dataclass(frozen=True)
class Replicas:
    """This process as number ``rank`` of ``count``; ``together`` is false if one process trains
    without a group."""

    rank: int = 0
    count: int = 1
    together: bool = False
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def share(self) -> Share:
        """The share of each batch that this process trains on."""
        return Share(self.rank, self.count)

    def wrap(self, model: nn.Module) -> nn.Module:
        """Return the model with its gradients averaged over processes in the backward pass;
        unchanged for a single one.

        Wrap after freezing: parameters that need no gradient at this moment are never exchanged.
        Batch normalisation uses the statistics of each process's own shard, as data parallel
        training does unless its layers are replaced. A shard has k times fewer images, so these are
        noisier, and a network with batch normalisation does not train exactly as one process would.
        The running statistics are those of process 0.
        """
        if not self.together:
            return model
        return DistributedDataParallel(
            model, device_ids=[self.device.index] if self.device.type == "cuda" else None
        )

    def exchanging(self, model: nn.Module, now: bool) -> AbstractContextManager[None]:
        """Return a context of a forward and backward pass: gradients are exchanged if ``now``, else
        added up."""
        return (
            model.no_sync()
            if isinstance(model, DistributedDataParallel) and not now
            else nullcontext()
        )

    def weight(self, own: int, batch: int) -> float:
        """Return the weight of the mean loss over a process's ``own`` images: 1 if all shards of
        ``batch`` are equal.

        With this weight the average of the processes' gradients is the gradient of the mean over
        the whole batch, even for an epoch's last batch, which may not divide evenly.
        """
        return own * self.count / batch

    def agree(self, model: nn.Module) -> None:
        """Give every process the running statistics of process 0, which are those of the model."""
        if self.together:
            for buffer in model.buffers():
                torch.distributed.broadcast(buffer, 0)

    def added(self, values: Sequence[float]) -> list[float]:
        """Return the sums of ``values`` over all processes, in order. Every process waits here for
        the last one."""
        if not self.together:
            return list(values)
        sums = torch.tensor(values, dtype=torch.float64, device=self.device)
        torch.distributed.all_reduce(sums)
        return [float(value) for value in sums.tolist()]

    def meet(self) -> None:
        """Return once every process has reached this point."""
        self.added([0.0])


class ImageCount:
    """Adds up the images that this process trains on, as integers on the host, without waiting for
    a device.

    The steps are those of the plan (:func:`planned_steps`), whatever the loader yields.
    """

    def __init__(self, settings: Settings, train_images: int, replicas: Replicas) -> None:
        self.planned, self.replicas = planned_steps(settings, train_images), replicas
        self.epochs: list[int] = []
        """Number of images that this process trained on in each epoch so far."""
        self.steps = self.own = 0

    def expect(self) -> int:
        """Return the planned number of images, summed over processes, of the step that begins now.

        Raise :class:`StudyError` if the plan has no such step: a loader that repeats must not go
        on.
        """
        if self.steps < len(self.planned):
            return self.planned[self.steps]
        raise StudyError(
            f"epoch {len(self.epochs)}: the loader gave more than the {len(self.planned)} "
            "steps of the plan"
        )

    def begin(self) -> None:
        """Start the count of an epoch."""
        self.epochs.append(0)
        self.steps = self.own = 0

    def add(self, images: int) -> None:
        """Add ``images`` to this process's count for the current step."""
        self.own += images

    def end_step(self) -> int:
        """Return the number of images of the step, summed over processes.

        A single process returns its count. With several, no process knows the others' counts, and
        asking in each step would cost time: they return the planned number, and :meth:`check`
        compares at the end.
        """
        images = self.planned[self.steps] if self.replicas.together else self.own
        self.epochs[-1] += self.own
        self.steps, self.own = self.steps + 1, 0
        return images

    def end_epoch(self) -> None:
        """Raise :class:`StudyError` if steps are missing.

        Call it before the processes next wait for each other: otherwise a process with fewer steps
        would wait forever.
        """
        if self.steps != len(self.planned) or self.own:
            raise StudyError(
                f"epoch {len(self.epochs)}: the loader gave {self.steps} of the "
                f"{len(self.planned)} steps of the plan"
            )

    def check(self) -> int:
        """Return the number of images that this process trained on.

        Raise :class:`StudyError` in every process if the sum over processes is not the plan's.
        Every process has to call this.
        """
        planned = sum(self.planned)
        for epoch, images in enumerate(self.replicas.added(self.epochs), start=1):
            if images != planned:
                raise StudyError(
                    f"epoch {epoch} trained on {images:.0f} images in place of the {planned} of "
                    "the plan: the loader repeats images or leaves some out"
                )
        return sum(self.epochs)
