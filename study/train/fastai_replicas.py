"""Many processes in fastai's fit: each takes its share of every batch, and gradients are averaged.

Not ``fastai.distributed``: its loader deals the epoch out to the processes first, so that their steps together hold
other images than one process's, repeats images, and moves its order through a GPU, which a run on a CPU has not. What
is left of it is torch's ``DistributedDataParallel`` around the model, which is here too, and needs no ``accelerate``.
"""

from typing import Any

from fastai.callback.core import Callback
from fastai.data.core import TfmdDL
from fastai.torch_core import to_detach
from torch import nn

from study.config import Settings
from study.data.sharding import images_of_step
from study.train.replicas import Replicas


def replica_loader(replicas: Replicas, settings: Settings) -> type[Any]:
    """fastai's loader, which draws the order that it would draw by itself, and loads this process's share of it."""
    share, size = replicas.share(settings), settings.training.global_batch_size

    class ReplicaDL(TfmdDL):
        """Batches of a replica's size: shards of the batches of all when training, else of the whole set."""

        def get_idxs(self) -> list[int]:
            everything = list(super().get_idxs())
            if not self.shuffle:
                return list(share.of(everything))
            stop = len(everything) - (len(everything) % size if self.drop_last else 0)
            return [i for start in range(0, stop, size) for i in share.of(everything[start : min(start + size, stop)])]

        def __len__(self) -> int:
            count, batch = (self.n, size) if self.shuffle else (len(share.of(range(self.n))), self.bs)
            return int(count // batch if self.drop_last else -(-count // batch))

        def to_detach(self, values: Any, cpu: bool = True, gather: bool = True) -> Any:
            """Metrics stay this process's own: shares may differ in their number of batches. Measure adds them up."""
            return to_detach(values, cpu, False)

    return ReplicaDL


class Together(Callback):
    """Wraps the model as long as it trains; after fastai has moved it to its device, before anything is measured."""

    order = 5

    def __init__(self, replicas: Replicas, settings: Settings, train_images: int) -> None:
        self.replicas, self.size, self.train_images = replicas, settings.training.global_batch_size, train_images
        self.wrapped: nn.Module | None = None

    def before_fit(self) -> None:
        """What is frozen by now is not exchanged."""
        self.learn.model = self.wrapped = self.replicas.wrap(self.learn.model)

    def before_backward(self) -> None:
        """An epoch's last batch may not divide evenly."""
        together = images_of_step(self.learn.iter, self.train_images, self.size)
        weight = self.replicas.weight(len(self.learn.yb[0]), together)
        if weight != 1:
            self.learn.loss_grad = self.learn.loss_grad * weight

    def before_validate(self) -> None:
        """Without the wrapper: the processes' shares need not have as many batches."""
        self._unwrap()
        self.replicas.agree(self.learn.model)

    def after_validate(self) -> None:
        """Training goes on."""
        self.learn.model = self.wrapped

    def after_fit(self) -> None:
        """The model is the learner's own again."""
        self._unwrap()

    def _unwrap(self) -> None:
        self.learn.model = getattr(self.learn.model, "module", self.learn.model)
