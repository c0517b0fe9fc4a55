"""A training ends after the epoch that reaches the target accuracy, in both loops and in all processes at once."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from study.artifacts.samples import Measurement, Target
from study.training.loops.fastai import loop as fastai_loop
from study.training.loops.torch import loop as torch_loop
from tests.conftest import PlantedClock
from tests.unit.training.gloo_ranks import train_together
from tests.unit.training.test_distributed import draw, run_of
from tests.unit.training.test_loops import LOOPS, make_job, transfer_run

LOOP = pytest.mark.parametrize("loop", ["torch", "fastai"])


def plant(monkeypatch: pytest.MonkeyPatch, clock: PlantedClock, accuracies: Sequence[float]) -> None:
    """Plant the accuracy of each epoch, in both loops; each validation takes ten seconds of the planted clock."""
    stock, planted = torch_loop.Trainer.validate, iter(accuracies)

    def accuracy() -> float:
        clock.pass_by(10.0)
        return next(planted)

    monkeypatch.setattr(
        torch_loop.Trainer,
        "validate",
        lambda self, losses: dataclasses.replace(stock(self, losses), accuracy=accuracy()),
    )
    monkeypatch.setattr(fastai_loop, "error_rate", lambda predicted, labels: torch.tensor(1 - accuracy()))


def trained(folder: Path, loop: str, target: float | None) -> Measurement:
    """A training of a frozen epoch and three others, whose validation has four images: one batch."""
    return LOOPS[loop](make_job(folder, transfer_run(loop, training={"epochs": 3, "target_accuracy": target})))


@LOOP
@pytest.mark.parametrize(("target", "epochs"), [(0.25, 1), (0.5, 2), (0.75, 3)])
def test_training_ends_after_the_first_epoch_that_reaches_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: PlantedClock, loop: str, target: float, epochs: int
) -> None:
    """Also after the frozen epoch, where fastai's ``fine_tune`` begins a second fit."""
    plant(monkeypatch, clock, [0.25, 0.5, 0.75, 0.25])
    measured = trained(tmp_path, loop, target)
    assert measured.target == Target(reached=True, epochs=epochs, seconds=10.0 * epochs)
    assert [epoch.accuracy for epoch in measured.epochs] == [0.25, 0.5, 0.75][:epochs]
    assert {step.epoch for step in measured.steps} == set(range(1, epochs + 1))


@LOOP
def test_a_training_that_does_not_reach_it_trains_all_epochs_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: PlantedClock, loop: str
) -> None:
    plant(monkeypatch, clock, [0.25, 0.5, 0.75, 0.25])
    measured = trained(tmp_path, loop, 1.0)
    assert measured.target == Target(reached=False)
    assert len(measured.epochs) == 4


@LOOP
def test_without_a_target_an_accuracy_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: PlantedClock, loop: str
) -> None:
    plant(monkeypatch, clock, [1.0, 1.0, 1.0, 1.0])
    measured = trained(tmp_path, loop, None)
    assert measured.target is None
    assert len(measured.epochs) == 4


@LOOP
def test_several_processes_end_at_once(tmp_path: Path, loop: str) -> None:
    """A process that went on alone would wait for the others until their connection is given up."""
    loader = {"kind": "workers", "workers": 0}
    run = run_of({"loop": loop, "epochs": 4, "target_accuracy": 0.01}, loader, 2)
    draw(run, tmp_path)
    first, second = (len(rank["measured"].epochs) for rank in train_together(run, tmp_path, 2))
    assert first == second < 4
