"""A process and what it leaves behind: none of it outlives the call, nor keeps the call from ending."""

import sys
import time
from pathlib import Path

import psutil
import pytest

from study.host.supervise import Ended, execute

LEAVER = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
print(child.pid, flush=True)
"""
"""Starts a process in a session of its own, which holds this one's output open."""


def ended(tmp_path: Path, code: str, timeout_seconds: float | None = None) -> Ended:
    with (tmp_path / "log").open("w") as log:
        return execute([sys.executable, "-c", code], {}, log, "a test", timeout_seconds=timeout_seconds)


@pytest.mark.parametrize(
    ("ending", "code", "timed_out"),
    [("sys.exit(3)", 3, False), ("time.sleep(1000)", -9, True), ("import os; os.kill(os.getpid(), 15)", -15, False)],
)
def test_what_a_process_left_in_a_session_of_its_own_ends_with_it(
    tmp_path: Path, ending: str, code: int, timed_out: bool
) -> None:
    found = ended(tmp_path, LEAVER + ending, timeout_seconds=3 if timed_out else None)
    assert (found.code, found.timed_out) == (code, timed_out)
    assert not psutil.pid_exists(int(found.tail[0]))


def test_a_process_that_was_there_before_is_left_alone(tmp_path: Path) -> None:
    with psutil.Popen([sys.executable, "-c", "import time; time.sleep(1000)"]) as other:
        assert ended(tmp_path, "print('done')").tail == ["done"]
        time.sleep(0.1)
        assert other.is_running() and other.status() != psutil.STATUS_ZOMBIE
        other.kill()
