"""A training ends after the epoch that reaches the target accuracy, in both loops and in all
processes at once."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from study.artifacts.samples import Target
from study.training.loops.fastai import loop as fastai_loop
from study.training.loops.torch import loop as torch_loop
from tests.conftest import PlantedClock
from tests.unit.training.gloo_ranks import LOOPS, draw, train_together
from tests.unit.training.test_distributed import run_of
from tests.unit.training.test_loops import make_job, transfer_run


def plant(
    monkeypatch: pytest.MonkeyPatch, clock: PlantedClock, accuracies: Sequence[float]
) -> None:
    """Plant the accuracy of each epoch, in both loops; each validation takes ten seconds of the
    planted clock."""
    stock, planted = torch_loop.Trainer.validate, iter(accuracies)

    def accuracy() -> float:
        clock.pass_by(10.0)
        return next(planted)

    monkeypatch.setattr(
        torch_loop.Trainer,
        "validate",
        lambda self, losses: dataclasses.replace(stock(self, losses), accuracy=accuracy()),
    )
    monkeypatch.setattr(
        fastai_loop, "error_rate", lambda predicted, labels: torch.tensor(1 - accuracy())
    )


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(
    ("target", "epochs", "told"),
    [
        (0.25, 1, Target(reached=True, epochs=1, seconds=10.0)),
        (0.75, 3, Target(reached=True, epochs=3, seconds=30.0)),
        (0.9, 4, Target(reached=False)),
        (None, 4, None),
    ],
)
def test_training_ends_after_the_first_epoch_that_reaches_the_target_if_one_does(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    clock: PlantedClock,
    loop: str,
    target: float | None,
    epochs: int,
    told: Target | None,
) -> None:
    """One of a frozen epoch and three others, with four images to validate: one batch. Also after
    the frozen epoch, where fastai's ``fine_tune`` begins a second fit."""
    accuracies = [0.25, 0.5, 0.75, 0.5] if target else [1.0] * 4
    plant(monkeypatch, clock, accuracies)
    run = transfer_run(loop, training={"epochs": 3, "target_accuracy": target})
    measured = LOOPS[loop](make_job(tmp_path, run))
    assert measured.target == told
    assert [epoch.accuracy for epoch in measured.epochs] == accuracies[:epochs]
    assert {step.epoch for step in measured.steps} == set(range(1, epochs + 1))


@pytest.mark.parametrize("loop", LOOPS)
def test_several_processes_end_at_once(tmp_path: Path, loop: str) -> None:
    """A process that went on alone would wait for the others until their connection is given up."""
    loader = {"kind": "workers", "workers": 0}
    run = run_of({"loop": loop, "epochs": 4, "target_accuracy": 0.01}, loader, 2)
    draw(run, tmp_path)
    first, second = (len(rank["measured"].epochs) for rank in train_together(run, tmp_path, 2))
    assert first == second < 4
