"""One process from its start to its end: its output goes to a log, its progress to the terminal."""

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TextIO

from tqdm import tqdm

from study.base.processes import adopt_orphans, die_with_parent, wait_for_group

TAIL_LINES = 40


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

    ``at_our_death`` is the signal that the process gets when this one is killed. ``cpus`` are the CPUs that it may use.
    """

    def prepare() -> None:
        die_with_parent(at_our_death)
        if cpus:
            os.sched_setaffinity(0, cpus)

    adopt_orphans()
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
    with _ended_with_us(process), _ended_after(timeout_seconds, process) as timed_out:
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


@contextmanager
def _ended_with_us(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Stop the process and its workers when this one is told to stop."""

    def stop(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        _end(process)
        process.wait()
        wait_for_group(process.pid)


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
