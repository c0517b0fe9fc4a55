"""How decoded images reach the torch loop: worker processes, or tensors that already lie on the device."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, Sampler
from torch.utils.data import Dataset as TorchDataset

from study.config import Settings
from study.cpus import usable_cpus
from study.data.images import ImageSet, decode

Batch = tuple[torch.Tensor, torch.Tensor]


def auto_workers() -> int:
    """fastai's own default: one a CPU, sixteen at most."""
    return min(16, usable_cpus())


@dataclass(frozen=True)
class Loaders:
    """Batches of uint8 images (n, channels, size, size) and int64 labels (n,)."""

    train: Iterable[Batch]
    """Of a step one after the other, where gradients are accumulated."""
    valid: Iterable[Batch]
    train_steps: int
    train_images: int
    """Images of the training set, the last partial step's included."""
    batch_size: int
    """Images of a full step."""
    workers: int

    def images_of_step(self, index: int) -> int:
        """Images of an epoch's step ``index``, from 0: the last one may hold fewer."""
        return min(self.batch_size, self.train_images - index * self.batch_size)


def make_loaders(images: ImageSet, settings: Settings, device: torch.device, seed: int) -> Loaders:
    """Loaders for both splits. With ``loader.kind: device`` every image is decoded here, before any clock."""
    training, size = settings.training, settings.training.batch_size
    whole = size * training.gradient_accumulation
    full, rest = divmod(len(images.train), whole)
    steps = full if training.drop_last else full + bool(rest)
    generator = torch.Generator().manual_seed(seed)
    if settings.loader.kind == "device":
        train = ResidentLoader(images, images.train, settings, device, size, generator)
        valid = ResidentLoader(images, images.valid, settings, device, size, None)
        return Loaders(train, valid, steps, len(images.train), whole, 0)
    workers = auto_workers() if settings.loader.workers == "auto" else settings.loader.workers
    options = _options(settings, workers, device)
    decoded = Decoded(images, images.train, settings)
    whole_steps = BatchSampler(RandomSampler(decoded, generator=generator), whole, training.drop_last)
    train_loader: DataLoader[Batch] = DataLoader(
        decoded, batch_sampler=MicroBatches(whole_steps, size), generator=generator, **options
    )
    valid_loader: DataLoader[Batch] = DataLoader(Decoded(images, images.valid, settings), batch_size=size, **options)
    return Loaders(train_loader, valid_loader, steps, len(images.train), whole, workers)


def _options(settings: Settings, workers: int, device: torch.device) -> dict[str, Any]:
    """What both splits' loaders have in common."""
    loader = settings.loader
    return {
        "num_workers": workers,
        "pin_memory": device.type == "cuda" if loader.pin_memory == "auto" else loader.pin_memory,
        "prefetch_factor": loader.prefetch_factor,
        "persistent_workers": loader.persistent_workers,
    }


class MicroBatches(Sampler[list[int]]):
    """The batches of a sampler, each cut into micro-batches of ``size`` images; the last one may hold fewer."""

    def __init__(self, batches: BatchSampler, size: int) -> None:
        self.batches, self.size = batches, size

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.batches:
            for start in range(0, len(batch), self.size):
                yield batch[start : start + self.size]


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
    """Batches cut from one tensor on the device; shuffled anew in each epoch where a generator is given."""

    def __init__(
        self,
        images: ImageSet,
        indices: list[int],
        settings: Settings,
        device: torch.device,
        batch_size: int,
        generator: torch.Generator | None,
    ) -> None:
        dataset = settings.dataset
        with ThreadPoolExecutor(usable_cpus()) as pool:  # Pillow decodes outside Python's lock
            pixels = pool.map(lambda i: decode(images.stored[i], dataset.channels, dataset.image_size), indices)
            self.images = torch.from_numpy(np.stack(list(pixels))).to(device)
        self.labels = torch.tensor([images.labels[i] for i in indices], device=device)
        self.batch_size, self.generator = batch_size, generator
        # A training set gives whole steps, of as many batches as gradients are accumulated over.
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
            chosen = order[start : min(start + self.batch_size, stop)]
            yield self.images[chosen], self.labels[chosen]
