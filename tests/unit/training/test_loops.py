"""Two loops, one contract; stock fastai stays stock."""

import contextlib
import io
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import fastai.data.load
import pytest
import torch
from fastai.callback.core import Callback
from fastai.optimizer import Optimizer
from fastai.torch_core import set_seed
from fastai.vision.all import Normalize, error_rate, resnet18, vision_learner

from study.artifacts.run import Run
from study.base.errors import StudyError
from study.data import decode as decoding
from study.training.loops import decoding as loop_decoding
from study.training.loops.contract import TrainingJob
from study.training.loops.fastai import loop as fastai_loop
from study.training.loops.loaders import MicroBatches, make_loaders
from study.training.loops.schedule import stages
from study.training.loops.torch import loop as torch_loop
from study.training.loops.torch.optimizer import layer_groups, set_frozen
from study.training.models import build as models
from tests.conftest import MNIST_CNN, TRANSFER, PlantedClock, tiny_plan
from tests.unit.training.gloo_ranks import LOOPS, draw, job_of, losses


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("images")


def make_job(folder: Path, run: Run) -> TrainingJob:
    draw(run, folder)
    return job_of(run, folder)


def tiny_run(loop: str = "torch", **changes: Any) -> Run:
    """A run of the small network."""
    training = {"loop": loop, "freeze_epochs": 0, "epochs": 2, "batch_size": 6}
    training |= changes.pop("training", {})
    values = {"loader": {"kind": "workers", "workers": 0}, "factors": {}, "curve": None} | changes
    return tiny_plan(training=training, **values).runs[0]


def transfer_run(loop: str = "torch", **changes: Any) -> Run:
    """A run of ResNet-18 with a new head, frozen for an epoch first: transfer learning, as fastai
    does it."""
    training = {"freeze_epochs": 1} | changes.pop("training", {})
    return tiny_run(loop, **(TRANSFER | changes | {"training": training}))


@pytest.mark.parametrize("loop", ["torch", "fastai"])
@pytest.mark.parametrize(("drop_last", "steps", "images"), [(True, 2, 12), (False, 3, 16)])
def test_both_loops_measure_alike(
    folder: Path, loop: str, drop_last: bool, steps: int, images: int
) -> None:
    job = make_job(folder, transfer_run(loop, training={"drop_last": drop_last}))
    measured = LOOPS[loop](job)
    assert measured.body_sha256 == job.weights.body_sha256
    assert [epoch.stage for epoch in measured.epochs] == ["frozen", "unfrozen", "unfrozen"]
    assert [(epoch.steps, epoch.images) for epoch in measured.epochs] == [(steps, images)] * 3
    assert [step.epoch for step in measured.steps] == [1] * steps + [2] * steps + [3] * steps
    assert measured.steps[0].warm_up and measured.steps[steps].warm_up
    for epoch in measured.epochs:
        assert epoch.train_loss is not None and epoch.valid_loss is not None
        assert epoch.accuracy in {0, 0.25, 0.5, 0.75, 1}
    assert measured.memory.host_resident_bytes is not None


def plant_costs(monkeypatch: pytest.MonkeyPatch, clock: PlantedClock) -> None:
    """Seconds by the planted clock: half of one to start a loader, 0.25 an image to decode, 1 a
    forward pass of the first layer, 2 a backward pass of it, 4 a step of the optimizer."""
    workerless = torch.utils.data.dataloader._SingleProcessDataLoaderIter
    forward = torch.nn.Conv2d.forward

    def slow(stock: Callable[..., Any], seconds: float) -> Callable[..., Any]:
        def work(*arguments: Any, **more: Any) -> Any:
            clock.pass_by(seconds)
            return stock(*arguments, **more)

        return work

    def slow_forward(self: torch.nn.Conv2d, inputs: torch.Tensor) -> torch.Tensor:
        outputs = forward(self, inputs)
        if self.in_channels == 3:
            clock.pass_by(1.0)
            if outputs.requires_grad:
                outputs.register_hook(lambda gradient: clock.pass_by(2.0))
        return outputs

    monkeypatch.setattr(workerless, "__init__", slow(workerless.__init__, 0.5))
    monkeypatch.setattr(loop_decoding, "decode", slow(decoding.decode, 0.25))
    monkeypatch.setattr(fastai_loop, "as_stored", slow(fastai_loop.as_stored, 0.25))
    monkeypatch.setattr(torch.nn.Conv2d, "forward", slow_forward)
    monkeypatch.setattr(torch.optim.AdamW, "step", slow(torch.optim.AdamW.step, 4.0))
    monkeypatch.setattr(Optimizer, "step", slow(Optimizer.step, 4.0))


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_phases_add_up_to_epochs_and_these_to_the_fit(
    folder: Path, loop: str, monkeypatch: pytest.MonkeyPatch, clock: PlantedClock
) -> None:
    run = tiny_run(loop, training={"batch_size": 8}, dataset={"images": 60, "image_size": 32})
    plant_costs(monkeypatch, clock)
    measured = LOOPS[loop](make_job(folder, run))
    for number, step in enumerate(measured.steps):
        assert step.data_wait_seconds == 8 * 0.25 + (0.5 if number % 6 == 0 else 0)
        assert (step.forward_seconds, step.backward_seconds, step.optimizer_seconds) == (1, 2, 4)
        assert (step.transfer_seconds, step.device_transform_seconds) == (0, 0)
    for number, epoch in enumerate(measured.epochs, start=1):
        total = sum(step.seconds for step in measured.steps if step.epoch == number)
        assert total + epoch.loader_end_seconds == epoch.train_seconds
        assert (epoch.loader_start_seconds, epoch.synchronise_seconds) == (0.5, 0)
        assert epoch.valid_seconds == 0.5 + 12 * 0.25 + 2 * 1  # 12 images in two batches
    seconds = [epoch.train_seconds + epoch.valid_seconds for epoch in measured.epochs]
    assert measured.fit_seconds == sum(seconds)


def test_random_weights_get_the_pipeline_of_pretrained_ones(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stock ``pretrained=True`` against ours without weights: same transforms, same frozen
    parameters, same groups."""
    job = make_job(folder, transfer_run("fastai"))
    state = models.backbone("resnet18", 0).state_dict()
    # Stock code with torchvision's download replaced: nothing can be downloaded in a test.
    for module in ("torch.hub", "torchvision.models._api"):
        monkeypatch.setattr(f"{module}.load_state_dict_from_url", lambda *_, **__: state)

    def normalisation(learner: Any) -> list[Any]:
        steps = [one for one in learner.dls.after_batch.fs if isinstance(one, Normalize)]
        return [(one.mean.tolist(), one.std.tolist()) for one in steps]

    def pipeline(learner: Any) -> tuple[list[Any], ...]:
        transforms = [type(transform).__name__ for transform in learner.dls.after_batch.fs]
        frozen = [parameter.requires_grad for parameter in learner.model.parameters()]
        groups = [len(group) for group in learner.opt.param_lists]
        return (transforms, normalisation(learner), frozen, groups)

    stock = vision_learner(fastai_loop.make_dataloaders(job), resnet18, metrics=error_rate)
    own = fastai_loop.make_learner(job, fastai_loop.make_dataloaders(job))
    assert pipeline(own) == pipeline(stock)
    assert normalisation(stock)
    assert not all(parameter.requires_grad for parameter in own.model.parameters())
    plain = vision_learner(fastai_loop.make_dataloaders(job), resnet18, pretrained=False)
    assert not normalisation(plain), "fastai no longer leaves it out silently: drop our own step"


def test_our_schedule_is_the_one_that_fastai_follows(folder: Path) -> None:
    """Learning rates and momentum of every step, as fastai's optimizer had them; the rule halves
    the rate."""
    rule = {"learning_rate": 0.01, "learning_rate_rule": "linear", "reference_batch_size": 12}
    job = make_job(folder, transfer_run("fastai", training=rule))
    seen: list[tuple[list[float], float]] = []

    class Watch(Callback):
        order = 2000

        def before_batch(self) -> None:
            if self.training:
                seen.append(([h["lr"] for h in self.opt.hypers], self.opt.hypers[0]["mom"]))

    learner = fastai_loop.make_learner(job, fastai_loop.make_dataloaders(job))
    learner.add_cb(Watch())
    with contextlib.redirect_stdout(io.StringIO()):
        fastai_loop.fit(learner, job.settings)
    ours = []
    for stage in stages(job.settings, 3):
        for step in range(2 * stage.epochs):
            progress = step / (2 * stage.epochs)
            ours.append((list(stage.rates(progress)), stage.momentum(progress)))
    assert len(seen) == len(ours) == 6
    assert 0.0025 < max(rate for rates, _ in seen for rate in rates) < 0.005
    for (rates, momentum), (our_rates, our_momentum) in zip(seen, ours, strict=True):
        assert our_rates == pytest.approx(rates, rel=1e-6)
        assert our_momentum == pytest.approx(momentum, rel=1e-6)


def test_our_freezing_and_groups_are_fastais(folder: Path) -> None:
    job = make_job(folder, transfer_run("fastai"))
    learner = fastai_loop.make_learner(job, fastai_loop.make_dataloaders(job))
    learner.freeze()
    model = models.with_new_head(models.backbone("resnet18", 1), 2, 1)
    parameters = dict(model.named_parameters())
    groups = layer_groups(model)
    sizes = [sum(parameters[name].numel() for name in group) for group in groups[:2]]
    assert sizes == [sum(p.numel() for p in group) for group in learner.opt.param_lists[:2]]
    set_frozen(model, groups, True)
    ours = [parameters[name].requires_grad for group in groups[:2] for name in group]
    assert ours == [p.requires_grad for p in learner.model[0].parameters()]


def test_the_callback_changes_nothing(folder: Path) -> None:
    """The same seed with and without it: the same weights to the bit."""
    job = make_job(folder, transfer_run("fastai"))
    states = []
    for measured in (True, False):
        set_seed(5)
        learner = fastai_loop.make_learner(job, fastai_loop.make_dataloaders(job))
        callback = fastai_loop.Measure(job)
        if measured:
            learner.add_cb(callback)
        with callback.loader_marks(), contextlib.redirect_stdout(io.StringIO()):
            learner.fine_tune(1)
        states.append({key: value.clone() for key, value in learner.model.state_dict().items()})
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


@pytest.mark.parametrize("kind", ["workers", "device"])
def test_the_torch_loop_learns_what_can_be_learned(folder: Path, kind: str) -> None:
    run = tiny_run(
        "torch",
        loader={"kind": kind, "workers": 1},
        dataset={"images": 300, "classes": 3, "image_size": 32},
        training={"epochs": 6, "batch_size": 8, "learning_rate": 5e-3},
    )
    measured = torch_loop.train(make_job(folder, run))
    assert (measured.epochs[-1].accuracy or 0) > 0.6  # chance is a third
    assert measured.workers == (1 if kind == "workers" else 0)


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_progress_reaches_its_total(folder: Path, loop: str) -> None:
    seen: list[tuple[int, int]] = []
    job = make_job(folder, tiny_run(loop))
    LOOPS[loop](replace(job, progress=lambda done, total, words: seen.append((done, total))))
    assert seen == [(done, 4) for done in range(1, 5)]


def test_one_channel_of_fastai_starts_from_the_decided_weights(folder: Path) -> None:
    """The given first layer is folded into one channel: a file is followed, and two runs start
    alike."""
    grey = {"images": 20, "channels": 1, "image_size": 28}
    job = make_job(folder, transfer_run("fastai", dataset=grey, training={"epochs": 1}))
    given = replace(job, state=dict(models.backbone("resnet18", 77).state_dict()))
    first, second, other = (
        fastai_loop.train(one).body_sha256
        for one in (replace(given, seed=1), replace(given, seed=2), job)
    )
    assert first == second != other


@pytest.mark.parametrize("channels", [1, 3])
def test_arrays_in_other_channels_than_the_model_sees_are_converted(
    folder: Path, channels: int
) -> None:
    """Colour arrays in grey and grey arrays in colour, as CIFAR-10 and MNIST may be asked for."""
    drawn, seen = (
        transfer_run("fastai", dataset={"images": 20, "channels": count, "image_size": 28})
        for count in (4 - channels, channels)
    )
    job = replace(make_job(folder, drawn), settings=seen.settings)
    batch, _ = fastai_loop.make_dataloaders(job).one_batch()
    assert batch.shape[1] == channels


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


@pytest.mark.parametrize(
    ("kind", "drop_last", "optimizer"),
    [("workers", True, "sgd"), ("workers", False, "adamw"), ("device", False, "sgd")],
)
def test_micro_batches_are_one_step_of_their_batch(
    tmp_path: Path, kind: str, drop_last: bool, optimizer: str
) -> None:
    """80 images in steps of 24: without drop_last the last one holds 8, in micro-batches of 6 and
    2."""
    measured: list[Any] = []
    for size, parts in ((24, 1), (6, 4)):
        training: dict[str, Any] = {
            "batch_size": size,
            "gradient_accumulation": parts,
            "drop_last": drop_last,
        }
        rate = 0.02 if optimizer == "sgd" else 1e-3
        training |= {"optimizer": optimizer, "learning_rate": rate}
        run = small_run(training=training, loader={"kind": kind, "workers": 0})
        measured.append(torch_loop.train(make_job(tmp_path, run)))
    whole, accumulated = measured
    assert losses(accumulated) == pytest.approx(losses(whole), rel=1e-5)
    assert [step.images for step in accumulated.steps] == [step.images for step in whole.steps]
    assert [step.images for step in whole.steps] == ([24] * 3 if drop_last else [24, 24, 24, 8]) * 2
    assert whole.epochs[0].train_loss > whole.epochs[1].train_loss, "nothing was learned"


def test_validation_at_the_end_is_one_pass_after_the_last_epoch(tmp_path: Path) -> None:
    run = small_run(training={"validation": "end", "epochs": 3})
    measured = torch_loop.train(make_job(tmp_path, run))
    found = [(epoch.valid_seconds > 0, epoch.accuracy is not None) for epoch in measured.epochs]
    assert found == [(False, False), (False, False), (True, True)]


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_the_sum_of_the_losses_is_over_steps_and_their_mean_over_images(
    tmp_path: Path, loop: str
) -> None:
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
def test_a_schedule_sets_the_rate_of_every_layer(
    tmp_path: Path, schedule: str, course: list[float]
) -> None:
    job = make_job(tmp_path, small_run(training={"schedule": schedule, "epochs": 1} | HALVED))
    (stage,) = stages(job.settings, 3)
    rates = [pytest.approx((0.01 * factor,) * 3) for factor in course]
    assert [stage.rates(part / 6) for part in range(6)] == rates
    assert stage.momentum(0.5) is None
    seen = []
    trainer = torch_loop.Trainer(job, make_loaders(job.images, job.settings, job.device, 1))
    trainer.optimizer.register_step_pre_hook(
        lambda optimizer, *_: seen.append(optimizer.param_groups[0]["lr"])
    )
    trainer.train_epoch(stage, 0, 1)
    assert seen == pytest.approx([0.01 * factor for factor in course])


def test_the_step_schedule_divides_after_whole_thirds_whatever_rounding_does() -> None:
    training = {"schedule": "step", "epochs": 1, "learning_rate": 1.0}
    (stage,) = stages(small_run(training=training).settings, 1)
    found = [round(stage.rates(step / 9)[0], 6) for step in range(9)]
    assert found == [1] * 3 + [0.1] * 3 + [0.01] * 3


def test_adam_at_a_constant_rate_is_the_loop_that_the_documents_print(tmp_path: Path) -> None:
    """Plain torch on the same batches from the same weights: the same loss at every epoch."""
    training = {"optimizer": "adam", "schedule": "constant", "learning_rate": 1e-3}
    training["drop_last"] = False
    job = make_job(tmp_path, small_run(training=training, loader={"kind": "device"}))
    measured = torch_loop.train(job)
    model = models.build(LENET, classes=2, seed=job.settings.seed, head_seed=job.seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = torch.nn.CrossEntropyLoss()
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
def test_stock_fastai_trains_a_whole_network_by_its_own_methods(
    tmp_path: Path, schedule: str
) -> None:
    rates: list[float] = []

    class Watch(Callback):
        def after_batch(self) -> None:
            if self.training:
                rates.append(round(self.opt.hypers[0]["lr"], 12))

    digits = {"images": 100, "channels": 1, "image_size": 28}
    training = {"schedule": schedule, "epochs": 1} | HALVED
    run = small_run("fastai", dataset=digits, model=MNIST_CNN, training=training)
    job = make_job(tmp_path, run)
    learner = fastai_loop.make_learner(job, fastai_loop.make_dataloaders(job))
    learner.add_cb(Watch())
    fastai_loop.fit(learner, job.settings)
    assert len(rates) == 6
    assert rates == [0.01] * 6 if schedule == "constant" else len(set(rates)) == 6
    assert max(rates) == pytest.approx(0.01, rel=0.1)
    measured = fastai_loop.train(job)
    built = models.build(MNIST_CNN["name"], classes=2)
    assert measured.parameters == sum(p.numel() for p in built.parameters())
    assert measured.body_sha256 == job.weights.body_sha256


def test_the_loaders_options_reach_torchs_loader(tmp_path: Path) -> None:
    options = {"kind": "workers", "workers": 1, "persistent_workers": True, "pin_memory": False}
    job = make_job(tmp_path, small_run(loader=options | {"prefetch_factor": 3}))
    loaders = make_loaders(job.images, job.settings, job.device, 1)
    for loader in (loaders.train, loaders.valid):
        assert isinstance(loader, torch.utils.data.DataLoader)
        assert (loader.persistent_workers, loader.prefetch_factor) == (True, 3)
        assert not loader.pin_memory


MICRO = {"batch_size": 3, "gradient_accumulation": 2}
Batches = list[list[int]]
Change = Callable[[Batches], Iterable[list[int]]]


@pytest.mark.parametrize(
    ("change", "training", "words"),
    [
        (lambda steps: [[*step, step[0]] for step in steps], {}, "on 14 images in place of the 12"),
        (lambda steps: [step[1:] for step in steps], {}, "on 10 images in place of the 12 of"),
        (cycle, {}, "the loader gave more than the 2 steps of the plan"),
        (lambda steps: steps[1:], {}, "the loader gave 1 of the 2 steps of the plan"),
        (lambda steps: steps[1:], MICRO, "the loader gave 1 of the 2 steps"),
    ],
)
def test_a_sampler_that_repeats_or_leaves_out_images_or_a_micro_batch_fails_our_loop(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Change,
    training: dict[str, int],
    words: str,
) -> None:
    stock = MicroBatches.__iter__
    monkeypatch.setattr(MicroBatches, "__iter__", lambda self: iter(change(list(stock(self)))))
    with pytest.raises(StudyError, match=f"epoch 1.* {words}"):
        torch_loop.train(make_job(tmp_path, tiny_run("torch", training=training)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda order: [*order, order[0]], "epoch 1 trained on 17 images in place of the 16 of"),
        (lambda order: order[1:], "epoch 1 trained on 15 images in place of the 16 of the plan"),
        (lambda order: order * 2, "epoch 1: the loader gave more than the 3 steps of the plan"),
        (lambda order: order[:12], "epoch 1: the loader gave 2 of the 3 steps of the plan"),
    ],
)
def test_a_loader_that_repeats_or_leaves_out_images_fails_fastai(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[list[int]], list[int]],
    words: str,
) -> None:
    loader = fastai.data.load.DataLoader
    stock = loader.get_idxs
    monkeypatch.setattr(
        loader, "get_idxs", lambda self: change(stock(self)) if self.shuffle else stock(self)
    )
    with pytest.raises(StudyError, match=words):
        LOOPS["fastai"](make_job(tmp_path, tiny_run("fastai", training={"drop_last": False})))
