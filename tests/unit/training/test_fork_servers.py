"""What a fork server of runs imports leaves it fit to be forked, and what it calls is there."""

import os
import sys
from pathlib import Path

import psutil
import pytest

from study.artifacts.layout import Results
from study.base.devices import usable_cpus
from study.base.fork_server import FORK_SERVERS
from study.host.engine import container
from study.host.fork_servers import JOB_MODULE, Forked, can_fork, fork_server_of, start_fork_servers
from tests.conftest import tiny_plan
from tests.unit.training.forks import said_by_forks

MODULES = ("loops.torch.loop", "loops.inference.loop")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has fork servers")
def test_a_fork_server_of_runs_has_one_thread_and_has_started_no_gpu() -> None:
    """Of several threads only one would live on in a forked process, without the locks that the others held."""
    programs = [
        f"import os, {JOB_MODULE}, study.training.{module}, torch\n"
        "print(len(os.listdir('/proc/self/task')), torch.cuda.is_initialized())"
        for module in MODULES
    ]
    assert said_by_forks(programs) == ["1 False"] * len(MODULES)


@pytest.mark.skipif(not can_fork() or usable_cpus() < 2, reason="needs fork servers and two CPUs")
def test_torch_has_the_threads_of_the_limit_in_a_forked_run_as_in_a_fresh_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch chooses their number when it is imported: a fork server on all CPUs would have chosen too many."""
    monkeypatch.setenv(FORK_SERVERS, "")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    plan = tiny_plan(limits={"cpus": 1})
    settings, before = plan.runs[0].settings, set(psutil.Process().children())
    try:
        start_fork_servers([plan], [(plan.name, plan.runs[0].name)], Results(tmp_path))
        fork_server, says = fork_server_of(settings), "import torch; print(torch.get_num_threads())"
        assert fork_server is not None
        process = Forked(fork_server, "builtins:exec", [says], container.environment("cpu", os.environ))
        assert list(process.lines) == ["1\n"]
        assert process.wait() == 0
    finally:
        for one in set(psutil.Process().children()) - before:
            one.kill()
            one.wait()
