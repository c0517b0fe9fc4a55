"""The switches change how fast a step is, and nothing else: each follows the eager fp32 training
from the same seed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from fastai.optimizer import Optimizer

from study.artifacts.samples import Measurement
from study.base.errors import StudyError
from study.training.loops.contract import TrainingJob
from study.training.loops.fastai import loop as fastai_loop
from study.training.loops.torch import loop as torch_loop
from tests.unit.training.test_loops import make_job, transfer_run

SWITCHES: dict[str, tuple[dict[str, Any], float]] = {
    "channels_last": ({"training": {"memory_format": "channels_last"}}, 1e-3),
    "for_loop": ({"training": {"optimizer_implementation": "for_loop"}}, 1e-6),
    "foreach": ({"training": {"optimizer_implementation": "foreach"}}, 1e-3),
    "fused": ({"training": {"optimizer_implementation": "fused"}}, 1e-3),
    "threads": ({"loader": {"kind": "threads", "workers": 2}}, 1e-6),
    "workers": ({"loader": {"kind": "workers", "workers": 1}}, 1e-6),
    "bf16": ({"training": {"precision": "bf16", "memory_format": "channels_last"}}, 3e-2),
}
"""Settings, and how far a loss may lie from the eager one's, in units of the first loss: another
order of sums grows over six steps, and by how much depends on the processor. Compiling
takes 20 s of CPU: ``training.compile`` is compared in ``test_measure``, whose subject is times."""


def losses(folder: Path, **changes: Any) -> list[float]:
    """The loss of every step and validation of a training in two stages, with remainder batches and
    two micro-batches a step."""
    training = {"drop_last": False, "batch_size": 3, "gradient_accumulation": 2}
    training |= {"freeze_epochs": 1, "epochs": 1} | changes.pop("training", {})
    loader = changes.pop("loader", {"kind": "device"})
    found, measured = losses_of(make_job(folder, transfer_run(training=training, loader=loader)))
    return found + [epoch.valid_loss or 0.0 for epoch in measured.epochs]


@contextmanager
def step_losses() -> Iterator[list[float]]:
    """A list that gets the loss of every step of the plain loop."""
    found: list[float] = []
    stock = torch_loop.Trainer.train_epoch

    def told(self: torch_loop.Trainer, *arguments: Any) -> Any:
        result = stock(self, *arguments)
        found.extend(float(loss) for loss, _ in result)
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch_loop.Trainer, "train_epoch", told)
        yield found


def losses_of(job: TrainingJob) -> tuple[list[float], Measurement]:
    """The loss of every step of the plain loop, and what it measured."""
    with step_losses() as found:
        return found, torch_loop.train(job)


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    return losses(tmp_path_factory.mktemp("eager"))


@pytest.mark.xdist_group("the eager losses")
@pytest.mark.parametrize("switch", SWITCHES)
def test_every_switch_follows_the_eager_losses(
    tmp_path: Path, eager: list[float], switch: str
) -> None:
    changes, tolerance = SWITCHES[switch]
    found = losses(tmp_path, **{key: dict(value) for key, value in changes.items()})
    assert len(set(eager)) == len(eager) == 6 + 2
    assert found == pytest.approx(eager, abs=tolerance * eager[0])


def test_an_image_that_no_thread_can_decode_ends_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(tmp_path, transfer_run(loader={"kind": "threads", "workers": 2}))
    monkeypatch.setattr("study.training.loops.decoding.decode", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        torch_loop.train(job)


def test_a_training_whose_weights_did_not_move_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A captured graph that casts its weights once trains on, and changes nothing: it is fast, and
    worth nothing."""
    monkeypatch.setattr(
        torch_loop.Trainer, "update", lambda trainer: trainer.recorder.mark("optimizer")
    )
    job = make_job(tmp_path, transfer_run())
    with pytest.raises(StudyError, match=r"no weight from .* has moved"):
        torch_loop.train(job)


@pytest.mark.parametrize("still", [slice(None), slice(1)])
def test_a_group_of_fastais_that_did_not_move_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, still: slice
) -> None:
    """The optimizer forgets all groups of layers, or the first of the three."""
    stock = Optimizer.step

    def forgetful(self: Optimizer) -> None:
        kept = [
            (weight, weight.detach().clone())
            for group in self.param_lists[still]
            for weight in group
        ]
        stock(self)
        with torch.no_grad():
            for weight, value in kept:
                weight.copy_(value)

    monkeypatch.setattr(Optimizer, "step", forgetful)
    with pytest.raises(StudyError, match=r"no weight from 0\.0\.weight to .* has moved"):
        fastai_loop.train(
            make_job(tmp_path, transfer_run("fastai", training={"freeze_epochs": 1, "epochs": 1}))
        )
