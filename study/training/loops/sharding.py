"""Shares of each batch in a distributed run: every batch holds the images that a single process's batch would hold.

This module does not use torch's ``DistributedSampler``. That sampler divides the whole epoch first, so that a step of
all processes together holds other images than the step of one process, and it repeats images until every process has
the same number. Here the batches are those of one process, and each is cut into shards: the work is equal, and no image
counts twice.
"""

from dataclasses import dataclass
from typing import Any, Literal

Sharding = Literal["contiguous", "strided"]


@dataclass(frozen=True)
class Share:
    """The part of every batch that process ``rank`` of ``replicas`` trains on; the whole batch for a single process."""

    rank: int = 0
    replicas: int = 1
    sharding: Sharding = "contiguous"

    def of(self, batch: Any) -> Any:
        """Return this process's shard of a list or a tensor (n, ...), along the first axis.

        The sizes of the shards differ by one at most, and no two shards overlap.
        """
        if self.replicas == 1:
            return batch
        if self.sharding == "strided":
            return batch[self.rank :: self.replicas]
        return batch[self.rank * len(batch) // self.replicas : (self.rank + 1) * len(batch) // self.replicas]


def images_of_step(index: int, train_images: int, batch_size: int) -> int:
    """Return the number of images in step ``index`` (from 0) of an epoch, summed over processes.

    The last step may have fewer than the others.
    """
    return min(batch_size, train_images - index * batch_size)


def steps_of_epoch(train_images: int, batch_size: int, drop_last: bool) -> list[int]:
    """Return the number of images in every step of an epoch, summed over processes."""
    images = [images_of_step(index, train_images, batch_size) for index in range(-(-train_images // batch_size))]
    return [count for count in images if count == batch_size or not drop_last]
