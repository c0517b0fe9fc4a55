"""A start from a notebook or a program, ``study.start``: in a process of its own, with a bar of its runs."""

import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any

from study.analysis.interface import ResultsFolder, open
from study.artifacts.block import blocks_of
from study.artifacts.layout import Results
from study.artifacts.plan import STARTED_BY, flow, read_earlier, selected
from study.base.errors import StudyError
from study.base.processes import PATIENCE_SECONDS

RESULTS = Path("results")
LEAVE_SECONDS = 60.0
"""Seconds in which an interrupted start has to end its steps, before it is killed."""
PENDING = re.compile("[0-9]+ runs? pending in ")
"""What a line of a study says that has runs to be made."""
REFUSED = "error: "
"""What a line begins with that says why nothing more is done."""


def start(*studies: str | PathLike[str], **config: Any) -> ResultsFolder:
    """Measure studies in the current folder, and return their results, opened: a notebook shows the page.

    A study is its name, such as ``"quickstart"``, or the path of its file, such as ``"my.yaml"``; without one, those of
    ``config/config.yaml``. ``config`` are keys of that file: ``container="none"``, ``devices=["cpu"]``,
    ``time_budget_minutes=5``. What is measured is kept in ``results``: an interruption ends the start, and the same
    call goes on. Raise :class:`StudyError` with the terminal's line if something is refused, or does not end well.
    """
    keys = [f"{key}={flow(value)}" for key, value in config.items()]
    words = [sys.executable, "-m", "study", "start", *map(str, studies), *(["--", "--config", *keys] if keys else [])]
    said: list[str] = []
    # A session of its own: Ctrl-C reaches it once, from here.
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
        encoding="utf-8", errors="replace", start_new_session=True, env=os.environ | {STARTED_BY: "python"},
    ) as process:  # fmt: skip
        try:
            assert process.stdout
            said += _shown(process.stdout)
        finally:
            if process.poll() is None:
                _end(process)
    if process.returncode:
        lines = said or [f"the start ended with {process.returncode}"]
        told = next((line for line in reversed(lines) if line.startswith(REFUSED)), lines[-1])
        raise StudyError(told.removeprefix(REFUSED))
    return open(RESULTS)


def _shown(lines: IO[str]) -> Iterator[str]:
    """Yield the lines of a start, and show them: those of the runs as a bar, with what runs now."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without ipywidgets it is a bar of text
        from tqdm.auto import tqdm
    bar: tqdm[Any] | None = None
    for line in map(str.rstrip, lines):
        if bar is None and PENDING.search(line):
            bar = tqdm(total=(runs := len(_left())), unit="run")
        if bar is not None and line.startswith("block "):
            with suppress(OSError, StudyError):  # a bar is no reason to end a start
                left = _left()
                bar.n = runs - len(left)
                bar.set_postfix_str(f"now {left[0]}" if left else "all runs are done")
        elif not line.startswith(REFUSED):
            tqdm.write(line, file=sys.stdout)
        yield line
    if bar is not None:
        bar.close()


def _left() -> list[str]:
    """Return the names of the runs that are still to be made, in their order, each with its study and block."""
    plans, files = read_earlier(selected(RESULTS), RESULTS).values(), Results(RESULTS)
    blocks = [(plan, block) for plan in plans for block in blocks_of(plan, files)]
    return [
        f"{plan.name}, block {block.number} of {plan.blocks}: {run.name}"
        for plan, block in blocks
        for run in block.missing(files)
    ]


def _end(process: "subprocess.Popen[str]") -> None:
    """End a start as Ctrl-C does: each file that is there stays whole, and no step is left."""
    process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE_SECONDS)
        return
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(LEAVE_SECONDS)
        return
    process.kill()
