"""Runs that an executor makes on other machines: plans, jobs, allocations, and what a start leaves
alone."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.base.extras import scheduler
from study.base.files import remove_unfinished
from study.base.fork_server import FORK_SERVERS
from study.base.privacy import node
from study.config.selection import MachineClass
from study.config.study import Study
from study.host.engine import lifetime
from study.host.engine.engine_choice import EngineChoice
from study.host.plan import forecast
from study.host.plan.make import make_plan
from study.host.plan.workflow import Request, joined, plans_for
from tests.conftest import study_values
from tests.errors import refused
from tests.unit.host.test_blocks import SELECTION

CLASSES = {"machine": ["fast", "slow"]}


def planned(machines: list[str] | None, **changes: Any) -> Plan:
    """The plan of a study on a machine whose executor has these classes."""
    study = Study.model_validate(study_values(**({"factors": CLASSES, "curve": None} | changes)))
    there: dict[str, Any] = {"cpu": None, "cuda": None}
    return make_plan("tiny", study, EngineChoice("none", ""), there, there, machines=machines)


def test_a_class_of_machine_is_a_factor_whose_runs_only_an_executor_makes() -> None:
    assert {run.unavailable for run in planned(["fast", "slow"]).runs} == {None}
    here = planned(None)
    why = "is to be had from an executor, and this start has none"
    assert {run.unavailable for run in here.runs} == {f"machine fast {why}", f"machine slow {why}"}
    assert len({run.key for run in here.runs}) == 2


def test_a_class_that_the_executor_lacks_is_refused_with_those_it_has() -> None:
    with refused("machine", "slow") as error:
        planned(["fast"])
    assert (error.source, error.allowed) == ("study tiny", "fast")
    with refused("machine", "fast"):
        planned([])


def test_every_device_counts_as_there_where_an_executor_makes_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    values = study_values(factors={"device": ["cpu", "cuda"]}, curve=None)
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    config = {"studies": ["tiny"], "container": "none"}
    here, elsewhere = (
        plans_for(Request(config=config, on_other_machines=far), [tmp_path], tmp_path)[0]
        for far in (False, True)
    )
    assert [run.unavailable is None for run in here.runs] == [
        run.settings.device == "cpu" for run in here.runs
    ]
    assert {run.unavailable for run in elsewhere.runs} == {None}
    assert [run.key for run in elsewhere.runs] == [run.key for run in here.runs]


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Clients of engines that have every image, on a machine without a GPU; the folder of a study
    for both devices."""
    monkeypatch.delenv("STUDY_CONTAINER", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for name in ("docker", "podman"):
        (tmp_path / name).write_text(
            """#!/bin/sh\ncase "$*" in *inspect*) echo '[{"Id": "1"}]';; *) echo 1;; esac\n"""
        )
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name in ("study.tar", "new.lock"):
        (tmp_path / name).touch()
    values = study_values(factors={"device": ["cpu", "cuda"]}, curve=None)
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    return tmp_path


def placed(folder: Path, on_other_machines: bool = True, **config: Any) -> str:
    """The engine of the runs of the study on both devices."""
    asked = Request(config={"studies": ["tiny"]} | config, on_other_machines=on_other_machines)
    return plans_for(asked, [folder], folder / "results")[0].engine


def test_an_executor_takes_no_engine_that_was_not_asked_for(engines: Path) -> None:
    assert placed(engines, on_other_machines=False) == "docker"
    assert placed(engines) == "none"


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_an_image_that_would_be_built_here_is_refused_with_its_key_whatever_devices_this_machine_has(
    engine: str, engines: Path
) -> None:
    cpu, cuda = {"cpu": str(engines / "study.tar")}, {"cuda": "registry/study:1"}
    for device, images in (("cpu", cuda), ("cuda", cpu)):
        with refused(f"images.{device}", None):
            placed(engines, container=engine, images=images)
    assert placed(engines, container=engine, images=cpu | cuda) == engine
    assert placed(engines, container=engine, images=cuda, devices=["cuda"]) == engine
    lock = str(engines / "new.lock")
    with refused("image", lock):
        placed(engines, container=engine, images=cpu | cuda, overrides={"image": [lock]})


def test_the_cpus_of_a_run_are_not_judged_by_the_machine_of_the_start(engines: Path) -> None:
    many = {"limits.cpus": 10_000}
    with refused("limits.cpus", 10_000):
        placed(engines, on_other_machines=False, container="none", overrides=many)
    assert placed(engines, container="none", overrides=many) == "none"


def test_a_job_reads_the_plans_of_its_start_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, files = planned(["fast", "slow"]), Results(tmp_path)
    write_plans([plan], tmp_path)
    forecast.note(plan, SELECTION, time.time(), files)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setenv(FORK_SERVERS, "1 code steps=/of/another/machine")
    machines = {"fast": {"constraint": "a100", "slurm_extra": "-w x"}}
    flow = joined({"studies": ["tiny"], "machines": machines}, tmp_path)
    assert FORK_SERVERS not in os.environ
    assert sorted(tmp_path.rglob("*")) == before
    assert flow.plans == [plan]
    asked = {
        block.runs[0].settings.machine: [
            flow.resource("tiny", name, key) for key in MachineClass.model_fields
        ]
        for (_, name), block in flow.blocks.items()
    }
    assert sorted(name.partition(".")[2] for _, name in flow.blocks) == ["fast", "slow"]
    assert asked == {
        "fast": [None, "a100", None, "--exclusive -w x"],
        "slow": [None, None, None, "--exclusive"],
    }


def test_the_number_of_processes_is_not_judged_by_the_machine_of_the_start() -> None:
    """`auto` is one process for each node's GPU, whatever this machine has."""
    factors = {"device": ["cuda"], "training.strategy": ["ddp", "ddp_two_nodes"]}
    training = {"freeze_epochs": 0, "processes": "auto", "batch_size": 8}
    plan = planned([], factors=factors, training=training)
    assert {run.unavailable for run in plan.runs} == {None}
    told = [run.settings.training for run in plan.runs]
    assert {one.strategy: one.replicas for one in told} == {"ddp": 1, "ddp_two_nodes": 2}


def test_without_an_extra_that_knows_a_scheduler_a_start_uses_this_machine_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("study.base.extras.EXTRAS", Path("/nowhere"))
    scheduler.cache_clear()
    assert scheduler() is None
    scheduler.cache_clear()


def test_a_start_leaves_what_runs_of_other_machines_are_writing(tmp_path: Path) -> None:
    own, other = (tmp_path / f".scratch-{name}-x" for name in (node(), "00000000"))
    for folder in (own, other):
        folder.mkdir()
    gone, nodes = 2**22 + 1, (node(), "00000000")  # above any process number
    mine, theirs = (tmp_path / f".record.json.{name}.{gone}.abcd.tmp" for name in nodes)
    for file in (mine, theirs):
        file.touch()
    lifetime.sweep(tmp_path)
    remove_unfinished(tmp_path)
    assert [path.exists() for path in (own, other, mine, theirs)] == [False, True, False, True]
