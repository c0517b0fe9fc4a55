"""Many processes do the work of one: the same batches, the same losses; and what cannot be is said beforehand."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
import yaml as pyyaml

from study.artifacts.checked import read_records
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.artifacts.record import JobResult
from study.artifacts.run import RESULT, Job, Run
from study.artifacts.samples import Memory, Replica
from study.base import devices
from study.base.errors import StudyError
from study.base.files import write_whole
from study.config.settings import Settings
from study.host.engine.engine_choice import EngineChoice
from study.host.plan import workflow
from study.host.plan.workflow import Workflow
from study.host.steps.attempt import run_seed
from study.training.common import is_out_of_memory, leave
from study.training.distributed import ranks
from study.training.distributed.ranks import RankFailed, report_file, result_file
from study.training.instruments.sampler import read_together
from study.training.loops.replicas import Share
from tests.conftest import HERE, MNIST_CNN, ROOT, plan_at, study_values, tiny_plan
from tests.errors import refused
from tests.examples import EXAMPLE
from tests.timings import table
from tests.unit.artifacts.test_records import WEIGHTS, make_record
from tests.unit.training.gloo_ranks import (
    draw,
    losses,
    one_batch_less,
    overlapping_shards,
    train_together,
)
from tests.waiting import at_work, wait_for

PHOTOS = {"source": "generated", "images": 33, "classes": 2, "channels": 1, "image_size": 28}
ON_A_GPU: dict[str, str | None] = {"cpu": None, "cuda": None}
TRAINING = {"freeze_epochs": 0, "epochs": 2, "batch_size": 8}
TWO_NODES = {"strategy": "ddp_two_nodes"}


def values_of(**changes: Any) -> dict[str, Any]:
    """A tiny study without batch normalisation."""
    training = TRAINING | changes.pop("training", {})
    values = {"dataset": PHOTOS, "model": MNIST_CNN, "curve": None, "training": training}
    return values | changes


def plan_of(cpus: int = 8, gpus: int = 0, **changes: Any) -> Plan:
    """Its plan on a machine with so many CPUs and GPUs."""
    values = {"factors": {"device": ["cuda" if gpus else "cpu"]}} | values_of(**changes)
    return plan_at(
        EngineChoice("none", ""), ON_A_GPU if gpus else HERE, {"cpu": cpus, "cuda": gpus}, **values
    )


@pytest.mark.parametrize(("images", "replicas"), [(8, 2), (12, 4), (7, 2), (11, 4)])
def test_every_image_is_in_one_shard_and_shards_are_as_large(images: int, replicas: int) -> None:
    batch = list(range(images))
    shards = [Share(rank, replicas).of(batch) for rank in range(replicas)]
    assert sorted(image for shard in shards for image in shard) == batch
    assert max(map(len, shards)) - min(map(len, shards)) <= 1
    tensors = [Share(rank, replicas).of(torch.arange(images)).tolist() for rank in range(replicas)]
    assert tensors == shards


class TestThePlan:
    @pytest.mark.parametrize(
        ("machine", "training", "count"),
        [
            ({}, {"strategy": "single", "processes": 4}, 1),
            ({}, {}, 2),
            ({}, {"processes": 4}, 4),
            ({"gpus": 4}, {"processes": 2}, 2),
            ({"gpus": 7}, {}, 4),
            ({"gpus": 3}, {"gradient_accumulation": 2}, 2),
            ({"gpus": 7}, TWO_NODES, 4),
            ({"gpus": 7}, TWO_NODES | {"batch_size": 10}, 2),
            ({"gpus": 4}, {"batch_size": 7}, 1),
            ({"gpus": 4}, {"drop_last": False}, 2),  # the last batch has 3 images
            # 4 replicas' batches would be more than the 27 images
            ({"gpus": 8}, {"batch_size_is": "replica"}, 3),
        ],
    )
    def test_auto_is_two_processes_on_a_cpu_and_one_for_each_gpu_up_to_the_most_that_can_share_the_batches(
        self, machine: dict[str, int], training: dict[str, Any], count: int
    ) -> None:
        run = plan_of(**machine, training={"strategy": "ddp"} | training).runs[0]
        assert run.unavailable is None
        assert run.settings.training.replicas == run.settings.training.processes == count

    @pytest.mark.parametrize(
        ("machine", "changes", "key", "value", "words"),
        [
            ({"gpus": 2}, {"processes": 4}, "processes", 4, "2 GPUs"),
            ({}, {"processes": 2, "batch_size": 9}, "batch_size", 9, "2 replicas"),
            (
                {"gpus": 3},
                {"processes": 3},
                "batch_size",
                8,
                "a multiple of 3, other training.processes",
            ),
            ({}, TWO_NODES | {"processes": 3}, "processes", 3, "a multiple of 2"),
            ({}, {"processes": 4, "batch_size_is": "replica"}, "batch_size", 32, "27 images"),
            (
                {},
                {"processes": 4, "drop_last": False},
                "drop_last",
                False,
                "3 images for 4 replicas",
            ),
        ],
    )
    def test_what_cannot_be_is_one_error_before_any_run(
        self, machine: dict[str, int], changes: dict[str, Any], key: str, value: int, words: str
    ) -> None:
        with refused(f"training.{key}", value) as error:
            plan_of(**machine, training={"strategy": "ddp"} | changes)
        assert words in f"{error.why}; {error.allowed}"

    def test_a_run_alone_with_many_processes_twice_is_an_error_and_no_second_run(self) -> None:
        factors = {"training.strategy": ["single", "ddp"], "training.processes": [2, 4]}
        with refused("training.processes", [2, 4]) as error:
            plan_of(factors={"device": ["cpu"]} | factors)
        assert error.context == "with training.strategy single"
        twice = {"device": ["cpu"], "training.processes": ["auto", 2]}
        with pytest.raises(StudyError, match="more than once"):
            plan_of(training={"strategy": "ddp"}, factors=twice)


def look(folder: Path, monkeypatch: pytest.MonkeyPatch, gpus: int, **training: Any) -> Workflow:
    """A start that only looks, on a machine with so many GPUs, at a study of one process and many."""
    factors = {"device": ["cuda"], "training.strategy": ["single", "ddp", "ddp_two_nodes"]}
    values = values_of(training=training, factors=factors)
    (folder / "tiny.yaml").write_text(pyyaml.safe_dump(study_values(**values)), encoding="utf-8")
    monkeypatch.setattr(
        devices, "absent", lambda device: None if gpus or device == "cpu" else "no GPU in this test"
    )
    monkeypatch.setattr(devices, "count", lambda device: gpus if device == "cuda" else 2)
    asked = workflow.Request(config={"studies": ["tiny"], "container": "none"})
    return workflow.planned(asked, [folder], folder / "results")


class TestRecordsOfGpusThatAreAway:
    def test_they_are_shown_where_there_are_too_few_gpus(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = look(tmp_path, monkeypatch, 4).plan("tiny")
        write_plans([made], tmp_path / "results")
        folder = tmp_path / "results" / "tiny" / "records"
        folder.mkdir()
        for run in made.runs:
            (folder / run.file).touch()
        assert {run.settings.training.replicas for run in made.runs} == {1, 4}
        away = look(tmp_path, monkeypatch, 0)
        assert away.pending == []
        shown = {run.file for block in away.blocks.values() for run in block.runs}
        assert shown == {path.name for path in folder.iterdir()}
        two_nodes = next(run for run in made.runs if "two_nodes" in run.name)
        blocks = look(tmp_path, monkeypatch, 1).blocks.values()
        assert two_nodes.file in {run.file for block in blocks for run in block.runs}
        runs = look(tmp_path, monkeypatch, 2).plan("tiny").runs
        there = [run for run in runs if not run.unavailable]
        # and not an earlier plan's 4
        assert sorted(run.settings.training.replicas for run in there) == [1, 2, 2]


class TestSeeds:
    def seeds(self, plan: Plan) -> dict[str, int]:
        return {run.name: run_seed(plan.study.seed, plan.seed_name(run)) for run in plan.runs}

    def test_neither_strategy_nor_processes_nor_a_selection_of_them_change_a_seed_and_all_else_does(
        self,
    ) -> None:
        factors = {"training.loop": ["torch", "fastai"], "training.strategy": ["single", "ddp"]}
        factors["device"] = ["cpu"]
        more: dict[str, Any] = {"loader": {"kind": "workers"}, "replicates": 3}
        found = self.seeds(plan_of(factors=factors, **more))
        assert len(set(found.values())) == 2 * 3
        for name, seed in found.items():
            assert found[name.replace("ddp", "single")] == seed
        selected = self.seeds(plan_of(factors=factors | {"training.strategy": ["ddp"]}, **more))
        assert selected.items() <= found.items()
        numbers = {"device": ["cpu"], "training.processes": [2, 4]}
        plan = plan_of(factors=numbers, training={"strategy": "ddp"}, replicates=2)
        assert len(set(self.seeds(plan).values())) == 2

    @pytest.mark.parametrize("study", ["photographs", "photographs-speedup"])
    def test_the_committed_examples_keep_theirs(self, study: str) -> None:
        folder = EXAMPLE / study
        plan = Plan.read(folder / "plan.json")
        records = read_records(plan, folder / "records").included
        kept = {name: record.seed for name, record in records.items()}
        assert kept
        assert kept.items() <= self.seeds(plan).items()


class TestEqualWork:
    """The same global batch and data give the losses and the weights of one process. No batch normalisation here:
    it would see a shard at a time."""

    @pytest.mark.parametrize(
        ("count", "training", "loader"),
        [
            (2, {}, {"kind": "device"}),
            (4, {}, {"kind": "workers", "workers": 0}),
            (2, {"drop_last": False, "gradient_accumulation": 2}, {"kind": "device"}),
            (2, {"loop": "fastai", "drop_last": False}, {"kind": "workers", "workers": 0}),
        ],
    )
    def test_many_processes_reach_the_losses_and_the_weights_of_one(
        self, tmp_path: Path, count: int, training: dict[str, Any], loader: dict[str, Any]
    ) -> None:
        runs = [run_of(training, loader, count) for count in (1, count)]
        draw(runs[0], tmp_path)
        (alone,) = train_together(runs[0], tmp_path, 1)
        ranks = train_together(runs[1], tmp_path, count)
        whole = alone["measured"]
        assert whole.epochs[-1].train_loss != whole.epochs[0].train_loss
        for rank in ranks:
            measured = rank["measured"]
            assert losses(measured) == pytest.approx(losses(whole), rel=1e-4)
            assert [step.images for step in measured.steps] == [step.images for step in whole.steps]
            assert len(measured.replicas) == 1
            reached = pytest.approx(whole.epochs[-1].accuracy, rel=1e-6)
            assert measured.epochs[-1].accuracy == reached
            for name, value in alone["weights"].items():
                assert torch.allclose(rank["weights"][name], value, rtol=1e-3, atol=1e-5), name
        counted = sum(rank["measured"].replicas[0].images for rank in ranks)
        assert counted == sum(step.images for step in whole.steps)
        assert whole.replicas == []

    @pytest.mark.parametrize(
        ("plant", "say_so", "words"),
        [
            (
                overlapping_shards,
                2,
                "epoch 1 trained on 30 images in place of the 24 of the plan: the loader repeats",
            ),
            (one_batch_less, 1, "epoch 1: the loader gave 2 of the 3 steps of the plan"),
        ],
    )
    def test_images_that_are_repeated_fail_the_run(
        self, tmp_path: Path, plant: Callable[[], None], say_so: int, words: str
    ) -> None:
        run = run_of({}, {"kind": "workers", "workers": 0}, 2)
        draw(run, tmp_path)
        errors = [rank["error"] for rank in train_together(run, tmp_path, 2, plant)]
        assert len([error for error in errors if words in error]) == say_so, errors


def run_of(training: dict[str, Any], loader: dict[str, Any], count: int) -> Run:
    strategy = {"strategy": "ddp", "processes": count} if count > 1 else {}
    return plan_of(training={"learning_rate": 1e-2} | training | strategy, loader=loader).runs[0]


DYING = """
import os, time, torch

class Net(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.head = torch.nn.Linear(28 * 28, classes)

    def forward(self, images):
        if self.training:
            os.kill(os.getpid(), 9) if os.environ["RANK"] == "1" else time.sleep(3600)
        return self.head(images.flatten(1))
"""


def test_a_rank_that_dies_is_named_and_the_other_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of two processes, from its order to what it leaves. The process of the run dies in tests/workflow."""
    monkeypatch.chdir(tmp_path)  # a plan looks for the user's model in the working directory
    Path("nets.py").write_text(DYING)
    run = plan_of(
        model={"name": "nets:Net", "weights": "none"}, training={"strategy": "ddp", "processes": 2}
    ).runs[0]
    draw(run, Results(Path("results")).data(run.dataset).parent)
    decided = WEIGHTS.model_copy(update={"model": "nets:Net"})
    write_whole(Results(Path("results")).weights("tiny", run.weights), decided.model_dump_json())
    job = Job(run=run, study="tiny", results="results", seed=1, reference_workload=False)
    Path("job.json").write_text(job.model_dump_json())
    command = [sys.executable, "-m", "study.training.job", "job.json", "."]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=300, check=True)
    result = JobResult.model_validate_json(Path(RESULT).read_text())
    assert (result.outcome, result.message) == ("failed", "rank 1 of 2 was ended by SIGKILL")
    assert not result_file(tmp_path, 0).exists()
    wait_for(lambda: not at_work(tmp_path), 10)


@pytest.mark.timeout(60)
def test_the_end_of_one_nodes_launcher_is_seen_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over nccl the ranks of the first node wait for the lost one without an end."""
    commands, popen = [["sleep", "1000"], ["false"]], subprocess.Popen
    monkeypatch.setattr(ranks, "LAST_WORDS_SECONDS", 0.0)
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: popen(commands.pop(0)))
    with pytest.raises(RankFailed, match="exit code 1"):
        train_ranks(tmp_path, TWO_NODES)


def train_ranks(scratch: Path, training: dict[str, Any]) -> None:
    both = TRAINING | {"strategy": "ddp", "processes": 2} | training
    settings = Settings.model_validate({"training": both})
    ranks.train_ranks(scratch / "job.json", scratch, settings)


CLOSED, PLANTED = "RuntimeError: closed by peer", "ValueError: planted"
NO_MEMORY = "OutOfMemoryError: 9 GiB"


@pytest.mark.parametrize(
    ("said", "reports", "codes", "cause"),
    [
        ({0: CLOSED}, [{0: 1}, {1: -signal.SIGKILL}], [1, 1], "rank 1 of 2 was ended by SIGKILL"),
        ({1: PLANTED, 0: CLOSED}, [{0: 1, 1: 1}], [1], f"rank 1 of 2: {PLANTED}"),
        ({0: PLANTED}, [{0: 1, 1: -signal.SIGTERM}], [1], f"rank 0 of 2: {PLANTED}"),
        ({1: NO_MEMORY}, [], [1], f"rank 1 of 2: {NO_MEMORY}"),
        ({0: CLOSED}, [{1: 3}], [1], "rank 1 of 2 ended with exit code 3"),
        ({0: CLOSED}, [{0: 1}], [1, -signal.SIGKILL], "the launcher of node 1 of 2 was ended by SIGKILL"),
    ],
    ids=[
        "a killed rank and not the one that lost its connection", "the first that said something",
        "not one that was told to end", "no memory", "without a word", "a killed launcher",
    ],
)  # fmt: skip
def test_the_error_names_the_first_cause_by_what_ranks_and_launchers_left(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: dict[int, str],
    reports: list[dict[int, int]],
    codes: list[int],
    cause: str,
) -> None:
    """``said`` is by rank, first to last, ``reports`` and ``codes`` by node: each agent that is started has ended."""
    agents = [
        Mock(returncode=code, **{"poll.return_value": code, "wait.return_value": code})
        for code in codes
    ]
    monkeypatch.setattr(subprocess, "Popen", Mock(side_effect=agents))
    for moment, (rank, message) in enumerate(said.items()):
        outcome = "out_of_memory" if message == NO_MEMORY else "failed"
        left = JobResult.model_validate({"outcome": outcome, "message": message})
        leave(left, result_file(tmp_path, rank))
        os.utime(result_file(tmp_path, rank), (moment, moment))
    for node, report in enumerate(reports):
        report_file(tmp_path, node).write_text(json.dumps(report))
    with pytest.raises(RankFailed) as caught:
        train_ranks(tmp_path, TWO_NODES if len(codes) > 1 else {})
    assert str(caught.value) == cause
    assert is_out_of_memory(caught.value) == (NO_MEMORY in cause)


def test_readings_of_many_gpus_are_one_gpus_with_all_their_memory_power_and_energy() -> None:
    names = ("utilisation_percent", "power_watts", "throttle_reasons", "temperature_celsius")
    first, second, both = (
        {f"gpu_{name}": value for name, value in zip(names, values, strict=True)}
        for values in ((50, 100.0, 1, 40), (100, 300.0, 4, 60), (75, 400, 5, 60))
    )
    told = (first | {"gpu_sm_clock_mhz": 9}, second)
    gpus: list[Any] = [Mock(**{"read.return_value": values}) for values in told]
    assert read_together(gpus[1:]) == second
    assert read_together(gpus) == both


def test_peaks_of_all_replicas_are_added_up() -> None:
    plan = tiny_plan()
    record = make_record(plan)
    assert record.measurement
    memories = [Memory(host_resident_bytes=9, device_allocated_bytes=n) for n in (100, 300)]
    values = {"images": 4, "fit_seconds": 1, "data_wait_seconds": 0}
    replicas = [Replica.model_validate(values | {"memory": memory}) for memory in memories]
    measured = record.measurement.model_copy(update={"replicas": replicas})
    row = table(plan, {record.run: record.model_copy(update={"measurement": measured})}).iloc[0]
    assert row["peak_all_device_allocated_bytes"] == 400
