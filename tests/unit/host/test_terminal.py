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

from snakemake_logger_plugin_study import LogHandler
from study.base import processes
from study.host.plan import workflow
from tests.conftest import ROOT


@pytest.fixture
def handler() -> LogHandler:
    """What hears Snakemake, which has begun to make jobs."""
    heard = LogHandler(OutputSettings(), None)
    tell(heard, event=LogEvent.WORKFLOW_STARTED)
    return heard


def tell(handler: LogHandler, words: str = "", level: int = logging.INFO, **told: Any) -> None:
    """Let Snakemake say something."""
    handler.emit(logging.makeLogRecord({"msg": words, "levelno": level} | told))


def test_warnings_are_shown_and_an_error_is_kept_for_the_end(
    handler: LogHandler, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(handler, "Select jobs to execute...")
    tell(handler, "3 of 4 steps", event=LogEvent.PROGRESS, done=3, total=4)
    tell(handler, "a warning", logging.WARNING)
    tell(handler, "WorkflowError: planted", logging.ERROR, event=LogEvent.ERROR)
    assert capsys.readouterr().err == "a warning\n"
    handler.close()
    assert capsys.readouterr().err == "WorkflowError: planted\n"


@pytest.mark.parametrize("dry_run", [False, True])
def test_what_somebody_only_looks_at_is_shown_as_snakemake_says_it(
    capsys: pytest.CaptureFixture[str], dry_run: bool
) -> None:
    handler = LogHandler(OutputSettings(dryrun=dry_run), None)
    if dry_run:
        tell(handler, event=LogEvent.WORKFLOW_STARTED)
    tell(handler, "mem_mb")
    handler.close()
    assert capsys.readouterr().err.splitlines()[-1] == "mem_mb"


@pytest.mark.parametrize("remote", [False, True])
def test_how_a_step_ended_is_said_where_an_executor_made_it_and_a_failure_everywhere(
    handler: LogHandler, capsys: pytest.CaptureFixture[str], tmp_path: Path, remote: bool
) -> None:
    provided: dict[str, Any] = {"nodes": 8} if remote else {"cores": 1}
    tell(handler, event=LogEvent.RESOURCES_INFO, **provided)
    log = tmp_path / "block.log"
    log.write_text("block 1 of 1, run 1 of 2: ok\nblock 1 of 1, run 2 of 2: \x1b[2Jok\n")
    tell(handler, event=LogEvent.JOB_INFO, jobid=7, rule_name="measure", log=[str(log)])
    tell(handler, event=LogEvent.JOB_FINISHED, job_id=7)
    said = "block 1 of 1, run 2 of 2: \\x1b[2Jok\n"
    assert capsys.readouterr().err == (said if remote else "")
    log.write_text("error: planted\n")
    failed: dict[str, Any] = {"rule_name": "measure", "log": [str(log)]}
    tell(handler, level=logging.ERROR, event=LogEvent.JOB_ERROR, **failed)
    last = ": error: planted" if remote else ""
    assert capsys.readouterr().err == f"the step measure did not end well{last}; its log: {log}\n"
    handler.close()
    assert capsys.readouterr().err == ""


def test_a_step_told_to_end_did_not_fail(
    handler: LogHandler, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()
    ended.set()
    monkeypatch.setattr(processes, "ASKED_TO_END", ended)
    failed: dict[str, Any] = {"rule_name": "measure", "log": ["results/logs/none.log"]}
    tell(handler, level=logging.ERROR, event=LogEvent.JOB_ERROR, **failed)
    assert capsys.readouterr().err == ""


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


def test_a_signal_while_snakemake_holds_its_lock_is_handled_once_the_lock_is_free() -> None:
    """Snakemake's handler takes the lock under which its main thread ends a job: such a start never
    ended."""
    done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
