"""What SLURM is asked for, and what it says of its allocations."""

import os
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from study.artifacts.layout import Results
from study.artifacts.record_store import read_session
from study.config.selection import MachineClass
from study.config.settings import Settings
from study.config.study import Study
from study.host.engine.engine_choice import EngineChoice
from study.host.plan import forecast
from study.host.plan.forecast import MARGIN_SECONDS
from study.host.plan.make import make_plan
from study_slurm.allocation import allocation, end_of_allocation, nodes_of, requested_resources
from tests.conftest import SLURM_PLUGIN, study_values, tiny_plan
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


class Job:
    """A run as SLURM's plugin sees it, with 16 threads."""

    def __init__(self, resources: dict[str, Any]) -> None:
        self.resources, self.threads = Resources(resources), 16


class Resources(dict[str, Any]):
    """Resources that are also read as attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def answers(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, script: str) -> None:
    """Plant a command that answers by a script."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


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
    job = Job(
        {
            name: value
            for name, value in requested_resources([settings], machines).items()
            if value is not None
        }
    )
    params = dict.fromkeys(
        ("run_uuid", "slurm_logfile", "comment_str", "account", "partition", "workdir"), ""
    )
    words = shlex.split(plugin.get_submit_command(job, params) + utils.set_gres_string(job))
    return {
        word
        for word in words
        if word.startswith(("--exc", "--res", "--nodes", "--ntasks", "--gpus", "--gres"))
    }


def run_settings(
    device: str, strategy: str, processes: int, machine: str | None = None
) -> Settings:
    """The settings of a planned run."""
    training = {"freeze_epochs": 0, "strategy": strategy, "processes": processes, "batch_size": 8}
    study = Study.model_validate(
        study_values(factors={"device": [device]}, curve=None, machine=machine, training=training)
    )
    machines = None if machine is None else [machine]
    none: dict[str, str | None] = {"cpu": None, "cuda": None}
    plan = make_plan(
        "tiny",
        study,
        EngineChoice("none", ""),
        none,
        {"cpu": None, "cuda": None},
        machines=machines,
    )
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
    machines = {
        "big": MachineClass.model_validate({"gres": "gpu:a100:4", "slurm_extra": "--reservation=x"})
    }
    assert submitted(run_settings(device, strategy, processes, machine), machines) == words | {
        "--exclusive"
    }


def test_a_block_asks_for_what_its_largest_run_needs() -> None:
    runs = [
        run_settings("cpu", "single", 1),
        run_settings("cuda", "single", 1),
        run_settings("cuda", "ddp", 4),
    ]
    assert requested_resources(runs, {})["gpu"] == 4
    wide = requested_resources([*runs, run_settings("cuda", "ddp_two_nodes", 8)], {})
    assert (wide["nodes"], wide["gres"], wide["gpu"]) == (2, "gpu:4", None)


def test_a_record_tells_what_the_scheduler_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert allocation(None, {}) is None
    answers(tmp_path, monkeypatch, "scontrol", JOB)
    found = allocation("fast", SLURM)
    assert found
    assert found.model_dump() == {
        "scheduler": "slurm",
        "machine": "fast",
        "partition": "gpu",
        "nodes": 3,
        "cpus": 16,
        "gpus": 2,
        "restarts": 1,
    }
    answers(tmp_path, monkeypatch, "scontrol", "exit 1")
    odd = allocation(None, {"SLURM_JOB_ID": "7", "SLURM_CPUS_ON_NODE": "many"})
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


def test_an_allocation_that_ends_is_a_time_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.time()
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(int(began + 600)))
    plan, files = tiny_plan(), Results(tmp_path)
    for budget, expected in (
        (None, int(began + 600) - MARGIN_SECONDS),
        (2.0, began + 120),
        (60.0, None),
    ):
        forecast.note(
            plan, SELECTION.model_copy(update={"time_budget_minutes": budget}), began, files
        )
        session = read_session(files.session("tiny"))
        assert session.deadline == (expected or int(began + 600) - MARGIN_SECONDS)


def test_without_an_allocation_or_an_answer_of_slurm_there_is_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert end_of_allocation({}) is None
    assert end_of_allocation({"SLURM_JOB_ID": "7", "SLURM_JOB_END_TIME": "soon"}) is None
    for script, expected in (("echo 1234", 1234.0), ("echo NONE", None), ("exit 1", None)):
        answers(
            tmp_path, monkeypatch, "squeue", f'test "$SLURM_TIME_FORMAT" = %s || exit 2\n{script}'
        )
        assert end_of_allocation({"SLURM_JOB_ID": "7"}) == expected
