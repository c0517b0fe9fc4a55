"""Before the clock starts, and as it ends, a run compares what is in force with what it asks for,
and names both."""

import contextlib
import multiprocessing
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from study.artifacts.samples import Measurement
from study.base.errors import StudyError
from study.config.rules import broken
from study.config.settings import DEFAULTS, Keys, Settings, get, with_values
from study.training.common import failed, loop_of, seed_everything
from study.training.instruments.in_force import Asked
from study.training.instruments.reference_workload import the_same_for_every_setting
from study.training.loops.loaders import Decoded
from study.training.loops.torch.loop import train
from tests.unit.training.gloo_ranks import LOOPS
from tests.unit.training.test_loops import make_job, tiny_run

OWN: dict[str, Any] = {"model": {"name": "nets:make", "weights": "none"}}
NET = """
import multiprocessing, os, torch
from torch import nn
{at_import}
class Net(nn.Sequential):
    def forward(self, images):
        {forward}
        return super().forward(images)
def make(classes):
    return Net(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, classes)){made}
"""
SETS = [
    ("at_import", "torch.set_num_threads(1)",
     "training.threads: asked for threads 2, and 1 is in force once the model is built"),
    ("at_import", "multiprocessing.set_start_method('spawn', force=True)", "method fork, and spawn"),
    ("at_import", "torch.set_default_dtype(torch.float64)", "default_dtype float32, and float64"),
    ("at_import", "torch.use_deterministic_algorithms(True)", "deterministic false, and true"),
    ("at_import", "torch.set_float32_matmul_precision('medium')", "products ieee, and bf16"),
    ("at_import", "torch.backends.cudnn.benchmark = False",
     "training.cudnn_benchmark: asked for cudnn_benchmark true, and false"),
    ("at_import", "torch.backends.cudnn.enabled = False", "cudnn true, and false"),
    ("at_import", "torch.set_autocast_enabled('cpu', True)", "autocast false, and true"),
    ("at_import", "os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])",
     "limits.cpus: asked for cpus"),
    ("made", ".double()", "dtypes float32, and float64"),
    ("made", ".to(memory_format=torch.channels_last)", "memory_format contiguous, and channels_last"),
    ("made", ".to(torch.bfloat16)", "dtypes float32, and bfloat16"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Give torch, and this process, back what a model of a test has set."""
    threads, cpus, method = (
        torch.get_num_threads(),
        os.sched_getaffinity(0),
        multiprocessing.get_start_method(),
    )
    precision = torch.get_float32_matmul_precision()
    torch.set_num_threads(2)
    yield
    os.sched_setaffinity(0, cpus)
    multiprocessing.set_start_method(method, force=True)
    torch.set_num_threads(threads)
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision(precision)
    torch.set_autocast_enabled("cpu", False)
    torch.backends.cudnn.enabled = torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.deterministic = False
    sys.modules.pop("nets", None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def trained(
    folder: Path, at_import: str = "", forward: str = "pass", made: str = "", loop: str = "torch"
) -> Any:
    """The measurement of a run with a user's own model, of which two threads are asked for."""
    Path("nets.py").write_text(NET.format(at_import="", forward="pass", made=""), encoding="utf-8")
    kind = {"kind": "workers", "workers": 0} if loop == "fastai" else {"kind": "device"}
    training = {"loop": loop, "freeze_epochs": 0, "epochs": 1, "batch_size": 4, "threads": 2}
    job = make_job(folder, tiny_run(**OWN, training=training, loader=kind))
    del sys.modules["nets"]  # the trial of a model is in another process than its run
    Path("nets.py").write_text(
        NET.format(at_import=at_import, forward=forward, made=made) + "\n", encoding="utf-8"
    )
    torch.backends.cudnn.benchmark = True
    return LOOPS[loop](job)


@pytest.mark.parametrize(("place", "line", "words"), SETS)
def test_what_a_model_sets_is_a_failed_run_that_names_both(
    folder: Path, place: str, line: str, words: str
) -> None:
    with pytest.raises(StudyError, match=words):
        trained(folder, **{place: line}, loop="fastai" if place == "made" else "torch")


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_what_a_model_sets_in_its_forward_pass_is_found_as_the_training_ends(
    folder: Path, loop: str
) -> None:
    with pytest.raises(
        StudyError, match="asked for threads 2, and 1 is in force as the training ends"
    ):
        trained(folder, forward="torch.set_num_threads(1)", loop=loop)


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_the_record_holds_what_was_in_force(folder: Path, loop: str) -> None:
    found = trained(folder, loop=loop).in_force
    assert (found.threads, found.workers, found.grad_mode) == (2, 0, True)
    assert (found.dtypes, found.devices) == (["float32"], ["cpu"])
    assert (found.memory_format, found.start_method) == ("contiguous", "fork")


def test_a_part_of_a_model_on_another_device_is_named(folder: Path) -> None:
    settings = tiny_run().settings
    model = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1, device="meta"))
    with pytest.raises(
        StudyError, match="device: asked for devices cpu, and cpu and meta is in force"
    ):
        Asked(settings, torch.device("cpu"), 0).check(model, 0)


def test_another_number_of_workers_than_asked_for_is_named(folder: Path) -> None:
    with pytest.raises(
        StudyError, match=r"loader\.workers: asked for workers 2, and 0 is in force"
    ):
        Asked(tiny_run().settings, torch.device("cpu"), 2).check(None, 0)


def test_a_model_that_is_not_compiled_as_asked_is_a_failed_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch._dynamo

    monkeypatch.setattr(torch._dynamo.config, "disable", True)
    torch._dynamo.utils.reset_frame_count()
    run = tiny_run(training={"epochs": 1, "batch_size": 4, "compile": True})
    with contextlib.suppress(AttributeError):
        torch._dynamo.utils.compilation_time_metrics.clear()
    with pytest.raises(StudyError, match="compile: asked for true, and nothing is compiled"):
        train(make_job(folder, run))


ON = {"deterministic": True}


def trained_twice(folder: Path, loop: str = "torch", **training: Any) -> Measurement:
    """Two epochs, with the algorithms that the settings allow."""
    job = make_job(folder, tiny_run(loop, training=training))
    return loop_of(job.settings)(job)


@pytest.mark.parametrize("loop", ["torch", "fastai"])
def test_one_seed_gives_the_same_weights_to_the_last_bit_and_another_rate_does_not(
    tmp_path: Path, loop: str
) -> None:
    first, again = trained_twice(tmp_path, loop, **ON), trained_twice(tmp_path, loop, **ON)
    assert first.in_force
    assert (first.in_force.deterministic, first.in_force.cudnn_deterministic) == (True, True)
    assert not first.in_force.cudnn_benchmark
    assert first.trained_sha256 == again.trained_sha256 != first.body_sha256
    assert (
        trained_twice(tmp_path, loop, **ON, learning_rate=1e-4).trained_sha256
        != first.trained_sha256
    )


def test_it_is_off_in_the_reference_workload_and_in_a_run_that_does_not_ask_for_it(
    tmp_path: Path,
) -> None:
    settings = tiny_run(training=ON).settings
    loop_of(settings)
    with the_same_for_every_setting():
        assert not torch.are_deterministic_algorithms_enabled()
    assert torch.are_deterministic_algorithms_enabled()
    plain = trained_twice(tmp_path).in_force
    assert plain
    assert not plain.deterministic


def test_an_operation_without_a_deterministic_form_is_named_in_one_line() -> None:
    settings = tiny_run(training=ON).settings
    loop_of(settings)
    with pytest.raises(RuntimeError) as caught:
        torch.zeros(2).put_(torch.tensor([0]), torch.ones(1))
    result = failed(caught.value, settings)
    assert result.message == "training.deterministic: put_ has no deterministic form on cpu"


PROBES: dict[str, Any] = {
    "training.epochs": 1, "training.target_accuracy": 0.001, "training.batch_size": 4,
    "training.gradient_accumulation": 2, "training.optimizer": "sgd", "training.schedule": "step",
    "training.learning_rate": 0.1, "training.validation": "end", "training.drop_last": False,
    "training.precision": "bf16", "training.memory_format": "channels_last",
    "training.compile": True, "training.deterministic": True, "training.cudnn_benchmark": False,
    "training.threads": 1, "training.optimizer_implementation": "foreach",
    "training.cuda_graph": True, "loader.workers": 1, "loader.decoder": "torchcodec",
    "training.learning_rate_rule": {
        "training.learning_rate_rule": "linear", "training.reference_batch_size": 60},
    "loader.prefetch_factor": {"loader.workers": 1, "loader.prefetch_factor": 3},
    "loader.persistent_workers": {"loader.workers": 1, "loader.persistent_workers": True},
}  # fmt: skip
"""A value of each key, with others where it needs them, that a run shows, or a rule refuses."""
ELSEWHERE = {
    "test_distributed": "strategy processes batch_size_is sharding",
    "test_switches": "compile cuda_graph optimizer_implementation kind",
    "test_loops": "loop freeze_epochs prefetch_factor pin_memory",
    "test_decoding": "decoder",
    "test_in_force": "persistent_workers reference_batch_size",
}
"""The module that shows keys of several processes, of a GPU, of a body or of no record."""
PLAIN: dict[str, Any] = {}
"""What a run of each loop shows that has no probe."""


def changed(key: str, loop: str) -> dict[str, Any]:
    """The keys of a run of the loop, with the key's probe."""
    probe = PROBES[key]
    own = {"training.loop": loop, "loader.kind": "workers", "loader.workers": 0}
    return own | (probe if isinstance(probe, dict) else {key: probe})


@pytest.mark.parametrize("loop", ["torch", "fastai"])
@pytest.mark.parametrize(
    "key",
    [f"{name}.{key}" for name in ("loader", "training") for key in get(DEFAULTS, name).model_fields],
)  # fmt: skip
def test_every_key_has_an_effect_in_either_loop_or_is_refused(
    key: str, loop: str, tmp_path: Path
) -> None:
    if key in PROBES:
        asked = Keys.model_validate(with_values({}, changed(key, loop)))
        if any(rule.key == key for rule in broken(asked)):
            return
    name = key.rpartition(".")[2]
    for module in (module for module, names in ELSEWHERE.items() if name in names.split()):
        assert name in Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8")
        return
    if loop not in PLAIN:
        PLAIN[loop] = traces(tmp_path, loop, {})
    assert traces(tmp_path, loop, changed(key, loop)) != PLAIN[loop]


def traces(folder: Path, loop: str, values: dict[str, Any]) -> Any:
    """What a run of two epochs shows of its keys, without a time."""
    torch.backends.cudnn.benchmark = True
    run = tiny_run(loop, training={"freeze_epochs": 0, "epochs": 2, "batch_size": 6})
    told = with_values(run.settings.model_dump(exclude={"control"}), values)
    job = make_job(folder, run.model_copy(update={"settings": Settings.model_validate(told)}))
    seed_everything(1, job.settings.training.threads)
    found = loop_of(job.settings)(job)
    steps = [step.images for step in found.steps]
    epochs = [(epoch.stage, epoch.accuracy is None) for epoch in found.epochs]
    return steps, epochs, found.trained_sha256, found.threads, found.workers, found.in_force


@pytest.mark.thorough
@pytest.mark.parametrize("stay", [False, True])
def test_workers_that_stay_are_the_same_processes_in_two_epochs(
    stay: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the torch loop; fastai makes a new loader iterator in each epoch."""
    loader = {"kind": "workers", "workers": 2, "persistent_workers": stay}
    job = make_job(tmp_path, tiny_run(loader=loader))
    seen = tmp_path / "seen"
    stock = Decoded.image

    def image(self: Decoded, index: int) -> torch.Tensor:
        with seen.open("a") as file:
            file.write(f"{len(self)} {os.getpid()}\n")
        return stock(self, index)

    monkeypatch.setattr(Decoded, "image", image)
    train(job)
    training = f"{len(job.images.train)} "
    workers = {line for line in seen.read_text().splitlines() if line.startswith(training)}
    assert len(workers) == (2 if stay else 4)
