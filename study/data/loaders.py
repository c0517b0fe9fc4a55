"""How decoded images reach the torch loop: worker processes, or tensors that already lie on the device."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler
from torch.utils.data import Dataset as TorchDataset

from study.config import Settings
from study.cpus import usable_cpus
from study.data.images import ImageSet, decode
from study.data.sharding import ShardedBatches, Share

Batch = tuple[torch.Tensor, torch.Tensor]


def workers_of(settings: Settings) -> int:
    """Worker processes of a replica's loader. ``auto`` is fastai's own default, one a CPU and sixteen at most, of all
    replicas together."""
    if settings.loader.workers != "auto":
        return settings.loader.workers
    return max(1, min(16, usable_cpus()) // settings.training.replicas)


@dataclass(frozen=True)
class Loaders:
    """Batches of uint8 images (n, channels, size, size) and int64 labels (n,): one process's share of each."""

    train: Iterable[Batch]
    valid: Iterable[Batch]
    train_steps: int
    workers: int


def make_loaders(
    images: ImageSet, settings: Settings, device: torch.device, seed: int, share: Share = Share()
) -> Loaders:
    """Loaders for both splits. With ``loader.kind: device`` every image is decoded here, before any clock.

    Of many processes each draws the same batches and takes its share of them.
    """
    size = settings.training.global_batch_size
    full, rest = divmod(len(images.train), size)
    steps = full if settings.training.drop_last else full + bool(rest)
    generator = torch.Generator().manual_seed(seed)
    own = settings.training.replica_batch_size
    valid_images = share.of(images.valid)
    if settings.loader.kind == "device":
        train = ResidentLoader(images, images.train, settings, device, size, generator, share)
        valid = ResidentLoader(images, valid_images, settings, device, own, None)
        return Loaders(train, valid, steps, 0)
    workers, pin = workers_of(settings), device.type == "cuda"
    decoded = Decoded(images, images.train, settings)
    batches = BatchSampler(RandomSampler(decoded, generator=generator), size, settings.training.drop_last)
    train_loader: DataLoader[Batch] = DataLoader(
        decoded,
        batch_sampler=ShardedBatches(batches, share),
        num_workers=workers,
        pin_memory=pin,
        generator=generator,
    )
    valid_loader: DataLoader[Batch] = DataLoader(
        Decoded(images, valid_images, settings), batch_size=own, num_workers=workers, pin_memory=pin
    )
    return Loaders(train_loader, valid_loader, steps, workers)


class Decoded(TorchDataset[Any]):
    """Decodes image ``index`` of a split each time it is asked for."""

    def __init__(self, images: ImageSet, indices: list[int], settings: Settings) -> None:
        self.images, self.indices = images, indices
        self.channels, self.size = settings.dataset.channels, settings.dataset.image_size

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        number = self.indices[index]
        return torch.from_numpy(decode(self.images.stored[number], self.channels, self.size)), self.images.labels[
            number
        ]


class ResidentLoader:
    """Batches cut from one tensor on the device; shuffled anew in each epoch where a generator is given.

    Of many processes each holds all images: every batch takes others of them.
    """

    def __init__(
        self,
        images: ImageSet,
        indices: list[int],
        settings: Settings,
        device: torch.device,
        batch_size: int,
        generator: torch.Generator | None,
        share: Share = Share(),
    ) -> None:
        dataset = settings.dataset
        with ThreadPoolExecutor(usable_cpus()) as pool:  # Pillow decodes outside Python's lock
            pixels = pool.map(lambda i: decode(images.stored[i], dataset.channels, dataset.image_size), indices)
            self.images = torch.from_numpy(np.stack(list(pixels))).to(device)
        self.labels = torch.tensor([images.labels[i] for i in indices], device=device)
        self.batch_size, self.generator, self.share = batch_size, generator, share
        self.drop_last = settings.training.drop_last and generator is not None

    def __iter__(self) -> Iterator[Batch]:
        count = len(self.labels)
        if self.generator is None:
            order = torch.arange(count, device=self.images.device)
        else:
            order = torch.randperm(count, generator=self.generator).to(self.images.device)
        stop = count - count % self.batch_size if self.drop_last else count
        for start in range(0, stop, self.batch_size):
            chosen = self.share.of(order[start : min(start + self.batch_size, stop)])
            yield self.images[chosen], self.labels[chosen]
