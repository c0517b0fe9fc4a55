"""Several processes in fastai's fit: each takes its share of every batch, and gradients are
averaged.

This module does not use ``fastai.distributed``. That loader divides the epoch among the processes
first, so that their common steps hold other images than the steps of one process; it repeats
images, and moves its order through a GPU, which a run on a CPU lacks. The remaining part is torch's
``DistributedDataParallel`` around the model. It is here too, and needs no ``accelerate``.
"""

from typing import Any

from fastai.callback.core import Callback
from fastai.data.core import TfmdDL
from fastai.torch_core import to_detach
from torch import nn

from study.config.settings import Settings
from study.training.loops.replicas import Replicas, planned_steps


def replica_loader(replicas: Replicas, settings: Settings) -> type[Any]:
    """Return a subclass of fastai's loader that draws the stock order and loads this process's
    share of each batch."""
    share, size = replicas.share, settings.training.global_batch_size

    class ReplicaDL(TfmdDL):
        """Batches of a replica's size: shards of the common batches when training, otherwise of the
        whole set."""

        def get_idxs(self) -> list[int]:
            everything = list(super().get_idxs())
            if not self.shuffle:
                return list(share.of(everything))
            stop = len(everything) - (len(everything) % size if self.drop_last else 0)
            own = list[int]()
            for start in range(0, stop, size):
                own += share.of(everything[start : min(start + size, stop)])
            return own

        def __len__(self) -> int:
            count, batch = (
                (self.n, size) if self.shuffle else (len(share.of(range(self.n))), self.bs)
            )
            return int(count // batch if self.drop_last else -(-count // batch))

        def to_detach(self, values: Any, cpu: bool = True, gather: bool = True) -> Any:
            """Return metrics of this process alone; Measure adds them up.

            Shares may differ in their number of batches, so fastai cannot gather them.
            """
            return to_detach(values, cpu, False)

    return ReplicaDL


class Together(Callback):
    """Wraps the model while it trains: after fastai has moved it to its device, and before anything
    is measured."""

    order = 5

    def __init__(self, replicas: Replicas, settings: Settings, train_images: int) -> None:
        self.replicas, self.planned = replicas, planned_steps(settings, train_images)
        self.wrapped: nn.Module | None = None

    def before_fit(self) -> None:
        """Wrap the model. Parameters that are frozen by now are not exchanged."""
        self.learn.model = self.wrapped = self.replicas.wrap(self.learn.model)

    def before_backward(self) -> None:
        """Weight the gradient by this process's share of the batch: an epoch's last one may not
        divide evenly."""
        weight = self.replicas.weight(len(self.learn.yb[0]), self.planned[self.learn.iter])
        if weight != 1:
            self.learn.loss_grad = self.learn.loss_grad * weight

    def before_validate(self) -> None:
        """Unwrap the model: the processes' shares may differ in their number of batches."""
        self._unwrap()
        self.replicas.agree(self.learn.model)

    def after_validate(self) -> None:
        """Wrap the model again for training."""
        self.learn.model = self.wrapped

    def after_fit(self) -> None:
        """Give the learner its own model back."""
        self._unwrap()

    def _unwrap(self) -> None:
        self.learn.model = getattr(self.learn.model, "module", self.learn.model)
