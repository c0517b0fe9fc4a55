"""A process and what it leaves behind: none of it outlives the call, nor keeps the call from
ending."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from study.host import supervise
from study.host.engine import lifetime
from study.host.supervise import Ended, Spawned
from tests.conftest import ROOT

LEAVER = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
print(child.pid, flush=True)
"""
"""Starts a process in a session of its own, which holds this one's output open."""


CLEANER = """
import sys, time
from study.base.processes import end_when_told
from study.host.supervise import Spawned, supervise

end_when_told()
try:
    supervise(Spawned([sys.executable, "-c", "import time; time.sleep(1000)"], {}), open("log", "w"), "a test")
finally:
    print("cleaning", flush=True)
    time.sleep(1)
    print("clean", flush=True)
"""
"""What a step does with a container, which it removes once the engine's client has ended."""


def ended(tmp_path: Path, code: str, timeout_seconds: float | None = None) -> Ended:
    with (tmp_path / "log").open("w") as log:
        spawned = Spawned([sys.executable, "-c", code], {})
        return supervise.supervise(spawned, log, "a test", timeout_seconds)


@pytest.mark.parametrize(
    ("ending", "code", "timed_out"),
    [
        ("sys.exit(3)", 3, False),
        ("time.sleep(1000)", -9, True),
        ("import os; os.kill(os.getpid(), 15)", -15, False),
    ],
)
def test_what_a_process_left_in_a_session_of_its_own_ends_with_it(
    tmp_path: Path, ending: str, code: int, timed_out: bool
) -> None:
    found = ended(tmp_path, LEAVER + ending, timeout_seconds=3 if timed_out else None)
    reason = "timed out after 3 s (limits.timeout_seconds)" if timed_out else None
    assert (found.code, found.trouble) == (code, reason)
    assert not psutil.pid_exists(int(found.tail[0]))


def test_a_process_that_was_there_before_is_left_alone(tmp_path: Path) -> None:
    with psutil.Popen([sys.executable, "-c", "import time; time.sleep(1000)"]) as other:
        assert ended(tmp_path, "print('done')").tail == ["done"]
        time.sleep(0.1)
        assert other.is_running() and other.status() != psutil.STATUS_ZOMBIE
        other.kill()


def test_a_process_that_has_written_too_much_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "LOOK_SECONDS", 0.1)
    code = (
        "import time\nwith open('big', 'wb', 0) as file:\n    while file.write(b'x' * "
        "2**20): time.sleep(0.01)"
    )
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "log").open("w") as log:
        writer = Spawned([sys.executable, "-c", code], {})
        found = supervise.supervise(
            writer, log, "a test", full=lambda: lifetime.overfull(tmp_path, 4 * 2**20)
        )
    assert (found.code, str(found.trouble)[:13]) == (-9, "it wrote more")


def test_a_second_signal_does_not_cut_the_cleaning_short(tmp_path: Path) -> None:
    """The kernel signals the death of a parent with threads more than once."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", CLEANER]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as step:
        while not psutil.Process(step.pid).children():
            time.sleep(0.05)
        time.sleep(0.5)
        step.terminate()
        assert step.stdout is not None
        assert step.stdout.readline() == "cleaning\n"
        step.terminate()
        assert step.stdout.read() == "clean\n"
    assert step.returncode == 128 + signal.SIGTERM
