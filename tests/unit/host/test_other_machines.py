"""Runs that an executor makes on other machines: plans, jobs, allocations, and what a start leaves alone."""

import os
import shlex
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.artifacts.record_store import read_session
from study.base.files import remove_unfinished
from study.base.fork_server import FORK_SERVERS
from study.base.privacy import node
from study.config.selection import MachineClass
from study.config.settings import Settings
from study.config.study import Study
from study.host.allocation import MARGIN_SECONDS, allocation, end_of_allocation, nodes_of, requested_resources
from study.host.engine import lifetime
from study.host.engine.engine_choice import EngineChoice
from study.host.plan import forecast
from study.host.plan.make import make_plan
from study.host.plan.workflow import joined, plans_for
from tests.conftest import SLURM_PLUGIN, study_values, tiny_plan
from tests.errors import refused
from tests.unit.host.test_blocks import SELECTION

SLURM = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_PARTITION": "gpu",
    "SLURM_NNODES": "1",
    "SLURM_JOB_NODELIST": "g1",
    "SLURM_CPUS_ON_NODE": "16",
    "SLURM_GPUS_ON_NODE": "2",
}
"""The variables of a run's process: a step of Snakemake's plugin, on one node of its job."""
JOB = r"""
case "$2 $3" in
    "job 7") printf 'JobId=7 Restarts=1\n   ReqNodeList=(null)\n   NodeList=g[1-3]\n   NumNodes=3 NumCPUs=3\n';;
    "hostnames g[1-3]") printf 'g1\ng2\ng3\n';;
    node*) echo "NodeName=$3 NodeAddr=10.0.0.${3#g}";;
    *) exit 1;;
esac
"""
"""What `scontrol show` answers of its job, which has three nodes and was begun again once."""
CLASSES = {"machine": ["fast", "slow"]}


def planned(machines: list[str] | None, **changes: Any) -> Plan:
    """The plan of a study on a machine whose executor has these classes."""
    study = Study.model_validate(study_values(**({"factors": CLASSES, "curve": None} | changes)))
    return make_plan("tiny", study, EngineChoice("none", ""), {"cpu": None, "cuda": None}, machines=machines)


def test_a_class_of_machine_is_a_factor_whose_runs_only_an_executor_makes() -> None:
    assert {run.unavailable for run in planned(["fast", "slow"]).runs} == {None}
    here = planned(None)
    assert {run.unavailable for run in here.runs} == {
        "machine fast is to be had from an executor, and this start has none",
        "machine slow is to be had from an executor, and this start has none",
    }
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
    here, elsewhere = (plans_for(config, [tmp_path], tmp_path, on_other_machines=far)[0] for far in (False, True))
    assert [run.unavailable is None for run in here.runs] == [run.settings.device == "cpu" for run in here.runs]
    assert {run.unavailable for run in elsewhere.runs} == {None}
    assert [run.key for run in elsewhere.runs] == [run.key for run in here.runs]


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Clients of engines that have every image, on a machine without a GPU; the folder of a study for both devices."""
    for name in ("STUDY_CONTAINER", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for name in ("docker", "apptainer"):
        answers(tmp_path, monkeypatch, name, """case "$*" in *inspect*) echo '[{"Id": "1"}]';; *) echo 1;; esac""")
    for name in ("study.sif", "new.lock"):
        (tmp_path / name).touch()
    values = study_values(factors={"device": ["cpu", "cuda"]}, curve=None)
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(values), encoding="utf-8")
    return tmp_path


def placed(folder: Path, on_other_machines: bool = True, **config: Any) -> str:
    """The engine of the runs of the study on both devices."""
    whole = {"studies": ["tiny"]} | config
    return plans_for(whole, [folder], folder / "results", True, on_other_machines)[0].engine


def test_an_executor_takes_no_engine_that_was_not_asked_for(engines: Path) -> None:
    assert placed(engines, on_other_machines=False) == "docker"
    assert placed(engines) == "none"


@pytest.mark.parametrize("engine", ["docker", "apptainer"])
def test_an_image_that_would_be_built_here_is_refused_with_its_key_whatever_devices_this_machine_has(
    engine: str, engines: Path
) -> None:
    given = {"cpu": str(engines / "study.sif"), "cuda": "registry/study:1"}
    for device in given:
        with refused(f"images.{device}", None):
            placed(engines, container=engine, images={key: value for key, value in given.items() if key != device})
    assert placed(engines, container=engine, images=given) == engine
    assert placed(engines, container=engine, images={"cuda": given["cuda"]}, devices=["cuda"]) == engine
    with refused("image", str(engines / "new.lock")):
        placed(engines, container=engine, images=given, overrides={"image": [str(engines / "new.lock")]})


def test_the_cpus_of_a_run_are_not_judged_by_the_machine_of_the_start(engines: Path) -> None:
    many = {"limits.cpus": 10_000}
    with refused("limits.cpus", 10_000):
        placed(engines, on_other_machines=False, container="none", overrides=many)
    assert placed(engines, container="none", overrides=many) == "none"


def test_a_job_reads_the_plans_of_its_start_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, files = planned(["fast", "slow"]), Results(tmp_path)
    write_plans([plan], tmp_path)
    forecast.note(plan, SELECTION, time.time(), files)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setenv(FORK_SERVERS, "1 code steps=/of/another/machine")
    flow = joined({"studies": ["tiny"], "machines": {"fast": {"constraint": "a100", "slurm_extra": "-w x"}}}, tmp_path)
    assert FORK_SERVERS not in os.environ
    assert sorted(tmp_path.rglob("*")) == before
    assert flow.plans == [plan]
    asked = {
        block.runs[0].settings.machine: [flow.resource("tiny", name, key) for key in MachineClass.model_fields]
        for (_, name), block in flow.blocks.items()
    }
    assert sorted(name.partition(".")[2] for _, name in flow.blocks) == ["fast", "slow"]
    assert asked == {"fast": [None, "a100", None, "--exclusive -w x"], "slow": [None, None, None, "--exclusive"]}


class Job:
    """A run as SLURM's plugin sees it, with 16 threads."""

    def __init__(self, resources: dict[str, Any]) -> None:
        self.resources, self.threads = Resources(resources), 16


class Resources(dict[str, Any]):
    """Resources that are also read as attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    """SLURM's executor can be imported."""
    monkeypatch.syspath_prepend(SLURM_PLUGIN)


def submitted(settings: Settings, machines: dict[str, MachineClass]) -> set[str]:
    """What `sbatch` is told of a run with these settings, by SLURM's plugin."""
    plugin, utils = (
        pytest.importorskip(f"snakemake_executor_plugin_slurm.{part}", reason="needs `make dev`")
        for part in ("submit_string", "utils")
    )
    job = Job({name: value for name, value in requested_resources([settings], machines).items() if value is not None})
    params = dict.fromkeys(("run_uuid", "slurm_logfile", "comment_str", "account", "partition", "workdir"), "")
    words = shlex.split(plugin.get_submit_command(job, params) + utils.set_gres_string(job))
    return {word for word in words if word.startswith(("--exc", "--res", "--nodes", "--ntasks", "--gpus", "--gres"))}


def run_settings(device: str, strategy: str, processes: int, machine: str | None = None) -> Settings:
    """The settings of a planned run."""
    training = {"freeze_epochs": 0, "strategy": strategy, "processes": processes, "batch_size": 8}
    study = Study.model_validate(
        study_values(factors={"device": [device]}, curve=None, machine=machine, training=training)
    )
    machines = None if machine is None else [machine]
    none: dict[str, str | None] = {"cpu": None, "cuda": None}
    plan = make_plan("tiny", study, EngineChoice("none", ""), none, {"cpu": None, "cuda": None}, machines=machines)
    assert {run.unavailable for run in plan.runs} == {None}
    return plan.runs[0].settings


@pytest.mark.usefixtures("slurm")
@pytest.mark.parametrize(
    ("device", "strategy", "processes", "machine", "words"),
    [
        ("cpu", "single", 1, None, {"--ntasks=1"}),
        ("cpu", "ddp_two_nodes", 2, None, {"--nodes=2", "--ntasks=2"}),
        ("cuda", "single", 1, None, {"--gpus=1"}),
        ("cuda", "ddp", 4, None, {"--gpus=4"}),
        ("cuda", "ddp_two_nodes", 8, None, {"--nodes=2", "--gres=gpu:4"}),
        ("cuda", "ddp_two_nodes", 8, "big", {"--nodes=2", "--gres=gpu:a100:4", "--reservation=x"}),
    ],
)  # fmt: skip
def test_sbatch_is_asked_for_the_gpus_and_nodes_of_a_run_and_for_nothing_else_on_them(
    device: str, strategy: str, processes: int, machine: str | None, words: set[str]
) -> None:
    """A number of tasks would become tasks per GPU (snakemake-executor-plugin-slurm 2.8)."""
    machines = {"big": MachineClass.model_validate({"gres": "gpu:a100:4", "slurm_extra": "--reservation=x"})}
    assert submitted(run_settings(device, strategy, processes, machine), machines) == words | {"--exclusive"}


def test_a_block_asks_for_what_its_largest_run_needs() -> None:
    runs = [run_settings("cpu", "single", 1), run_settings("cuda", "single", 1), run_settings("cuda", "ddp", 4)]
    assert requested_resources(runs, {})["gpu"] == 4
    wide = requested_resources([*runs, run_settings("cuda", "ddp_two_nodes", 8)], {})
    assert (wide["nodes"], wide["gres"], wide["gpu"]) == (2, "gpu:4", None)


def test_the_number_of_processes_is_not_judged_by_the_machine_of_the_start() -> None:
    """`auto` is one process for each node's GPU, whatever this machine has."""
    study = Study.model_validate(
        study_values(
            factors={"device": ["cuda"], "training.strategy": ["ddp", "ddp_two_nodes"]},
            curve=None,
            training={"freeze_epochs": 0, "processes": "auto", "batch_size": 8},
        )
    )
    plan = make_plan("tiny", study, EngineChoice("none", ""), {"cuda": None}, {"cuda": None}, machines=[])
    assert {run.unavailable for run in plan.runs} == {None}
    assert {run.settings.training.strategy: run.settings.training.replicas for run in plan.runs} == {
        "ddp": 1, "ddp_two_nodes": 2,
    }  # fmt: skip


def answers(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, script: str) -> None:
    """Plant a command that answers by a script."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_a_record_tells_what_the_scheduler_gave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert allocation({}) is None
    answers(tmp_path, monkeypatch, "scontrol", JOB)
    found = allocation(SLURM, "fast")
    assert found
    assert found.model_dump() == {
        "scheduler": "slurm", "machine": "fast", "partition": "gpu", "nodes": 3, "cpus": 16, "gpus": 2, "restarts": 1,
    }  # fmt: skip
    answers(tmp_path, monkeypatch, "scontrol", "exit 1")
    odd = allocation({"SLURM_JOB_ID": "7", "SLURM_CPUS_ON_NODE": "many"})
    assert odd
    assert (odd.cpus, odd.partition, odd.nodes, odd.restarts) == (None, None, None, 0)


def test_the_machines_of_an_allocation_are_reached_by_steps_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(tmp_path, monkeypatch, "scontrol", JOB)
    found = nodes_of(2, SLURM)
    assert [node.address for node in found] == ["10.0.0.1", "10.0.0.2"]
    assert [node.command[-1] for node in found] == ["--nodelist=g1", "--nodelist=g2"]
    assert {node.command[1] for node in found} == {"--jobid=7"}
    assert nodes_of(4, SLURM) == []
    assert nodes_of(1, SLURM) == []
    assert nodes_of(2, {}) == []


def test_an_allocation_that_ends_is_a_time_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.time()
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(began + 600)))
    plan, files = tiny_plan(), Results(tmp_path)
    for budget, expected in ((None, int(began + 600) - MARGIN_SECONDS), (2.0, began + 120), (60.0, None)):
        forecast.note(plan, SELECTION.model_copy(update={"time_budget_minutes": budget}), began, files)
        session = read_session(files.session("tiny"))
        assert session.deadline == (expected or int(began + 600) - MARGIN_SECONDS)


def test_without_an_allocation_or_an_answer_of_slurm_there_is_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert end_of_allocation({}) is None
    assert end_of_allocation({"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": "soon"}) is None
    for script, expected in (("echo 1234", 1234.0), ("echo NONE", None), ("exit 1", None)):
        answers(tmp_path, monkeypatch, "squeue", f'test "$SLURM_TIME_FORMAT" = %s || exit 2\n{script}')
        assert end_of_allocation({"SLURM_JOB_ID": "7"}) == expected


def test_a_start_leaves_what_runs_of_other_machines_are_writing(tmp_path: Path) -> None:
    own, other = (tmp_path / f".scratch-{name}-x" for name in (node(), "00000000"))
    for folder in (own, other):
        folder.mkdir()
    gone = 2**22 + 1  # above any process number
    mine, theirs = (tmp_path / f".record.json.{name}.{gone}.abcd.tmp" for name in (node(), "00000000"))
    for file in (mine, theirs):
        file.touch()
    lifetime.sweep(tmp_path)
    remove_unfinished(tmp_path)
    assert [path.exists() for path in (own, other, mine, theirs)] == [False, True, False, True]
