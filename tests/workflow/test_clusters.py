"""Runs on other machines: the generic executor, and a real SLURM of two nodes (`.ci/slurm
start`)."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

from tests.conftest import SLURM_PLUGIN
from tests.waiting import wait_for
from tests.workflow.conftest import ALONE, OWN_MODEL, START, Checkout

pytestmark = pytest.mark.thorough

LONGEST_WAIT = 300.0
SLURM = [
    "--profile",
    "profiles/slurm",
    "--jobs",
    "2",
    "--slurm-status-command",
    "squeue",
    "--slurm-init-seconds-before-status-checks",
    "2",
    "--slurm-no-account",
    "--set-threads",
    "measure=1",
    "--set-resources",
    "measure:mem_mb=500",
    "measure:runtime=20",
]
"""The profile, on nodes of one CPU, without accounting."""


def told(*command: str) -> list[str]:
    """The lines that a command of SLURM's prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


NEEDS_CLUSTER_SYNC = pytest.mark.skipif(
    find_spec("snakemake_executor_plugin_cluster_sync") is None,
    reason="needs snakemake-executor-plugin-cluster-sync (`make dev`)",
)


@pytest.fixture(scope="session")
def cluster() -> None:
    """Two nodes that are idle."""
    if not SLURM_PLUGIN.is_dir() or not shutil.which("sinfo"):
        pytest.skip(
            "needs SLURM and snakemake-executor-plugin-slurm (`.ci/slurm start`, `make dev`)"
        )
    answer = subprocess.run(
        ["sinfo", "-h", "-N", "-o", "%N"], capture_output=True, text=True, check=False
    )
    if set(answer.stdout.split()) != {"n1", "n2"}:
        pytest.skip("needs the cluster of `.ci/slurm start`")


def command(options: Sequence[str], *config: str) -> list[str]:
    """Snakemake with an executor, as a user calls it."""
    base = [sys.executable, *START, *options, "--config", "studies=[tiny]", "container=none"]
    return [*base, *ALONE, *config]


def running() -> list[str]:
    """The nodes on which a run's job is."""
    return told("squeue", "-h", "-t", "R", "-o", "%N", "--partition", "main")


def jobs(checkout: Checkout) -> list[dict[str, str]]:
    """What SLURM says of each job of a checkout, ended ones included."""
    found = [
        dict(re.findall(r"(\w+)=(\S*)", line))
        for line in told("scontrol", "show", "job", "--oneliner")
    ]
    return [job for job in found if job.get("WorkDir") == str(checkout.root)]


def job_on(checkout: Checkout, node: str) -> dict[str, str]:
    """What SLURM says of the checkout's job that runs on a node; nothing if none does."""
    return next(
        (job for job in jobs(checkout) if (job["JobState"], job["NodeList"]) == ("RUNNING", node)),
        {},
    )


def sent_back(checkout: Checkout, job: dict[str, str]) -> bool:
    """Whether SLURM has ended a job that ran, and lets it wait to begin again."""
    (now,) = (one for one in jobs(checkout) if one["JobId"] == job["JobId"])
    return now["JobState"] == "PENDING" and int(now["Restarts"]) == int(job["Restarts"]) + 1


WAIT = """
    while Path("held").exists() and "SLURM_JOB_ID" in os.environ:
        Path("waits-" + os.environ["SLURM_JOB_ID"]).touch()
        time.sleep(0.1)
"""
"""What a run does in each step: it waits while its checkout is held, and tells it by a file."""


def waiting(checkout: Checkout) -> dict[str, str]:
    """What SLURM says of the checkout's job that waits in a step, and so has no record yet; nothing
    if none does.

    The other job waits for the machine.
    """
    found = (job_on(checkout, node) for node in ("n1", "n2"))
    return next(
        (job for job in found if (checkout.root / f"waits-{job.get('JobId')}").exists()), {}
    )


@contextmanager
def held(checkout: Checkout) -> Iterator[None]:
    """No run that waits for the file `held` goes on."""
    for old in checkout.root.glob("waits-*"):
        old.unlink()
    file = checkout.root / "held"
    file.touch()
    try:
        yield
    finally:
        file.unlink()


@NEEDS_CLUSTER_SYNC
def test_an_executor_makes_the_blocks_in_jobs_that_neither_plan_nor_lock(plain: Checkout) -> None:
    options = ["--executor", "cluster-sync", "--cluster-sync-submit-cmd", "bash", "--jobs", "2"]
    done = plain.run(command(options, "overrides={replicates: 1}"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tiny on cpu: 2 runs pending in 1 block, 0 done" in done.stderr
    assert "block 1 of 1, run 2 of 2: " in done.stderr  # the last line of its job
    made = plain.measured()
    told = {
        (record.outcome, record.started_as, record.session, record.allocation)
        for record in made.values()
    }
    assert told == {("ok", "forked", 1, None)}
    assert plain.page()
    again = plain.run(command(options, "overrides={replicates: 1}"))
    assert "nothing is left to do: the report is up to date" in again.stderr
    assert plain.measured() == made


@pytest.mark.xdist_group("slurm")
@pytest.mark.usefixtures("cluster")
class TestSlurm:
    """Both nodes are this machine, whose kernel lets one run measure at a time: two jobs are there
    at once, and never two measurements."""

    @pytest.fixture(autouse=True)
    def executor(self, plain: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let Snakemake find SLURM's executor."""
        monkeypatch.setitem(plain.variables, "PYTHONPATH", str(SLURM_PLUGIN))

    def test_each_class_of_machine_gets_its_runs_and_the_records_tell_it(
        self, plain: Checkout
    ) -> None:
        plain.study("tiny", factors={"machine": ["little", "big"]}, curve=None, replicates=1)
        little, big = {"constraint": "small", "slurm_extra": "--nice=7"}, {"constraint": "large"}
        done = plain.run(command(SLURM, f"machines={json.dumps({'little': little, 'big': big})}"))
        assert done.returncode == 0, done.stdout + done.stderr
        made = {record.settings.machine: record for record in plain.measured().values()}
        assert set(made) == {"little", "big"}
        assert len({record.node for record in made.values()}) == 2
        for name, record in made.items():
            given = record.allocation
            assert record.outcome == "ok"
            assert given and (given.machine, given.partition, given.nodes, given.cpus) == (
                name,
                "main",
                1,
                1,
            )
        asked = {job["Features"]: (job["OverSubscribe"], job["Nice"]) for job in jobs(plain)}
        assert asked == {"small": ("NO", "7"), "large": ("NO", "0")}

    def test_a_run_on_two_nodes_has_a_process_on_each_and_the_losses_of_one_process(
        self, plain: Checkout
    ) -> None:
        plain.plant("Path('at-' + os.environ.get('SLURMD_NODENAME', 'home')).touch()")
        factors = {"training.strategy": ["single", "ddp_two_nodes"]}
        plain.study("tiny", model=OWN_MODEL, factors=factors, curve=None, replicates=1)
        done = plain.run(command(SLURM))
        assert done.returncode == 0, done.stdout + done.stderr
        made = {record.settings.training.strategy: record for record in plain.measured().values()}
        assert {record.outcome for record in made.values()} == {"ok"}
        # A block is on the machines that its largest run needs.
        assert {record.allocation and record.allocation.nodes for record in made.values()} == {2}
        assert {path.name for path in plain.root.glob("at-n*")} == {"at-n1", "at-n2"}
        one, two = (made[strategy].measurement for strategy in ("single", "ddp_two_nodes"))
        assert one and two
        assert len(two.replicas) == 2
        assert two.epochs[0].train_loss == pytest.approx(one.epochs[0].train_loss, rel=1e-4)

    def test_a_cancelled_job_a_node_that_goes_down_and_a_preemption_cost_no_record(
        self, plain: Checkout
    ) -> None:
        plain.plant(WAIT)
        plain.study("tiny", model=OWN_MODEL, replicates=3)
        with (plain.root / "said").open("w") as said:
            start = subprocess.Popen(
                command(SLURM), cwd=plain.root, env=plain.environment(), stdout=said, stderr=said
            )  # fmt: skip
            try:
                with held(plain):
                    wait_for(
                        lambda: sorted(running()) == ["n1", "n2"],
                        LONGEST_WAIT,
                        "two jobs run at once",
                    )
                wait_for(lambda: plain.records(), LONGEST_WAIT, "a run is measured")
                with held(plain):
                    wait_for(running, LONGEST_WAIT, "another job runs")
                    told(
                        "scancel",
                        told("squeue", "-h", "-t", "R", "-o", "%i", "--partition", "main")[0],
                    )
                    wait_for(
                        lambda: job_on(plain, "n2"), LONGEST_WAIT, "a job runs on the second node"
                    )
                    lost = job_on(plain, "n2")["Comment"]
                    told("scontrol", "update", "nodename=n2", "state=down", "reason=test")
                before = plain.records()
                wait_for(
                    lambda: plain.records().keys() - before.keys(),
                    LONGEST_WAIT,
                    "the other node goes on",
                )
                told("scontrol", "update", "nodename=n2", "state=resume")
                with held(plain):
                    wait_for(lambda: waiting(plain), LONGEST_WAIT, "a job waits in a step")
                    job = waiting(plain)
                    urgent = [
                        "--partition",
                        "urgent",
                        "--nodelist",
                        job["NodeList"],
                        "--output",
                        "/dev/null",
                    ]
                    told("sbatch", *urgent, "--wrap", "sleep 2")
                    wait_for(lambda: sent_back(plain, job), LONGEST_WAIT, "the job is sent back")
                # The scheduler gives a job that was sent back a pause, and Snakemake asks for it
                # more and more rarely.
                assert start.wait(2 * LONGEST_WAIT) == 0, (plain.root / "said").read_text()
            finally:
                start.terminate()
                start.wait()
                subprocess.run(
                    ["scontrol", "update", "nodename=n2", "state=resume"],
                    capture_output=True,
                    check=False,
                )
        made = plain.records()
        assert len(made) == 6
        aside = {
            path.read_bytes() for path in plain.root.glob("results/tiny/records/broken/*.json")
        }
        assert {*before.values()} <= {*made.values()} | aside
        assert {record.outcome for record in plain.measured().values()} == {"ok"}
        block = re.search(r"(\d+)-[0-9a-f]{8}", job["Comment"])
        assert block
        given = [
            one.allocation for one in plain.measured().values() if one.block == int(block.group(1))
        ]
        # what a lost node still ended was no job's second start
        assert all(one and one.restarts >= 1 for one in given) or job["Comment"] == lost
        assert "6 runs, " in plain.page()

    def test_an_allocation_that_ends_leaves_whole_blocks_and_a_report(
        self, plain: Checkout
    ) -> None:
        """Each run but those that begin later waits until the time for runs is over: the minute
        before the end."""
        plain.plant("""
            import json
            start = json.loads(Path("results/tiny/session.json").read_text())
            time.sleep(max(0, start["deadline"] - time.time()) if "SLURM_JOB_ID" in os.environ else 0)
        """)
        plain.study("tiny", model=OWN_MODEL, replicates=3)
        wrapped = " ".join(map(repr, plain.command()))
        line = [
            "sbatch",
            "--wait",
            "--exclusive",
            "--time",
            "3",
            "--output",
            "said",
            "--wrap",
            wrapped,
        ]
        done = subprocess.run(
            line, cwd=plain.root, env=plain.environment(), capture_output=True, text=True
        )
        words = (plain.root / "said").read_text(encoding="utf-8")
        assert done.returncode == 0, done.stderr + words
        assert sorted(record.block for record in plain.measured().values()) == [1, 1]
        assert "2 of 6 planned runs are there" in plain.page()
