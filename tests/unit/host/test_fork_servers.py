"""Where a system cannot serve fork servers, every process starts from nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from study.artifacts.layout import Results
from study.base.files import package_sha256
from study.base.fork_server import FORK_SERVERS
from study.host.fork_servers import can_fork, start_fork_servers
from tests.conftest import ROOT
from tests.waiting import at_work, wait_for


def refused(number: int) -> int:
    raise OSError(38, "Function not implemented")


def test_a_kernel_without_what_a_fork_server_needs_gets_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(FORK_SERVERS, raising=False)
    monkeypatch.setattr(os, "pidfd_open", refused, raising=False)
    start_fork_servers([], [], Results(tmp_path))
    assert FORK_SERVERS not in os.environ


KILLED = """
import os, signal, sys
from pathlib import Path
from study.artifacts.layout import Results
from study.base.fork_server import FORK_SERVERS
from study.host.fork_servers import start_fork_server

os.environ[FORK_SERVERS] = f"{os.getpid()} code"
start_fork_server("cpu.torch", ["study.cli"], os.environ, Results(Path(sys.argv[1])))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not can_fork(), reason="this system has no fork servers")
def test_a_start_that_is_killed_before_its_fork_servers_have_begun_leaves_none(tmp_path: Path) -> None:
    """They take a moment to start, in which nobody would have told them to end with it."""
    environment = dict(os.environ) | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], env=environment, cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL
    wait_for(lambda: not at_work(tmp_path))


@pytest.mark.skipif(not can_fork(), reason="this system has no fork servers")
def test_a_start_takes_the_fork_servers_that_it_is_told_of_only_if_they_are_there_and_serve_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("study.host.fork_servers.start_fork_server", lambda *_: None)
    gone = subprocess.Popen(["true"])
    gone.wait()
    code = package_sha256()
    for told, taken in {
        f"{os.getpid()} {code} cpu.torch=/there": True,
        f"{gone.pid} {code} cpu.torch=/there": False,
        f"{os.getpid()} {'0' * 64} cpu.torch=/there": False,
        f"{os.getpid()}": False,
        "": False,
    }.items():
        monkeypatch.setenv(FORK_SERVERS, told)
        start_fork_servers([], [], Results(tmp_path))
        assert (os.environ[FORK_SERVERS] == told) is taken
