"""Snakemake's own words stay in its log, and its warnings and errors are shown."""

import io
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from snakemake.logging import DefaultFilter, DefaultFormatter
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.common import LogEvent

from study.host.plan.terminal import quieten, tell_answer

QUIET = {Quietness.RULES, Quietness.PROGRESS}


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """Snakemake's own logger without its handlers, which come back afterwards."""
    found = logging.getLogger("snakemake.logging")
    before, level = found.handlers[:], found.level
    found.handlers.clear()
    found.setLevel(logging.INFO)
    yield found
    for handler in found.handlers:
        handler.close()
    found.handlers[:] = before
    found.setLevel(level)


def test_only_alarms_are_shown_everything_is_in_the_log_and_nothing_to_do_is_noticed(
    logger: logging.Logger, tmp_path: Path
) -> None:
    shown, noticed, ended = io.StringIO(), [], []
    for handler in (logging.StreamHandler(shown), logging.FileHandler(tmp_path / "log")):
        handler.addFilter(DefaultFilter(QUIET, False, False, False, False))
        handler.setFormatter(DefaultFormatter(QUIET))
        logger.addHandler(handler)
    quieten(lambda: noticed.append("called"), lambda **run: ended.append(run))
    logger.info("Select jobs to execute...")
    logger.info("3 of 4 steps", extra={"event": LogEvent.PROGRESS, "done": 3, "total": 4})
    for number, (rule, run) in enumerate([("measure", {"study": "tiny", "run": "bs8-r1", "key": "0"}), ("fit", {})]):
        logger.info("", extra={"event": LogEvent.JOB_INFO, "jobid": number, "rule_name": rule, "wildcards": run})
        assert ended == ([] if number == 0 else [{"study": "tiny", "run": "bs8-r1", "key": "0"}])
        logger.info("", extra={"event": LogEvent.JOB_FINISHED, "job_id": number})
    assert len(ended) == 1
    logger.warning("a warning")
    logger.error("an error")
    logger.error("WorkflowError:\nAt least one job did not complete successfully.")
    assert noticed == []
    logger.info("Nothing to be done (all requested files are present and up to date).")
    assert noticed == ["called"]
    assert shown.getvalue() == "a warning\nan error\n"
    log = (tmp_path / "log").read_text()
    assert log.splitlines()[:2] == ["Select jobs to execute...", "3 of 4 steps (75%) done"]
    assert "a warning\nan error\nWorkflowError:\nAt least one job did not complete successfully.\nNothing" in log


@pytest.mark.parametrize("gone", [None, "closed"])
def test_a_start_whose_output_nobody_reads_ends_as_any_other(monkeypatch: pytest.MonkeyPatch, gone: str | None) -> None:
    class Closed(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    asked: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: asked.append(command))
    monkeypatch.setattr(sys, "stdout", Closed() if gone else None)
    tell_answer()
    assert asked == [[sys.executable, "-m", "study", "answer"]]


HELD = """
import os, signal, threading, time
from study.host.plan.terminal import end_steps_at_once

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


def test_a_signal_that_comes_while_snakemake_holds_its_lock_is_handled_once_the_lock_is_free() -> None:
    """Snakemake's handler takes the lock under which its main thread ends a job: such a start never ended."""
    done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
