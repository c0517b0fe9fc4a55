"""One measurement at a time on a machine: the lock, held by other processes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from study.base.errors import StudyError
from study.host.steps.watch import alone_on_this_machine
from tests.conftest import ROOT

HOLD = """
import sys
from study.host.steps.watch import alone_on_this_machine
with alone_on_this_machine("other, run 3 of 4"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def processes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def holder(processes: ExitStack, **variables: str) -> "subprocess.Popen[str]":
    """Another process that asks for the lock, and gives it back at the end of its input."""
    process = processes.enter_context(
        subprocess.Popen(
            [sys.executable, "-c", HOLD], cwd=ROOT, env={**os.environ, **variables}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
    )  # fmt: skip
    processes.callback(process.kill)
    return process


def test_processes_with_different_folders_for_temporary_files_wait_for_each_other(
    processes: ExitStack, tmp_path: Path
) -> None:
    with alone_on_this_machine("mine, run 1 of 2"):
        waiting = holder(processes, TMPDIR=str(tmp_path))
        assert waiting.stderr and waiting.stdout
        told = f"other, run 3 of 4: waiting: mine, run 1 of 2 (process {os.getpid()}) measures on this machine\n"
        assert waiting.stderr.readline() == told
    assert waiting.stdout.readline() == "held\n"


def test_a_lock_ends_with_its_process(processes: ExitStack, capfd: pytest.CaptureFixture[str]) -> None:
    killed = holder(processes)
    assert killed.stdout and killed.stdout.readline() == "held\n"
    killed.kill()
    killed.wait()
    with alone_on_this_machine("mine"):
        pass
    assert capfd.readouterr().err == ""


def test_pipelines_that_share_out_the_cores_on_purpose_do_not_wait(processes: ExitStack) -> None:
    with alone_on_this_machine("mine"):
        beside = holder(processes, STUDY_MACHINE="the second half of the cores")
        assert beside.stdout and beside.stdout.readline() == "held\n"


def test_what_a_holder_says_cannot_steer_the_terminal(processes: ExitStack) -> None:
    with alone_on_this_machine("\x1b[2J\nerror: nothing"):
        waiting = holder(processes)
        assert waiting.stderr
        assert "\\x1b[2J\\nerror: nothing" in waiting.stderr.readline()


def test_a_name_that_no_lock_can_have_is_an_error_and_no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDY_MACHINE", "x" * 200)
    with (
        pytest.raises(StudyError, match="STUDY_MACHINE: no lock of this name can be taken"),
        alone_on_this_machine("a"),
    ):
        pass
