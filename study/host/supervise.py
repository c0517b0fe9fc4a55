"""One process from its start to its end: its output goes to a log, its progress to the terminal."""

import io
import math
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
from pathlib import Path
from typing import IO, Any, Protocol, TextIO

import psutil

from study.artifacts.record import TIMED_OUT
from study.base.processes import adopt_orphans, below, die_with_parent, end_left

TAIL_LINES = 40
LONGEST_LINE = 65_536
"""Characters of a line that are read at once: a process may write one without an end."""
PROGRESS = re.compile(r"progress (\d{1,9}) (\d{1,9}) ([ -~]{0,200})")
"""What our own code prints in each step. Whatever else a model prints is an ordinary line."""
LOOK_SECONDS = 5.0
"""Seconds between two looks at what a process has written."""


@dataclass(frozen=True)
class Ended:
    """The end of a process. ``code`` is negative for a signal; ``tail`` holds its last lines."""

    code: int
    tail: list[str]
    trouble: str | None = None
    """The reason if it was cut short from outside."""
    oom_killed: bool = False


class Child(Protocol):
    """A process that is at work, and all that it starts."""

    lines: Iterator[str]
    """What it says."""

    def wait(self) -> int:
        """Return its exit code once nothing is left of it."""

    def end(self) -> None:
        """Have it killed, with all that it started."""


class Spawned:
    """A process of our own, started from nothing. It gets the signal ``at_our_death`` when this one
    is killed."""

    elsewhere_seconds: float | None = 0.0
    """CPU seconds of the process, once it has ended, that are not counted as ours; None if
    unknown."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        at_our_death: int = signal.SIGKILL,
        cpus: Sequence[int] | None = None,
        folder: Path | None = None,
    ) -> None:
        def prepare() -> None:
            die_with_parent(at_our_death)
            if cpus:
                os.sched_setaffinity(0, cpus)

        adopt_orphans()
        before = below()
        ours = psutil.Process().memory_info().rss
        self.seconds: float | None = None
        """Wall time from its start to its end, once it has ended."""
        self.peak_resident_bytes: int | None = None
        """Most memory of one of its processes, once it has ended; None if less than ours."""
        self.started, self.began = time.time(), time.perf_counter()
        self._process = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=prepare,
        )
        self.pid = self._process.pid
        self._cleaner = threading.Thread(target=self._clean, args=(before, ours), daemon=True)
        self._cleaner.start()
        assert self._process.stdout is not None
        self.lines = lines_of(self._process.stdout)

    def _clean(self, before: set[psutil.Process], ours: int) -> None:
        """Wait for its end, and end what it left; ``before`` are the processes below us before it,
        ``ours`` is our memory."""
        _, status, used = os.wait4(self.pid, 0)
        self.seconds = time.perf_counter() - self.began
        self._process.returncode = os.waitstatus_to_exitcode(status)
        # Until it becomes its program, a process has our memory, and the kernel counts that.
        peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        self.peak_resident_bytes = peak if peak > ours else None
        end_left(before)  # whose CPU time is then ours: see study.base.processes

    def wait(self) -> int:
        """Return its exit code once nothing is left of it."""
        self._cleaner.join()
        return self._process.returncode

    def end(self) -> None:
        """Kill it with all that shares its session."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


def new_log(path: Path) -> TextIO:
    """Return the file of a log, written anew, in a folder that is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("w", encoding="utf-8")


def lines_of(output: IO[bytes]) -> Iterator[str]:
    """Return the lines of an output as text; a very long one in parts."""
    text = io.TextIOWrapper(output, encoding="utf-8", errors="replace")
    return iter(partial(text.readline, LONGEST_LINE), "")


def supervise(
    child: Child,
    log: TextIO,
    title: str,
    timeout_seconds: float | None = None,
    full: Callable[[], str | None] | None = None,
    heard: Callable[[str], None] | None = None,
    longest_log: float = math.inf,
) -> Ended:
    """Show and log what ``child`` says until its end, and return how it ended.

    It ends with this process, in every case. What it leaves behind is ended when it ends, in
    whatever session it is: it may hold the output open for ever. It is ended after
    ``timeout_seconds``, and once ``full`` says why it has written too much. ``heard`` gets each
    line as it comes. The log takes ``longest_log`` characters.
    """
    with _ended_with_us(child), _ended_early(child, timeout_seconds, full) as reasons:
        tail = _show(child.lines, log, title, heard, longest_log)
        return Ended(child.wait(), tail, next(iter(reasons), None))


def _show(
    lines: Iterator[str],
    log: TextIO,
    title: str,
    heard: Callable[[str], None] | None,
    longest_log: float,
) -> list[str]:
    """Show a bar on a terminal and write plain lines to the log; return the last of them."""
    from tqdm import tqdm  # a lint of the workflow has only what Snakemake itself needs

    bar: tqdm[Any] | None = None
    shown, written = "", 0
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    for line in lines:
        if heard:
            heard(line)
        told = PROGRESS.fullmatch(line.rstrip("\n"))
        if not told:
            tail.append(line.rstrip("\n"))
            written += len(line)
            if written <= longest_log:
                log.write(line)
                log.flush()
            continue
        done, total, words = told.groups()
        if sys.stderr.isatty():
            bar = bar or tqdm(
                total=int(total), desc=title, unit="step", leave=False, dynamic_ncols=True
            )
            bar.set_postfix_str(words, refresh=False)
            bar.update(int(done) - bar.n)
        if words != shown or done == total:
            log.write(f"{words}: step {done} of {total}\n")
            log.flush()
            shown = words
    if bar:
        bar.close()
    return list(tail)


@contextmanager
def _ended_with_us(child: Child) -> Iterator[None]:
    """Stop the process and all that it started when this one is told to stop."""
    told = False

    def stop(number: int, _: Any) -> None:
        nonlocal told
        told = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(128 + number)

    usual = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it would cut the cleaning short
        child.end()
        child.wait()
        if not told:  # else the callers clean up now, and the kernel tells of one death twice
            signal.signal(signal.SIGTERM, usual)


@contextmanager
def _ended_early(
    child: Child, seconds: float | None, full: Callable[[], str | None] | None
) -> Iterator[list[str]]:
    """Stop the process after ``seconds``, or once ``full`` says so; yield the reasons, none until
    then."""
    reasons: list[str] = []
    ended = threading.Event()
    latest = time.monotonic() + seconds if seconds else float("inf")

    def watch() -> None:
        while not ended.wait(min(LOOK_SECONDS, max(0.0, latest - time.monotonic()))):
            if time.monotonic() >= latest:
                reasons.append(f"{TIMED_OUT} after {seconds or 0:g} s (limits.timeout_seconds)")
            elif full and (reason := full()):
                reasons.append(reason)
            if reasons:
                return child.end()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield reasons
    finally:
        ended.set()
        watcher.join()
