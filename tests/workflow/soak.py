"""Starts that are killed at any moment, by any signal, between clocks that jump and folders that move.

``python -m tests.workflow.soak [--rounds 200] [--disks 20] [--seed 1]`` ends with one line of counts, which must be 0.
``test_soak.py`` makes 20 rounds.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.workflow.conftest import Checkout, at_work, copy_checkout

VICTIMS = ("everything", "snakemake", "client", "study-run", "study-job", "study-warden", "study-template")
"""The whole group, Snakemake, its command for a step, or whoever has that name: a launcher, a training, what forks."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
LONGEST_MOMENT, LONGEST_WAIT = 9.0, 60.0
"""Seconds until a kill at some moment, and the longest wait for a moment that must come or for an end."""
RUNS = 6
"""Runs of the study, in blocks of two."""
SMALLEST_DISK, LARGEST_DISK = 48, 3000
"""Sizes of small disks in KiB: on the smallest no record has room, on the largest a whole study has."""


@dataclass
class Soak:
    """A study under attack. ``troubles`` counts what must not happen; ``seen`` is every record that ever was."""

    checkout: Checkout
    rng: random.Random
    seen: dict[bytes, str] = field(default_factory=dict)
    troubles: Counter[str] = field(default_factory=Counter)
    strikes: Counter[str] = field(default_factory=Counter)

    @property
    def results(self) -> Path:
        """The folder of the results."""
        return self.checkout.root / "results"

    def round(self) -> None:
        """Start, kill someone at some moment, look at what is left, and change the world a little."""
        if len(self.checkout.records()) == RUNS:
            self.checkout.python("study", "retry", "tiny", "--outcome", "ok", "--outcome", "failed")
        victim, number = self.rng.choice(VICTIMS), self.rng.choice(SIGNALS)
        published = self.rng.random() < 0.3
        with (self.checkout.root / "said").open("w+") as said:
            process = subprocess.Popen(
                self.checkout.command(), cwd=self.checkout.root, env=self.checkout.environment(), stdout=said,
                stderr=said, start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )  # fmt: skip
            self._wait_for_the_moment(process, published)
            self._strike(process, victim, number)
            self.strikes[f"{victim} {number.name}{' once published' * published}"] += 1
            with suppress(subprocess.TimeoutExpired):
                process.wait(self.rng.uniform(1, 4))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.look()
        self._change_the_world()

    def _wait_for_the_moment(self, process: "subprocess.Popen[bytes]", published: bool) -> None:
        """Wait for a moment: any, or that in which a new record has just appeared and its process is still there."""
        records, before = self.results / "tiny" / "records", len(self.checkout.records())
        end = time.monotonic() + (LONGEST_WAIT if published else self.rng.uniform(0, LONGEST_MOMENT))
        while time.monotonic() < end and process.poll() is None:
            if published and len(list(records.glob("*.json"))) > before:
                return
            time.sleep(0.001)

    def _strike(self, process: "subprocess.Popen[bytes]", victim: str, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, psutil.Error):
            if victim == "everything":
                os.killpg(process.pid, number)
            elif victim == "snakemake":
                process.send_signal(number)
            else:
                for one in psutil.Process(process.pid).children(recursive=True):
                    if one.name() == victim or (victim == "client" and "study.base.step" in one.cmdline()):
                        one.send_signal(number)

    def look(self) -> None:
        """Count what must not be: a record that is lost or changed, a process that works on."""
        end = time.monotonic() + 30
        while (orphans := at_work(self.checkout.root)) and time.monotonic() < end:
            time.sleep(0.2)
        self.troubles["orphans"] += len(orphans)
        there = {path.read_bytes(): path.name for path in (self.results / "tiny" / "records").rglob("*.json")}
        self.troubles["records lost or changed"] += len(self.seen.keys() - there.keys())
        self.seen |= there

    def _change_the_world(self) -> None:
        """Let the clock jump by an hour, or move or copy the results: each in a part of the rounds."""
        what = self.rng.random()
        if what < 0.3:
            hour = 3600 if what < 0.15 else -3600
            for path in self.results.rglob("*"):
                with suppress(FileNotFoundError):
                    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + hour * 10**9))
        elif what < 0.5:
            away = self.results.with_name("away")
            if what < 0.4:
                self.results.rename(away)
            else:
                shutil.copytree(self.results, away, symlinks=True)
                shutil.rmtree(self.results)
            away.rename(self.results)

    def end(self) -> None:
        """Let a start come to its end, and count what it does not do."""
        for path in (self.results / "tiny" / "records").glob("*.json"):
            self.seen[path.read_bytes()] = path.name
        done = self.checkout.snakemake()
        self.look()
        whole = done.returncode == 0 and (self.results / "report.html").is_file()
        self.troubles["ends without a whole report"] += not whole
        if not whole:
            print(done.stdout + done.stderr)
        left = [*self.results.glob(".scratch-*"), *self.results.rglob("*.tmp")]
        self.troubles["scratch folders and unfinished files"] += len(left)
        self.troubles["locks held"] += "another start" in done.stdout + done.stderr

    def disk(self, kib: int) -> None:
        """Start on a disk of this size, which may fill at any moment; then make room, and start again."""
        with _small_disk(self.results, kib) as grow:
            done = self.checkout.snakemake()
            self.troubles["tracebacks"] += "Traceback" in done.stdout + done.stderr
            self.seen = {path.read_bytes(): path.name for path in (self.results / "tiny/records").rglob("*.json")}
            grow()
            self.end()
            self.seen = {}


@contextmanager
def _small_disk(folder: Path, kib: int) -> Iterator[Callable[[], object]]:
    """Mount a disk in memory at a folder, and yield a function that makes room on it. Only root can."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)], check=True)
    try:
        yield lambda: subprocess.run(["mount", "-o", "remount,size=200m", str(folder)], check=True)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def soak(checkout: Checkout, rounds: int, seed: int) -> Soak:
    """Attack a study in ``checkout`` in this number of rounds, and return what was counted."""
    checkout.study("tiny", replicates=RUNS // 2)
    attacked = Soak(checkout, random.Random(seed))
    for _ in range(rounds):
        attacked.round()
    attacked.end()
    return attacked


def main() -> None:
    """Make the rounds, then fill the disks, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--disks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        attacked = soak(copy_checkout(Path(folder).resolve() / "soaked"), options.rounds, options.seed)
        print(dict(attacked.strikes))
        small = Soak(copy_checkout(Path(folder).resolve() / "small"), attacked.rng, troubles=attacked.troubles)
        for place in range(options.disks):
            share = place / max(1, options.disks - 1)
            small.disk(round(SMALLEST_DISK * (LARGEST_DISK / SMALLEST_DISK) ** share))
    print(f"{options.rounds} rounds and {options.disks} disks: {dict(attacked.troubles)}")


if __name__ == "__main__":
    main()
