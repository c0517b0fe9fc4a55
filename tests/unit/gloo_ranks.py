"""Ranks for tests, forked from a server that has imported torch once: a process that imports it takes seconds."""

import multiprocessing
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from study import models
from study.data.images import open_set
from study.data.manifest import read_manifest
from study.measure.samples import Measurement
from study.plan import Run
from study.train import fastai_loop, torch_loop
from study.train.replicas import Replicas
from study.train.schedule import TrainingJob

LOOPS: dict[str, Callable[[TrainingJob], Measurement]] = {"torch": torch_loop.train, "fastai": fastai_loop.train}
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tests.unit.gloo_ranks"])
DEADLINE_SECONDS = 300


def train_together(run: Run, folder: Path, count: int) -> list[dict[str, Any]]:
    """What every one of ``count`` processes measured of ``run``, and the weights that it ended with, by rank; without
    a group where it is one."""
    with tempfile.TemporaryDirectory(dir=folder) as meeting:
        ranks = [SERVER.Process(target=_rank, args=(run, folder, Path(meeting), rank, count)) for rank in range(count)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join(DEADLINE_SECONDS)
            process.kill()
        return [torch.load(Path(meeting) / str(rank), weights_only=False) for rank in range(count)]


def _rank(run: Run, folder: Path, meeting: Path, rank: int, count: int) -> None:
    torch.set_num_threads(1)
    together = count > 1
    if together:
        os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(count)}  # fastai looks there
        torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}/store", rank=rank, world_size=count)
    models_built: list[torch.nn.Module] = []
    build = models.build

    def kept(*arguments: Any, **names: Any) -> torch.nn.Module:
        models_built.append(build(*arguments, **names))
        return models_built[-1]

    models.build = kept
    measured = LOOPS[run.settings.training.loop](_job(run, folder, Replicas(rank, count, together)))
    torch.save({"measured": measured, "weights": models_built[0].state_dict()}, meeting / str(rank))
    if together:
        torch.distributed.destroy_process_group()


def _job(run: Run, folder: Path, replicas: Replicas) -> TrainingJob:
    target = folder / run.dataset
    settings = run.settings
    return TrainingJob(
        settings=settings,
        images=open_set(read_manifest(target / "manifest.json"), settings.dataset, target, folder),
        weights=models.decide(
            settings.model.name, "none", settings.seed, folder, classes=2, channels=settings.dataset.channels
        ),
        state=None,
        device=torch.device("cpu"),
        seed=3,
        progress=lambda done, total, words: None,
        replicas=replicas,
    )
