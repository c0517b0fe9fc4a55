"""Loaders of the torch loop: worker processes that decode images, or tensors that already lie on the device."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, Sampler
from torch.utils.data import Dataset as TorchDataset

from study.base.cpus import usable_cpus
from study.config.settings import Settings
from study.data.decode import ImageSet, decode
from study.training.loops.sharding import Share, images_of_step, steps_of_epoch

Batch = tuple[torch.Tensor, torch.Tensor]


def workers_of(settings: Settings) -> int:
    """Return the number of worker processes of a replica's loader.

    ``auto`` is fastai's own default: one per CPU and at most sixteen, divided among the replicas.
    """
    if settings.loader.workers != "auto":
        return settings.loader.workers
    return max(1, min(16, usable_cpus()) // settings.training.replicas)


@dataclass(frozen=True)
class Loaders:
    """Batches of uint8 images (n, channels, size, size) and int64 labels (n,): this process's share of each."""

    train: Iterable[Batch]
    """Training batches; with gradient accumulation the batches of a step follow one another."""
    valid: Iterable[Batch]
    train_steps: int
    train_images: int
    """Number of images in the training set, those of the last partial step included."""
    batch_size: int
    """Number of images in a full batch, summed over processes."""
    accumulated: int
    """Number of batches in a full step."""
    workers: int

    def images_of_step(self, index: int) -> int:
        """Return the number of images in step ``index`` (from 0) of an epoch, summed over processes.

        The last step may have fewer than the others.
        """
        return images_of_step(index, self.train_images, self.batch_size * self.accumulated)

    def batches_of_step(self, index: int) -> int:
        """Return the number of batches in step ``index`` (from 0) of an epoch."""
        return -(-self.images_of_step(index) // self.batch_size)


def make_loaders(
    images: ImageSet, settings: Settings, device: torch.device, seed: int, share: Share = Share()
) -> Loaders:
    """Return loaders for both splits.

    With ``loader.kind: device`` every image is decoded here, before any clock starts. With several processes each draws
    the same batches and takes its share of them.
    """
    training, size, own = settings.training, settings.training.global_batch_size, settings.training.replica_batch_size
    parts, valid_images = training.gradient_accumulation, share.of(images.valid)
    whole = size * parts
    steps = len(steps_of_epoch(len(images.train), whole, training.drop_last))
    generator = torch.Generator().manual_seed(seed)
    if settings.loader.kind == "device":
        train = ResidentLoader(images, images.train, settings, device, size, generator, share)
        valid = ResidentLoader(images, valid_images, settings, device, own, None)
        return Loaders(train, valid, steps, len(images.train), size, parts, 0)
    workers = workers_of(settings)
    options = _options(settings, workers, device)
    decoded = Decoded(images, images.train, settings)
    whole_steps = BatchSampler(RandomSampler(decoded, generator=generator), whole, training.drop_last)
    train_loader: DataLoader[Batch] = DataLoader(
        decoded, batch_sampler=MicroBatches(whole_steps, size, share), generator=generator, **options
    )
    valid_loader: DataLoader[Batch] = DataLoader(Decoded(images, valid_images, settings), batch_size=own, **options)
    return Loaders(train_loader, valid_loader, steps, len(images.train), size, parts, workers)


def _options(settings: Settings, workers: int, device: torch.device) -> dict[str, Any]:
    """Return the loader options that both splits share."""
    loader = settings.loader
    return {
        "num_workers": workers,
        "pin_memory": device.type == "cuda" if loader.pin_memory == "auto" else loader.pin_memory,
        "prefetch_factor": loader.prefetch_factor,
        "persistent_workers": loader.persistent_workers,
    }


class MicroBatches(Sampler[list[int]]):
    """A process's shares of micro-batches: each batch of a sampler is cut into parts of ``size`` images.

    The last part of a batch may hold fewer.
    """

    def __init__(self, batches: BatchSampler, size: int, share: Share = Share()) -> None:
        self.batches, self.size, self.share = batches, size, share

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.batches:
            for start in range(0, len(batch), self.size):
                yield self.share.of(batch[start : start + self.size])


class Decoded(TorchDataset[Any]):
    """One split as a dataset, whose images are decoded on each access."""

    def __init__(self, images: ImageSet, indices: list[int], settings: Settings) -> None:
        self.images, self.indices = images, indices
        self.channels, self.size = settings.dataset.channels, settings.dataset.image_size

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """Return image ``index`` of the split, a tensor (channels, size, size) uint8, and its class number."""
        number = self.indices[index]
        return torch.from_numpy(decode(self.images.stored[number], self.channels, self.size)), self.images.labels[
            number
        ]


class ResidentLoader:
    """Batches (n, channels, size, size) uint8 and labels (n,) int64, cut from one tensor on the device.

    They are shuffled anew in each epoch if a generator is given. With several processes each holds all images, because
    every batch draws from all of them, and yields its share.
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
        # With drop_last the training set gives whole steps only: `gradient_accumulation` full batches each.
        self.unit = batch_size * settings.training.gradient_accumulation
        self.drop_last = settings.training.drop_last and generator is not None

    def __iter__(self) -> Iterator[Batch]:
        count = len(self.labels)
        if self.generator is None:
            order = torch.arange(count, device=self.images.device)
        else:
            order = torch.randperm(count, generator=self.generator).to(self.images.device)
        stop = count - count % self.unit if self.drop_last else count
        for start in range(0, stop, self.batch_size):
            chosen = self.share.of(order[start : min(start + self.batch_size, stop)])
            yield self.images[chosen], self.labels[chosen]
