"""Loaders of the torch loop: worker processes or threads that decode images, or tensors that lie on
the device."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch.utils.data import DataLoader, Sampler
from torch.utils.data import Dataset as TorchDataset

from study.base.devices import usable_cpus
from study.config.settings import Settings
from study.data.decode import ImageSet
from study.training.loops.decoding import begin, decoder_of, shape_of
from study.training.loops.replicas import Share, planned_steps

Batch = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Loaders:
    """Batches of uint8 images (n, channels, size, size) and int64 labels (n,): this process's share
    of each."""

    train: Iterable[Batch]
    """Training batches; with gradient accumulation the batches of a step follow one another."""
    valid: Iterable[Batch]
    workers: int
    ready: Callable[[], object] = lambda: None
    """Waits until images that are decoded beforehand are on the device. Call it before a clock
    starts."""


def make_loaders(
    images: ImageSet, settings: Settings, device: torch.device, seed: int, share: Share = Share()
) -> Loaders:
    """Return loaders for both splits.

    With ``loader.kind: device`` other processes begin to decode every image, and ``ready`` of the
    result waits for them. With several processes that train each draws the same batches and takes
    its share of them.
    """
    own, valid_images = settings.training.replica_batch_size, share.of(images.valid)
    generator, count = torch.Generator().manual_seed(seed), len(images.train)
    trained = sum(planned_steps(settings, count))
    micro_batches = MicroBatches(
        count, settings.training.global_batch_size, trained, generator, share
    )
    in_order = MicroBatches(len(valid_images), own)
    if settings.loader.kind == "device":
        pixels, labels = hold(images, [*images.train, *valid_images], settings, device)
        resident = ResidentLoader(lambda: pixels()[:count], labels[:count], micro_batches)
        resident_valid = ResidentLoader(lambda: pixels()[count:], labels[count:], in_order)
        return Loaders(resident, resident_valid, 0, pixels)
    workers = settings.loader.workers_on(usable_cpus(), settings.training.replicas)
    pinned = device.type == "cuda" and bool(settings.loader.pin_memory)  # page-locked memory
    decoded = Decoded(images, images.train, settings)
    decoded_valid = Decoded(images, valid_images, settings)
    if settings.loader.kind == "threads":
        ahead = settings.loader.batches_ahead
        train: Iterable[Batch] = ThreadedLoader(decoded, micro_batches, workers, ahead, pinned)
        valid: Iterable[Batch] = ThreadedLoader(decoded_valid, in_order, workers, ahead, pinned)
    else:
        options: dict[str, Any] = {
            "num_workers": workers,
            "pin_memory": pinned,
            "prefetch_factor": settings.loader.prefetch_factor,
            "persistent_workers": settings.loader.persistent_workers,
            # The workers' own seeds are drawn from another generator, so that every kind of loader
            # shuffles alike.
            "generator": torch.Generator().manual_seed(seed),
        }
        train = DataLoader(decoded, batch_sampler=micro_batches, **options)
        valid = DataLoader(decoded_valid, batch_size=own, **options)
    return Loaders(train, valid, workers)


class MicroBatches(Sampler[list[int]]):
    """A process's shares of batches of ``size``, the last of which may hold fewer, of the numbers
    below ``count``.

    They are in a new order in each epoch if a generator is given, and the first ``used`` of that
    order count. torch's own ``RandomSampler`` draws a second order that it does not use, and then
    goes on from another state.
    """

    def __init__(
        self,
        count: int,
        size: int,
        used: int | None = None,
        generator: torch.Generator | None = None,
        share: Share = Share(),
    ) -> None:
        self.count, self.size, self.used = count, size, count if used is None else used
        self.generator, self.share = generator, share

    def __iter__(self) -> Iterator[list[int]]:
        yield from self.cut(self.order().tolist())

    def order(self, device: torch.device | str = "cpu") -> torch.Tensor:
        """Return the numbers of an epoch in their order, a tensor (count,) int64 on ``device``."""
        if self.generator is None:
            return torch.arange(self.count, device=device)
        return torch.randperm(self.count, generator=self.generator).to(device)

    def cut(self, order: Any) -> Iterator[Any]:
        """Yield this process's share of each batch of an order, a list or a tensor."""
        for start in range(0, self.used, self.size):
            yield self.share.of(order[start : min(start + self.size, self.used)])


class Decoded(TorchDataset[Any]):
    """One split as a dataset, whose images are decoded on each access."""

    def __init__(self, images: ImageSet, indices: list[int], settings: Settings) -> None:
        self.images, self.indices = images, indices
        self.shape, self.decode = shape_of(settings), decoder_of(settings)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """Return image ``index`` of the split, a tensor (channels, size, size) uint8, and its class
        number."""
        return self.image(index), self.label(index)

    def image(self, index: int) -> torch.Tensor:
        """Return image ``index`` of the split, a tensor (channels, size, size) uint8."""
        return torch.from_numpy(self.decode(self.images.stored[self.indices[index]]))

    def label(self, index: int) -> int:
        """Return the class number of image ``index`` of the split."""
        return self.images.labels[self.indices[index]]


class ThreadedLoader:
    """Batches (n, channels, size, size) uint8 and labels (n,) int64 that ``threads`` threads
    decode, ``ahead`` batches beforehand.

    Pillow decodes outside Python's lock, so that threads decode at once. The images of a batch are
    shared out, so that the first batch is there as soon as all threads together can decode it.
    """

    def __init__(
        self,
        decoded: "Decoded",
        batches: Iterable[list[int]],
        threads: int,
        ahead: int,
        pinned: bool,
    ) -> None:
        self.decoded, self.batches, self.ahead, self.pinned = decoded, batches, ahead, pinned
        self.pool = ThreadPoolExecutor(threads)

    def __iter__(self) -> Iterator[Batch]:
        coming: deque[tuple[torch.Tensor, torch.Tensor, list[Future[None]]]] = deque()
        for batch in chain(self.batches, [None] * self.ahead):
            if batch is not None:
                coming.append(self._begin(batch))
            if coming and (batch is None or len(coming) > self.ahead):
                images, labels, parts = coming.popleft()
                for part in parts:
                    part.result()
                yield images, labels

    def _begin(self, chosen: list[int]) -> tuple[torch.Tensor, torch.Tensor, list[Future[None]]]:
        """Return a batch, and the parts of the work that fill it."""
        images = torch.empty(
            (len(chosen), *self.decoded.shape), dtype=torch.uint8, pin_memory=self.pinned
        )
        labels = torch.tensor([self.decoded.label(index) for index in chosen], dtype=torch.int64)
        return (
            images,
            labels.pin_memory() if self.pinned else labels,
            [self.pool.submit(self._fill, images[row], index) for row, index in enumerate(chosen)],
        )

    def _fill(self, row: torch.Tensor, index: int) -> None:
        row.copy_(self.decoded.image(index))


def hold(
    images: ImageSet, indices: list[int], settings: Settings, device: torch.device
) -> tuple[Callable[[], torch.Tensor], torch.Tensor]:
    """Begin to decode the images ``indices``.

    Return what waits for them, a tensor (n, channels, size, size) uint8 on the device, and their
    labels (n,) int64.
    """
    pixels = begin([images.stored[index] for index in indices], settings, device)
    return pixels, torch.tensor([images.labels[index] for index in indices], device=device)


class ResidentLoader:
    """Batches (n, channels, size, size) uint8 and labels (n,) int64, cut from one tensor on the
    device.

    With several processes each holds all images, because every batch draws from all of them, and
    yields its share.
    """

    def __init__(
        self, pixels: Callable[[], torch.Tensor], labels: torch.Tensor, batches: MicroBatches
    ) -> None:
        self.pixels, self.labels, self.batches = pixels, labels, batches

    def __iter__(self) -> Iterator[Batch]:
        pixels = self.pixels()
        for chosen in self.batches.cut(self.batches.order(pixels.device)):
            yield pixels[chosen], self.labels[chosen]
