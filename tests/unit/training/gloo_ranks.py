"""Ranks for tests, forked from a server that has imported torch once: a process that imports it
takes seconds."""

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from study.artifacts.prepared import Manifest
from study.artifacts.run import Run
from study.artifacts.samples import Measurement
from study.base.files import write_whole
from study.data.sources import open_set, source_of
from study.training.loops.contract import TrainingJob
from study.training.loops.fastai import loop as fastai_loop
from study.training.loops.loaders import MicroBatches
from study.training.loops.replicas import Replicas, Share
from study.training.loops.torch import loop as torch_loop
from study.training.models import build as models
from study.training.models import pretrained

LOOPS: dict[str, Callable[[TrainingJob], Measurement]] = {
    "torch": torch_loop.train,
    "fastai": fastai_loop.train,
}
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload([__name__])
DEADLINE_SECONDS = 300


def overlapping_shards() -> None:
    """Plant shards of which each has an image more of every batch than is its own."""
    stock = Share.of
    Share.of = lambda self, batch: [*stock(self, batch), batch[0]]  # type: ignore[method-assign]


def one_batch_less() -> None:
    """Plant a loader that ends early in process 1."""
    stock = MicroBatches.__iter__

    def ended(self: MicroBatches) -> Iterator[list[int]]:
        batches = list(stock(self))
        return iter(batches[: len(batches) - self.share.rank])

    MicroBatches.__iter__ = ended  # type: ignore[method-assign]


def draw(run: Run, folder: Path) -> None:
    """Make the data of the run, with its manifest."""
    manifest = source_of(run.settings.dataset).make(
        run.settings.dataset, folder / run.dataset, folder
    )
    write_whole(folder / run.dataset / "manifest.json", manifest.model_dump_json())


def job_of(run: Run, folder: Path, replicas: Replicas | None = None) -> TrainingJob:
    """What a loop is given of a run whose data were made."""
    target, settings = folder / run.dataset, run.settings
    manifest = Manifest.read(target / "manifest.json")
    shape = {"classes": len(manifest.classes), "channels": settings.dataset.channels}
    return TrainingJob(
        settings=settings,
        images=open_set(manifest, settings.dataset, target, folder),
        weights=pretrained.decide(settings.model.name, "none", settings.seed, folder, **shape),
        state=None,
        device=torch.device("cpu"),
        seed=3,
        progress=lambda done, total, words: None,
        replicas=replicas or Replicas(),
    )


def losses(measured: Measurement) -> list[float | None]:
    """Each epoch's mean and sum of the losses of training, and its loss of validation."""
    return [
        loss
        for epoch in measured.epochs
        for loss in (epoch.train_loss, epoch.loss_sum, epoch.valid_loss)
    ]


def train_together(
    run: Run, folder: Path, count: int, plant: Callable[[], None] | None = None
) -> list[dict[str, Any]]:
    """What every one of ``count`` processes measured of ``run``, and the weights that it ended
    with, by rank, or the error; without a group where it is one. ``plant`` is called in each before
    it trains."""
    with tempfile.TemporaryDirectory(dir=folder) as meeting:
        given = (run, folder, Path(meeting), count, plant)
        ranks = [SERVER.Process(target=_rank, args=(rank, *given)) for rank in range(count)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join(DEADLINE_SECONDS)
            process.kill()
        return [torch.load(Path(meeting) / str(rank), weights_only=False) for rank in range(count)]


def _rank(
    rank: int, run: Run, folder: Path, meeting: Path, count: int, plant: Callable[[], None] | None
) -> None:
    torch.set_num_threads(1)
    together = count > 1
    if together:
        os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(count)}  # fastai looks there
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{meeting}/store", rank=rank, world_size=count
        )
    models_built: list[torch.nn.Module] = []
    build = models.build

    def kept(*arguments: Any, **names: Any) -> torch.nn.Module:
        models_built.append(build(*arguments, **names))
        return models_built[-1]

    models.build = kept
    if plant:
        plant()
    try:
        measured = LOOPS[run.settings.training.loop](
            job_of(run, folder, Replicas(rank, count, together))
        )
    except Exception as error:
        torch.save({"error": str(error)}, meeting / str(rank))
        # as study.training.distributed.rank: leaving the group would wait for the others
        os._exit(1)
    torch.save({"measured": measured, "weights": models_built[0].state_dict()}, meeting / str(rank))
    if together:
        torch.distributed.destroy_process_group()
