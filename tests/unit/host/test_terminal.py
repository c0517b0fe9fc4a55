"""Of Snakemake's words a start shows warnings and errors, and says each step that did not end
well."""

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from snakemake.settings.types import OutputSettings
from snakemake_interface_logger_plugins.common import LogEvent

from study.host.plan import terminal, workflow
from study.host.plan.terminal import Course, LogHandler
from tests.conftest import ROOT


@pytest.fixture
def course(monkeypatch: pytest.MonkeyPatch) -> Course:
    """A start of which nothing was told yet."""
    fresh = Course()
    monkeypatch.setattr(terminal, "COURSE", fresh)
    return fresh


def tell(words: str = "", level: int = logging.INFO, **told: Any) -> None:
    """Let Snakemake say something."""
    record = logging.makeLogRecord({"msg": words, "levelno": level} | told)
    LogHandler(OutputSettings(), None).emit(record)


def test_warnings_are_shown_and_an_error_is_kept_for_the_end(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    tell("Select jobs to execute...")
    tell("3 of 4 steps", event=LogEvent.PROGRESS, done=3, total=4)
    tell("a warning", logging.WARNING)
    tell("WorkflowError: planted", logging.ERROR, event=LogEvent.ERROR)
    assert capsys.readouterr().err == "a warning\n"
    assert (course.errors, course.began, course.failed) == (
        ["WorkflowError: planted"],
        False,
        False,
    )


@pytest.mark.parametrize("remote", [False, True])
def test_how_a_step_ended_is_said_where_an_executor_made_it_and_a_failure_everywhere(
    course: Course, capsys: pytest.CaptureFixture[str], tmp_path: Path, remote: bool
) -> None:
    course.remote = remote
    log = tmp_path / "block.log"
    log.write_text("block 1 of 1, run 1 of 2: ok\nblock 1 of 1, run 2 of 2: \x1b[2Jok\n")
    tell(event=LogEvent.JOB_INFO, jobid=7, rule_name="measure", log=[str(log)])
    tell(event=LogEvent.JOB_FINISHED, job_id=7)
    said = "block 1 of 1, run 2 of 2: \\x1b[2Jok\n"
    assert capsys.readouterr().err == (said if remote else "")
    log.write_text("error: planted\n")
    tell(level=logging.ERROR, event=LogEvent.JOB_ERROR, rule_name="measure", log=[str(log)])
    last = ": error: planted" if remote else ""
    assert capsys.readouterr().err == f"the step measure did not end well{last}; its log: {log}\n"
    assert course.began and course.failed


def test_a_step_told_to_end_did_not_fail(
    course: Course, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()
    ended.set()
    monkeypatch.setattr(terminal, "ASKED_TO_END", ended)
    tell(
        level=logging.ERROR,
        event=LogEvent.JOB_ERROR,
        rule_name="measure",
        log=["results/logs/none.log"],
    )
    assert (capsys.readouterr().err, course.failed) == ("", True)


def test_a_log_escapes_what_its_locale_cannot_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("PATH", "PYTHONPATH", "PYTHONSAFEPATH"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    handler = logging.FileHandler(tmp_path / "log", encoding="ascii")
    log = logging.getLogger("snakemake.logging")
    log.addHandler(handler)
    # pytest sends what it captures of a log from process to process, as UTF-8.
    monkeypatch.setattr(log, "propagate", False)
    workflow.use_this_checkout(ROOT)
    log.error("\udce6\u65e5")
    log.removeHandler(handler)
    assert (tmp_path / "log").read_text() == "\\udce6\\u65e5\n"
    assert "Logging error" not in capsys.readouterr().err


HELD = """
import os, signal, threading, time
from study.base.processes import end_steps_at_once

lock, handled = threading.Lock(), threading.Event()

def usual(number, frame):
    with lock:
        handled.set()

signal.signal(signal.SIGTERM, usual)
end_steps_at_once()
with lock:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.01)
assert handled.wait(20)
"""


def test_a_signal_that_comes_while_snakemake_holds_its_lock_is_handled_once_the_lock_is_free() -> (
    None
):
    """Snakemake's handler takes the lock under which its main thread ends a job: such a start never
    ended."""
    done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
