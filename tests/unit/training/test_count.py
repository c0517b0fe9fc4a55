"""Images are counted as they are trained on: a loader that repeats or leaves out images fails the run."""

from collections.abc import Callable, Iterable
from itertools import cycle
from pathlib import Path

import fastai.data.load
import pytest

from study.base.errors import StudyError
from study.training.loops.loaders import MicroBatches
from study.training.loops.replicas import ImageCount
from study.training.loops.torch import loop as torch_loop
from tests.unit.training.gloo_ranks import LOOPS
from tests.unit.training.test_loops import make_job, tiny_run

Batches = list[list[int]]
Change = Callable[[Batches], Iterable[list[int]]]


def plant(monkeypatch: pytest.MonkeyPatch, change: Change) -> None:
    """Let the torch loop's sampler give other batches than it should."""
    stock = MicroBatches.__iter__
    monkeypatch.setattr(MicroBatches, "__iter__", lambda self: iter(change(list(stock(self)))))


@pytest.mark.parametrize(
    ("change", "training", "words"),
    [
        (lambda steps: [[*step, step[0]] for step in steps], {}, "epoch 1 trained on 14 images in place of the 12 of"),
        (lambda steps: [step[1:] for step in steps], {}, "epoch 1 trained on 10 images in place of the 12 of"),
        (cycle, {}, "epoch 1: the loader gave more than the 2 steps of the plan"),
        (lambda steps: steps[1:], {}, "epoch 1: the loader gave 1 of the 2 steps of the plan"),
        (lambda steps: steps[1:], {"batch_size": 3, "gradient_accumulation": 2}, "the loader gave 1 of the 2 steps"),
    ],
)
def test_a_sampler_that_repeats_or_leaves_out_images_or_a_micro_batch_fails_our_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Change, training: dict[str, int], words: str
) -> None:
    plant(monkeypatch, change)
    with pytest.raises(StudyError, match=words):
        torch_loop.train(make_job(tmp_path, tiny_run("torch", training=training)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda order: [*order, order[0]], "epoch 1 trained on 17 images in place of the 16 of the plan"),
        (lambda order: order[1:], "epoch 1 trained on 15 images in place of the 16 of the plan"),
        (lambda order: order * 2, "epoch 1: the loader gave more than the 3 steps of the plan"),
        (lambda order: order[:12], "epoch 1: the loader gave 2 of the 3 steps of the plan"),
    ],
)
def test_a_loader_that_repeats_or_leaves_out_images_fails_fastai(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[list[int]], list[int]], words: str
) -> None:
    loader = fastai.data.load.DataLoader
    stock = loader.get_idxs
    monkeypatch.setattr(loader, "get_idxs", lambda self: change(stock(self)) if self.shuffle else stock(self))
    with pytest.raises(StudyError, match=words):
        LOOPS["fastai"](make_job(tmp_path, tiny_run("fastai", training={"drop_last": False})))


@pytest.mark.parametrize(("change", "images"), [(lambda step: [*step, step[0]], 7), (lambda step: step[1:], 5)])
def test_the_images_of_a_step_of_one_process_are_those_that_it_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[list[int]], list[int]], images: int
) -> None:
    plant(monkeypatch, lambda steps: map(change, steps))
    monkeypatch.setattr(ImageCount, "check", lambda self: sum(self.epochs))
    measured = torch_loop.train(make_job(tmp_path, tiny_run("torch")))
    assert [step.images for step in measured.steps] == [images] * 4
    assert [epoch.images for epoch in measured.epochs] == [2 * images] * 2
    assert measured.replicas == []
