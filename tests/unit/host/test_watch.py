"""A run has the machine to itself: one lock that other processes hold, what others do from planted
counters, and whose CPU time is whose from real processes.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from study.artifacts.machine import Observed
from study.base import processes
from study.config.study import Evidence
from study.host.steps import attempt, command, watch
from study.host.steps.watch import Counters, alone_on_this_machine
from study.host.supervise import Spawned, supervise
from tests.conftest import ROOT

LIMITS = Evidence().model_dump()
START = Counters(
    now=100.0, busy=50.0, stolen=1.0, own=5.0, pressure={"io_pressure_percent": 2.0}, cpus=2
)


def later(**changes: object) -> Counters:
    """Ten seconds after ``START``, with 20 seconds of two CPUs between: 8 of them busy, 7 of these
    ours."""
    values = {"now": 110.0, "busy": 58.0, "own": 12.0, **changes}
    return Counters(**(START._asdict() | values))


def test_the_cpu_time_of_others_is_what_is_busy_less_what_is_ours() -> None:
    seen = watch.between(START, later(stolen=1.3, pressure={"io_pressure_percent": 4.5}))
    assert seen.others_cpu_percent == pytest.approx(5.0)
    assert seen.steal_percent == pytest.approx(1.5)
    assert seen.io_pressure_percent == pytest.approx(25.0)
    assert (seen.cpu_pressure_percent, seen.device_processes) == (None, None)
    # a container's second
    assert watch.between(START, later(), elsewhere=1.0).others_cpu_percent == pytest.approx(0.0)
    assert watch.between(START, later(), elsewhere=None).others_cpu_percent is None


def test_a_kernel_that_counts_nothing_gives_no_evidence() -> None:
    nothing = Counters(now=100.0, busy=0.0, stolen=0.0, own=5.0, pressure={}, cpus=16)
    assert watch.between(nothing, Counters(110.0, 0.0, 0.0, 12.0, {}, 16)) == Observed()


def test_a_limit_is_crossed_by_a_known_value_above_it_alone() -> None:
    within = Observed(others_cpu_percent=10.0, steal_percent=0.5, cpu_pressure_percent=99.0)
    assert within.crossed(LIMITS) == []
    above = Observed(others_cpu_percent=10.1, device_processes=1)
    assert above.crossed(LIMITS) == ["others_cpu_percent", "device_processes"]
    assert Observed(others_cpu_percent=99.0).crossed({"others_cpu_percent": None}) == []


def test_a_run_waits_for_a_quiet_machine_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    busy_until = 5.0

    def read(cpus: object) -> Counters:
        return Counters(now[0], 100 + min(now[0], busy_until), 0.0, 0.0, {}, 2)

    monkeypatch.setattr(watch, "read", read)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    before = watch.wait_until_quiet(Evidence(), 60, 0, None, "run 1 of 2: bs4")
    assert (before.quiet, before.waited_seconds) == (True, 5.0)
    said = "run 1 of 2: bs4: waiting up to 60 s for a quiet machine (others_cpu_percent 50)\n"
    assert capfd.readouterr().err == said
    now[0], busy_until = 0.0, 1000.0
    before = watch.wait_until_quiet(Evidence(), 3, 0, None, "run 2 of 2: bs8")
    assert (before.quiet, before.waited_seconds) == (False, 3.0)
    assert before.observed.others_cpu_percent == 50.0
    now[0] = 0.0
    assert watch.wait_until_quiet(Evidence(), 0, 0, None, "run 3").quiet is False
    assert now[0] == watch.WINDOW_SECONDS


def test_the_cpu_time_of_a_worker_that_outlives_its_parent_is_ours(tmp_path: Path) -> None:
    work = (
        "import time\nwhile time.process_time() < 0.5: pass\nopen('done', "
        "'w').close()\ntime.sleep(60)"
    )
    parent = f"""
import pathlib, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {work!r}], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while not pathlib.Path("done").exists(): time.sleep(0.01)
"""
    before = processes.cpu_seconds()
    with (tmp_path / "log").open("w") as log:
        command = ["env", "-C", str(tmp_path), sys.executable, "-c", parent]
        supervise(Spawned(command, {"PATH": "/usr/bin:/bin"}), log, "a test")
    assert processes.cpu_seconds() - before >= 0.5


def test_a_shell_around_a_containers_command_keeps_its_exit_code_and_counts_its_cpu_time(
    tmp_path: Path,
) -> None:
    code = "import sys, time\nwhile time.process_time() < 0.5: pass\nsys.exit(int(sys.argv[1]))"
    line = attempt.timed([sys.executable, "-c", code, "7"], str(tmp_path))
    assert subprocess.run(line).returncode == 7
    counted = attempt.shell_times((tmp_path / command.TIMES).read_text())
    assert counted is not None
    assert 0.49 <= counted < 60


HOLD = """
import sys
from study.host.steps.watch import alone_on_this_machine
with alone_on_this_machine("other, run 3 of 4"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def holder(held: ExitStack, **variables: str) -> "subprocess.Popen[str]":
    """Another process that asks for the lock, and gives it back at the end of its input."""
    process = held.enter_context(
        subprocess.Popen(
            [sys.executable, "-c", HOLD], cwd=ROOT, env={**os.environ, **variables}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
    )  # fmt: skip
    held.callback(process.kill)
    return process


def test_processes_with_different_folders_for_temporary_files_wait_for_each_other(
    held: ExitStack, tmp_path: Path
) -> None:
    with alone_on_this_machine("mine, run 1 of 2"):
        waiting = holder(held, TMPDIR=str(tmp_path))
        assert waiting.stderr and waiting.stdout
        told = "other, run 3 of 4: waiting: another pipeline measures on this machine\n"
        assert waiting.stderr.readline() == told
    assert waiting.stdout.readline() == "held\n"


def test_a_lock_ends_with_its_process(held: ExitStack, capfd: pytest.CaptureFixture[str]) -> None:
    killed = holder(held)
    assert killed.stdout and killed.stdout.readline() == "held\n"
    killed.kill()
    killed.wait()
    with alone_on_this_machine("mine"):
        pass
    assert capfd.readouterr().err == ""
