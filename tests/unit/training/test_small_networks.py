"""The documents' networks in both loops, and the keys that their jobs need."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from fastai.callback.core import Callback

from study.artifacts.run import Run
from study.artifacts.samples import Measurement
from study.config.sections import Training
from study.training.loops.fastai import loop as fastai_loop
from study.training.loops.loaders import make_loaders
from study.training.loops.schedule import stages
from study.training.loops.torch import loop as torch_loop
from study.training.loops.torch.optimizer import make_optimizer
from study.training.models import build as models
from tests.conftest import MNIST_CNN
from tests.unit.training.gloo_ranks import LOOPS
from tests.unit.training.test_loops import make_job, tiny_run

LENET = "replications.cifar10_project.networks:lenet_cifar"
HALVED = {"learning_rate": 0.02, "learning_rate_rule": "linear", "reference_batch_size": 24}
"""A rule that makes the rate 0.01 with batches of 12."""


def small_run(loop: str = "torch", **changes: Any) -> Run:
    """A LeNet on 100 drawn images of CIFAR-10's shape, 80 of them to train on."""
    values: dict[str, Any] = {
        "dataset": {"images": 100, "channels": 3, "image_size": 32},
        "model": {"name": LENET, "weights": "none"},
    }
    training = {"freeze_epochs": 0, "epochs": 2, "batch_size": 12} | changes.pop("training", {})
    return tiny_run(loop, training=training, **(values | changes))


def losses(measured: Measurement) -> list[float | None]:
    return [value for epoch in measured.epochs for value in (epoch.train_loss, epoch.loss_sum, epoch.valid_loss)]


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("kind", ["workers", "device"])
def test_accumulation_over_k_micro_batches_is_one_step_of_k_times_the_batch(
    tmp_path: Path, kind: str, drop_last: bool, optimizer: str
) -> None:
    """80 images in steps of 24: without drop_last the last one holds 8, in micro-batches of 6 and 2."""
    measured = []
    for size, parts in ((24, 1), (6, 4)):
        training = {"batch_size": size, "gradient_accumulation": parts, "drop_last": drop_last, "optimizer": optimizer}
        training |= {"learning_rate": 0.02 if optimizer == "sgd" else 1e-3}
        run = small_run(training=training, loader={"kind": kind, "workers": 0})
        measured.append(torch_loop.train(make_job(tmp_path, run)))
    whole, accumulated = measured
    assert losses(accumulated) == pytest.approx(losses(whole), rel=1e-5)
    assert [step.images for step in accumulated.steps] == [step.images for step in whole.steps]
    assert [step.images for step in whole.steps] == ([24] * 3 if drop_last else [24, 24, 24, 8]) * 2
    assert (whole.epochs[0].train_loss or 0) > (whole.epochs[1].train_loss or 0), "nothing was learned"


def test_validation_at_the_end_is_one_pass_after_the_last_epoch(tmp_path: Path) -> None:
    measured = torch_loop.train(make_job(tmp_path, small_run(training={"validation": "end", "epochs": 3})))
    found = [(epoch.valid_seconds > 0, epoch.accuracy is not None) for epoch in measured.epochs]
    assert found == [(False, False), (False, False), (True, True)]


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_the_sum_of_the_losses_is_over_steps_and_their_mean_over_images(tmp_path: Path, loop: str) -> None:
    epoch = LOOPS[loop](make_job(tmp_path, small_run(loop))).epochs[0]
    assert epoch.steps == 6
    assert epoch.loss_sum == pytest.approx(6 * (epoch.train_loss or 0), rel=1e-5)


@pytest.mark.parametrize(
    ("schedule", "course"),
    [
        ("constant", [1.0] * 6),
        ("step", [1.0, 1.0, 0.1, 0.1, 0.01, 0.01]),
        ("cosine", [(1 + math.cos(math.pi * part / 6)) / 2 for part in range(6)]),
    ],
)
def test_a_schedule_sets_the_rate_of_every_layer(tmp_path: Path, schedule: str, course: list[float]) -> None:
    job = make_job(tmp_path, small_run(training={"schedule": schedule, "epochs": 1} | HALVED))
    (stage,) = stages(job.settings, 3)
    assert [stage.rates(part / 6) for part in range(6)] == [pytest.approx((0.01 * factor,) * 3) for factor in course]
    assert stage.momentum(0.5) is None
    seen = []
    trainer = torch_loop.Trainer(job, make_loaders(job.images, job.settings, job.device, 1))
    trainer.optimizer.register_step_pre_hook(lambda optimizer, *_: seen.append(optimizer.param_groups[0]["lr"]))
    trainer.train_epoch(stage, 0, 1)
    assert seen == pytest.approx([0.01 * factor for factor in course])


def test_the_step_schedule_divides_after_whole_thirds_whatever_rounding_does() -> None:
    (stage,) = stages(small_run(training={"schedule": "step", "epochs": 1, "learning_rate": 1.0}).settings, 1)
    assert [round(stage.rates(step / 9)[0], 6) for step in range(9)] == [1, 1, 1, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01]


@pytest.mark.parametrize(
    ("optimizer", "kind", "constants"),
    [
        ("adamw", torch.optim.AdamW, {"betas": (0.9, 0.99), "eps": 1e-5}),
        ("adam", torch.optim.Adam, {"betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0}),
        ("sgd", torch.optim.SGD, {"momentum": 0.9, "weight_decay": 0.0}),
    ],
)
def test_each_optimizer_has_its_own_constants(optimizer: Any, kind: type, constants: dict[str, Any]) -> None:
    model, training = models.build(LENET, classes=10), Training.model_validate({"optimizer": optimizer})
    made = make_optimizer(model, [[name for name, _ in model.named_parameters()]], training)
    assert type(made) is kind
    assert {key: made.param_groups[0][key] for key in constants} == constants


def test_adam_at_a_constant_rate_is_the_loop_that_the_documents_print(tmp_path: Path) -> None:
    """Plain torch on the same batches from the same weights: the same loss at every epoch."""
    training = {"optimizer": "adam", "schedule": "constant", "learning_rate": 1e-3, "drop_last": False}
    job = make_job(tmp_path, small_run(training=training, loader={"kind": "device"}))
    measured = torch_loop.train(job)
    model = models.build(LENET, classes=2, seed=job.settings.seed, head_seed=job.seed)
    optimizer, criterion = torch.optim.Adam(model.parameters(), lr=1e-3), torch.nn.CrossEntropyLoss()
    batches = make_loaders(job.images, job.settings, job.device, job.seed).train
    for epoch in range(2):
        running = 0.0
        for images, labels in batches:
            optimizer.zero_grad()
            loss = criterion(model((images.float() / 255 - 0.5) / 0.5), labels)
            loss.backward()
            optimizer.step()
            running += loss.item()
        assert measured.epochs[epoch].loss_sum == pytest.approx(running, rel=1e-5)


@pytest.mark.parametrize("schedule", ["one_cycle", "constant"])
def test_stock_fastai_trains_a_whole_network_by_its_own_methods(tmp_path: Path, schedule: str) -> None:
    rates: list[float] = []

    class Watch(Callback):  # type: ignore[misc]
        def after_batch(self) -> None:
            if self.training:
                rates.append(round(self.opt.hypers[0]["lr"], 12))

    digits = {"images": 100, "channels": 1, "image_size": 28}
    training = {"schedule": schedule, "epochs": 1} | HALVED
    job = make_job(tmp_path, small_run("fastai", dataset=digits, model=MNIST_CNN, training=training))
    learner = fastai_loop.make_learner(job, fastai_loop.make_dataloaders(job))
    learner.add_cb(Watch())
    fastai_loop.fit(learner, job.settings)
    assert len(rates) == 6
    assert rates == [0.01] * 6 if schedule == "constant" else len(set(rates)) == 6
    assert max(rates) == pytest.approx(0.01, rel=0.1)
    measured = fastai_loop.train(job)
    assert measured.parameters == sum(p.numel() for p in models.build(MNIST_CNN["name"], classes=2).parameters())
    assert measured.body_sha256 == job.weights.body_sha256


def test_the_loaders_options_reach_torchs_loader(tmp_path: Path) -> None:
    options = {"kind": "workers", "workers": 1, "persistent_workers": True, "pin_memory": False}
    job = make_job(tmp_path, small_run(loader=options | {"prefetch_factor": 3}))
    loaders = make_loaders(job.images, job.settings, job.device, 1)
    for loader in (loaders.train, loaders.valid):
        assert isinstance(loader, torch.utils.data.DataLoader)
        assert (loader.persistent_workers, loader.prefetch_factor, loader.pin_memory) == (True, 3, False)
    train = fastai_loop.make_dataloaders(make_job(tmp_path, small_run("fastai", loader=options))).train
    assert (train.fake_l.persistent_workers, train.fake_l.num_workers) == (True, 1)
