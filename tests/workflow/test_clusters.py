"""Runs on other machines: the generic executor, and a real SLURM of two nodes (`.ci/slurm start`)."""

import importlib.util
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import pytest

from study.artifacts.record import Record
from tests.workflow.conftest import ALONE, Checkout

LONGEST_WAIT = 300.0
SLURM = [
    "--profile", "profiles/slurm", "--jobs", "2", "--slurm-status-command", "squeue",
    "--slurm-init-seconds-before-status-checks", "2", "--slurm-no-account", "--set-threads", "measure=1",
    "--set-resources", "measure:mem_mb=500", "measure:runtime=20", "measure:slurm_extra=--exclusive",
]  # fmt: skip
"""The profile, on nodes of one CPU, without accounting."""


def told(*command: str) -> list[str]:
    """The lines that a command of SLURM's prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def is_there(plugin: str) -> bool:
    return importlib.util.find_spec(f"snakemake_executor_plugin_{plugin}") is not None


@pytest.fixture(scope="session")
def cluster() -> None:
    """Two nodes that are idle."""
    if not is_there("slurm") or not shutil.which("sinfo"):
        pytest.skip("needs SLURM and snakemake-executor-plugin-slurm (`.ci/slurm start`, `make dev`)")
    answer = subprocess.run(["sinfo", "-h", "-N", "-o", "%N"], capture_output=True, text=True, check=False)
    if set(answer.stdout.split()) != {"n1", "n2"}:
        pytest.skip("needs the cluster of `.ci/slurm start`")


def command(options: Sequence[str], *config: str) -> list[str]:
    """Snakemake with an executor, as a user calls it."""
    base = [sys.executable, "-m", "snakemake", *options, "--config", "studies=[tiny]", "container=none"]
    return [*base, *ALONE, *config]


def records(checkout: Checkout) -> dict[str, Record]:
    return {name: Record.model_validate_json(content) for name, content in checkout.records().items()}


def until(happens: Callable[[], object], what: str) -> None:
    """Wait until something is so."""
    end = time.monotonic() + LONGEST_WAIT
    while not happens():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.2)


def running() -> list[str]:
    """The nodes on which a run's job is."""
    return told("squeue", "-h", "-t", "R", "-o", "%N", "--partition", "main")


@pytest.mark.skipif(not is_there("cluster_sync"), reason="needs snakemake-executor-plugin-cluster-sync (`make dev`)")
def test_an_executor_makes_the_runs_in_jobs_that_neither_plan_nor_lock(plain: Checkout) -> None:
    options = ["--executor", "cluster-sync", "--cluster-sync-submit-cmd", "bash", "--jobs", "2"]
    done = plain.run(command(options, "overrides={replicates: 1}"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tiny on cpu: 2 runs to make in 1 block, 0 there already" in done.stderr
    assert {f"run {number} of 2: " in done.stderr for number in (1, 2)} == {True}
    made = records(plain)
    assert {record.outcome for record in made.values()} == {"ok"}
    assert {record.started_as for record in made.values()} == {"fresh"}
    assert {record.session for record in made.values()} == {1}
    assert {record.allocation for record in made.values()} == {None}
    assert (plain.root / "results" / "report.html").is_file()
    again = plain.run(command(options, "overrides={replicates: 1}"))
    assert "nothing is left to do: the report is up to date" in again.stderr
    assert records(plain) == made


@pytest.mark.xdist_group("slurm")
@pytest.mark.usefixtures("cluster")
class TestSlurm:
    def test_each_class_of_machine_gets_its_runs_and_the_records_tell_it(self, plain: Checkout) -> None:
        plain.study("tiny", factors={"machine": ["little", "big"]}, curve=None, replicates=1)
        classes = 'machines={"little": {"constraint": "small"}, "big": {"constraint": "large"}}'
        done = plain.run(command(SLURM, classes))
        assert done.returncode == 0, done.stdout + done.stderr
        made = {record.settings.machine: record for record in records(plain).values()}
        assert set(made) == {"little", "big"}
        assert len({record.node for record in made.values()}) == 2
        for name, record in made.items():
            assert record.outcome == "ok"
            assert record.allocation
            assert (record.allocation.machine, record.allocation.partition) == (name, "main")
            assert (record.allocation.nodes, record.allocation.cpus) == (1, 1)

    def test_a_cancelled_job_a_node_that_goes_down_and_a_preemption_cost_no_record(self, plain: Checkout) -> None:
        environment = plain.environment()
        with (plain.root / "said").open("w") as said:
            start = subprocess.Popen(
                command(SLURM, "overrides={replicates: 4}"),
                cwd=plain.root, env=environment, stdout=said, stderr=said,
            )  # fmt: skip
            try:
                until(lambda: sorted(running()) == ["n1", "n2"], "two jobs run at once, on two nodes")
                until(lambda: plain.records(), "a run is measured")
                until(running, "another job runs")
                told("scancel", told("squeue", "-h", "-t", "R", "-o", "%i", "--partition", "main")[0])
                until(lambda: "n2" in running(), "a job runs on the second node")
                told("scontrol", "update", "nodename=n2", "state=down", "reason=test")
                before = plain.records()
                until(lambda: len(plain.records()) > len(before), "the other node goes on")
                told("scontrol", "update", "nodename=n2", "state=resume")
                until(lambda: "n1" in running(), "a job runs on the first node")
                told(
                    "sbatch", "--partition", "urgent", "--nodelist", "n1", "--output", "/dev/null", "--wrap", "sleep 2"
                )
                # The scheduler gives a job that was sent back a pause, and Snakemake asks for it more and more rarely.
                assert start.wait(2 * LONGEST_WAIT) == 0, (plain.root / "said").read_text()
            finally:
                start.terminate()
                start.wait()
                subprocess.run(["scontrol", "update", "nodename=n2", "state=resume"], capture_output=True, check=False)
        made = plain.records()
        assert len(made) == 8
        assert before.items() <= made.items()
        assert {record.outcome for record in records(plain).values()} == {"ok"}
        assert "8 of 8 CPU runs" in (plain.root / "results" / "report.html").read_text(encoding="utf-8")
