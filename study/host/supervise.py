"""One process from its start to its end: its output goes to a log, its progress to the terminal."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TextIO

import psutil
from tqdm import tqdm

from study.base.processes import adopt_orphans, die_with_parent

TAIL_LINES = 40
LONGEST_LINE = 65_536
"""Characters of a line that are read at once: a process may write one without an end."""
PROGRESS = re.compile(r"progress (\d{1,9}) (\d{1,9}) ([ -~]{0,200})")
"""What our own code prints in each step. Whatever else a model prints is an ordinary line."""
LOOK_SECONDS = 5.0
"""Seconds between two looks at what a process has written."""
LEAVE_SECONDS = 10.0
"""Seconds that a killed process may take to be gone; a driver may hold it for long."""


@dataclass(frozen=True)
class Ended:
    """The end of a process. ``code`` is negative for a signal; ``tail`` holds its last lines."""

    code: int
    timed_out: bool
    tail: list[str]
    overfull: bool = False


def execute(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: TextIO,
    title: str,
    *,
    at_our_death: int = signal.SIGKILL,
    timeout_seconds: float | None = None,
    is_full: Callable[[], bool] | None = None,
    cpus: Sequence[int] | None = None,
) -> Ended:
    """Run ``command`` to its end and return how it ended. It and its children end with this process, in every case.

    What it leaves behind is ended when it ends, in whatever session it is: it may hold the output open for ever.
    ``at_our_death`` is the signal that the process gets when this one is killed. ``cpus`` are the CPUs that it may use.
    It is ended after ``timeout_seconds``, and once ``is_full`` says that it has written too much.
    """

    def prepare() -> None:
        die_with_parent(at_our_death)
        if cpus:
            os.sched_setaffinity(0, cpus)

    adopt_orphans()
    before = _below()
    process = subprocess.Popen(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
        preexec_fn=prepare,
    )
    with _ended_with_us(process, before), _ended_early(process, timeout_seconds, is_full) as reasons:
        assert process.stdout is not None
        tail = _show(iter(partial(process.stdout.readline, LONGEST_LINE), ""), log, title)
        return Ended(process.wait(), "time" in reasons, tail, "room" in reasons)


def _show(lines: Iterator[str], log: TextIO, title: str) -> list[str]:
    """Show a bar on a terminal and write plain lines to the log; return the last of them."""
    bar: tqdm[Any] | None = None
    shown = ""
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    for line in lines:
        told = PROGRESS.fullmatch(line.rstrip("\n"))
        if not told:
            tail.append(line.rstrip("\n"))
            log.write(line)
            log.flush()
            continue
        done, total, words = told.groups()
        if sys.stderr.isatty():
            bar = bar or tqdm(total=int(total), desc=title, unit="step", leave=False, dynamic_ncols=True)
            bar.set_postfix_str(words, refresh=False)
            bar.update(int(done) - bar.n)
        if words != shown or done == total:
            log.write(f"{words}: step {done} of {total}\n")
            log.flush()
            shown = words
    if bar:
        bar.close()
    return list(tail)


def _end(process: "subprocess.Popen[str]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _below() -> set[psutil.Process]:
    """Return all processes below this one."""
    return set(psutil.Process().children(recursive=True))


def _end_left(process: "subprocess.Popen[str]", before: set[psutil.Process]) -> None:
    """Wait for the process, then end what it left. Their CPU time is then ours: see ``study.base.processes``."""
    process.wait()
    latest = time.monotonic() + LEAVE_SECONDS
    while (left := _below() - before) and time.monotonic() < latest:
        for one in left:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        psutil.wait_procs(left, timeout=1)


@contextmanager
def _ended_with_us(process: "subprocess.Popen[str]", before: set[psutil.Process]) -> Iterator[None]:
    """Stop the process and all that it started when this one is told to stop; ``before`` was there before it."""

    def stop(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    usual = signal.signal(signal.SIGTERM, stop)
    cleaner = threading.Thread(target=_end_left, args=(process, before), daemon=True)
    cleaner.start()
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it would cut the cleaning short
        _end(process)
        cleaner.join()
        signal.signal(signal.SIGTERM, usual)


def _says_so(is_full: Callable[[], bool]) -> bool:
    """Return what ``is_full`` says; True if it cannot look, as in a tree that is too deep for it."""
    try:
        return is_full()
    except (OSError, RecursionError):
        return True


@contextmanager
def _ended_early(
    process: "subprocess.Popen[str]", seconds: float | None, is_full: Callable[[], bool] | None
) -> Iterator[set[str]]:
    """Stop the process after ``seconds``, or once ``is_full`` says so; yield the reasons, none until then."""
    reasons: set[str] = set()
    ended = threading.Event()
    latest = time.monotonic() + seconds if seconds else float("inf")

    def watch() -> None:
        while not ended.wait(min(LOOK_SECONDS, max(0.0, latest - time.monotonic()))):
            if time.monotonic() >= latest:
                reasons.add("time")
            elif is_full and _says_so(is_full):
                reasons.add("room")
            if reasons:
                return _end(process)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield reasons
    finally:
        ended.set()
        watcher.join()
