"""One process from its start to its end: its output goes to a log, its progress to the terminal."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TextIO

import psutil
from tqdm import tqdm

from study.base.processes import adopt_orphans, die_with_parent

TAIL_LINES = 40
LEAVE_SECONDS = 10.0
"""Seconds that a killed process may take to be gone; a driver may hold it for long."""


@dataclass(frozen=True)
class Ended:
    """The end of a process. ``code`` is negative for a signal; ``tail`` holds its last lines."""

    code: int
    timed_out: bool
    tail: list[str]


def execute(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: TextIO,
    title: str,
    *,
    at_our_death: int = signal.SIGKILL,
    timeout_seconds: float | None = None,
    cpus: Sequence[int] | None = None,
) -> Ended:
    """Run ``command`` to its end and return how it ended. It and its children end with this process, in every case.

    What it leaves behind is ended when it ends, in whatever session it is: it may hold the output open for ever.
    ``at_our_death`` is the signal that the process gets when this one is killed. ``cpus`` are the CPUs that it may use.
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
    with _ended_with_us(process, before), _ended_after(timeout_seconds, process) as timed_out:
        assert process.stdout is not None
        tail = _show(process.stdout, log, title)
        return Ended(process.wait(), timed_out(), tail)


def _show(lines: Iterator[str], log: TextIO, title: str) -> list[str]:
    """Show a bar on a terminal and write plain lines to the log; return the last of them."""
    bar: tqdm[Any] | None = None
    shown = ""
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    for line in lines:
        if not line.startswith("progress "):
            tail.append(line.rstrip("\n"))
            log.write(line)
            log.flush()
            continue
        _, done, total, words = line.rstrip("\n").split(" ", 3)
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
        signal.signal(signal.SIGTERM, usual)
        _end(process)
        cleaner.join()


@contextmanager
def _ended_after(seconds: float | None, process: "subprocess.Popen[str]") -> Iterator[Callable[[], bool]]:
    """Stop the process after ``seconds``; yield a function that returns whether that happened."""
    over = threading.Event()

    def stop() -> None:
        over.set()
        _end(process)

    timer = threading.Timer(seconds, stop) if seconds else None
    if timer:
        timer.start()
    try:
        yield over.is_set
    finally:
        if timer:
            timer.cancel()
