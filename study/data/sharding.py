"""How the processes of a distributed run share each batch: every batch holds the images that one process's would.

Not torch's ``DistributedSampler``: it deals the whole epoch out first, so that a step of all processes together holds
other images than the step of one process, and it repeats images until every process has the same number. Here the
batches are one process's, and each is cut into shards: the work is equal, and no image counts twice.
"""

from dataclasses import dataclass
from typing import Any, Literal

Sharding = Literal["contiguous", "strided"]


@dataclass(frozen=True)
class Share:
    """The part of every batch that process ``rank`` of ``replicas`` trains on; all of it where there is but one."""

    rank: int = 0
    replicas: int = 1
    sharding: Sharding = "contiguous"

    def of(self, batch: Any) -> Any:
        """This process's shard of a list or a tensor. Shards differ by one image at most, and none overlap."""
        if self.replicas == 1:
            return batch
        if self.sharding == "strided":
            return batch[self.rank :: self.replicas]
        return batch[self.rank * len(batch) // self.replicas : (self.rank + 1) * len(batch) // self.replicas]


def images_of_step(index: int, train_images: int, batch_size: int) -> int:
    """Images of an epoch's step ``index``, from 0, of all processes together: the last batch may hold fewer."""
    return min(batch_size, train_images - index * batch_size)


def steps_of_epoch(train_images: int, batch_size: int, drop_last: bool) -> list[int]:
    """Images of every step of an epoch, of all processes together."""
    images = [images_of_step(index, train_images, batch_size) for index in range(-(-train_images // batch_size))]
    return [count for count in images if count == batch_size or not drop_last]
