"""Whoever is killed at whatever moment, between clocks that jump and folders that move: no record
is lost or changed, nothing is left, and the next start goes on."""

import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tests.waiting import at_work, wait_for
from tests.workflow.conftest import Checkout

pytestmark = pytest.mark.thorough


VICTIMS = (
    "everything",
    "snakemake",
    "client",
    "study-job",
    "study-supervise",
    "study-server",
    "any",
)
"""The whole group, Snakemake, its command for a step, or whoever has that name: a training, what
forks. Any: one of all that the start has begun, such as a worker of a loader, or a rank."""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
LONGEST_MOMENT, LONGEST_WAIT = 9.0, 60.0
"""Seconds until a kill at some moment, and the longest wait for a moment that must come or for an
end."""
RUNS = 6
"""Runs of the study, in blocks of two: one of them has a worker that loads its images."""
WORKERS = {"factors": {"device": ["cpu"], "loader.kind": ["device", "workers"]}, "curve": None}
RANKS = {"training.strategy": ["ddp"], "device": ["cpu"]}
MANY_SHARE = 0.1
"""Share of the rounds that start another study, whose runs have two ranks with a worker each."""
OF_SNAKEMAKE = ("Using workflow specific profile", "Config file ")
"""How the lines begin that are Snakemake's own, and which ``study start`` hides."""


@dataclass
class Soak:
    """Studies under attack. ``troubles`` counts what must not happen; ``seen`` is every record that
    ever was."""

    checkout: Checkout
    rng: random.Random
    seen: dict[bytes, str] = field(default_factory=dict)
    troubles: Counter[str] = field(default_factory=Counter)
    files: set[tuple[str, int, int]] = field(default_factory=set)
    """Files of records that were read already: path, inode and time."""

    @property
    def results(self) -> Path:
        """The folder of the results."""
        return self.checkout.root / "results"

    def note(self) -> None:
        """Add each record that is there now to those that ever were."""
        for path in self.results.glob("*/records/*.json"):
            with suppress(FileNotFoundError):
                status = path.stat()
                file = (str(path), status.st_ino, status.st_mtime_ns)
                if file not in self.files and (content := path.read_bytes()):
                    self.seen[content] = path.name
                    self.files.add(file)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note each record until the context ends, also one that is gone again a moment later."""
        over = threading.Event()

        def note() -> None:
            while not over.wait(0.001):
                self.note()

        watcher = threading.Thread(target=note, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def round(self) -> str:
        """Start, kill someone at some moment, look at what is left, and change the world a little;
        say who it was."""
        if len(self.checkout.records()) == RUNS:
            self.checkout.python("study", "retry", "tiny", "--outcome", "ok", "--outcome", "failed")
        victim, number = self.rng.choice(VICTIMS), self.rng.choice(SIGNALS)
        published, many = self.rng.random() < 0.3, self.rng.random() < MANY_SHARE
        with self.watched(), self.checkout.started(*["studies=[many]"] * many) as process:
            self._wait_for_the_moment(process, published)
            self.strike(process, victim, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(self.rng.uniform(1, 4))
        self.look()
        self._change_the_world()
        told = f"{victim} {number.name}{' once published' * published}{' of ranks' * many}"
        return told

    def _wait_for_the_moment(self, process: "subprocess.Popen[bytes]", published: bool) -> None:
        """Wait for a moment: any, or that in which a new record has just appeared and its process
        is still there."""
        before = len(self.seen)
        end = time.monotonic() + (
            LONGEST_WAIT if published else self.rng.uniform(0, LONGEST_MOMENT)
        )
        while time.monotonic() < end and process.poll() is None:
            if published and len(self.seen) > before:
                return
            time.sleep(0.001)

    def strike(
        self, process: "subprocess.Popen[bytes]", victim: str, number: signal.Signals
    ) -> None:
        """Send the signal to the victim, if it is there."""
        with suppress(ProcessLookupError, psutil.Error):
            if victim == "everything":
                os.killpg(process.pid, number)
            elif victim == "snakemake":
                process.send_signal(number)
            else:
                below = psutil.Process(process.pid).children(recursive=True)
                if victim == "any":
                    below = self.rng.sample(below, min(1, len(below)))
                for one in below:
                    is_client = victim == "client" and one.cmdline()[1:3] == ["-m", "study"]
                    if one.name() == victim or victim == "any" or is_client:
                        one.send_signal(number)

    def look(self) -> None:
        """Count what must not be: a record that is lost or changed, a process that works on."""
        end = time.monotonic() + 30
        while (orphans := at_work(self.checkout.root)) and time.monotonic() < end:
            time.sleep(0.2)
        self.troubles["orphans"] += len(orphans)
        there = {path.read_bytes(): path.name for path in self.results.glob("*/records/**/*.json")}
        self.troubles["records lost or changed"] += len(self.seen.keys() - there.keys())
        self.seen |= there

    def _change_the_world(self) -> None:
        """Let the clock jump by an hour, move or copy the results, or lose the data: each in a part
        of the rounds."""
        what = self.rng.random()
        if not self.results.is_dir():
            return  # the start was killed too early
        if what < 0.3:
            hour = 3600 if what < 0.15 else -3600
            for path in self.results.rglob("*"):
                with suppress(FileNotFoundError):
                    os.utime(
                        path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + hour * 10**9)
                    )
        elif what < 0.5:
            away = self.results.with_name("away")
            if what < 0.4:
                self.results.rename(away)
            else:
                shutil.copytree(self.results, away, symlinks=True)
                shutil.rmtree(self.results)
            away.rename(self.results)
        elif what < 0.65:
            shutil.rmtree(self.results / "data", ignore_errors=True)

    def end(self) -> None:
        """Let a start come to its end, and count what it does not do."""
        with self.watched():
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
        """Start on a disk of this size, which may fill at any moment, then with room on it, then on
        a read-only one."""
        with _small_disk(self.results, kib) as remount:
            self.seen, self.files = {}, set()
            with self.watched():
                done = self.checkout.snakemake()
            self.troubles["tracebacks"] += "Traceback" in done.stdout + done.stderr
            remount("size=200m")
            self.end()
            remount("ro")
            self._start_read_only()
            remount("rw")
            self.end()

    def _start_read_only(self) -> None:
        before = _contents(self.results)
        done = self.checkout.snakemake()
        said = [
            line
            for line in (done.stdout + done.stderr).splitlines()
            if not line.startswith(OF_SNAKEMAKE)
        ]
        told = "error: .*/results/.lock: the results folder cannot be written .*"
        is_one_line = len(said) == 1 and bool(re.fullmatch(told, said[0]))
        self.troubles["read-only results without one error line"] += not (
            is_one_line and done.returncode
        )
        if not is_one_line:
            print("\n".join(said), flush=True)
        self.troubles["changes of read-only results"] += _contents(self.results) != before


def _contents(folder: Path) -> dict[str, bytes]:
    """Return each file below a folder, by its path."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextmanager
def _small_disk(folder: Path, kib: int) -> Iterator[Callable[[str], object]]:
    """Mount a disk in memory at a folder, and yield a function that mounts it with another option.
    Only root can."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)], check=True)
    try:
        yield lambda option: subprocess.run(
            ["mount", "-o", f"remount,{option}", str(folder)], check=True
        )
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def attack_on(checkout: Checkout, seed: int) -> Soak:
    """An attack on a checkout, in which the studies are written."""
    checkout.study("tiny", **WORKERS, loader={"kind": "device", "workers": 1}, replicates=RUNS // 2)
    checkout.study("many", factors=RANKS, loader={"kind": "workers", "workers": 1}, curve=None)
    return Soak(checkout, random.Random(seed))


@pytest.mark.timeout(1800)
def test_twenty_kills_at_any_moment_lose_nothing_and_leave_nothing(ready: Checkout) -> None:
    attacked = attack_on(ready, seed=20261122)
    for _ in range(20):
        print(attacked.round(), dict(+attacked.troubles))
    attacked.end()
    assert not +attacked.troubles, dict(attacked.troubles)


def test_a_small_disk_and_a_read_only_one_cost_nothing(checkout: Checkout) -> None:
    (checkout.root / "results").mkdir()
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(checkout.root / "results")]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here: that needs root, and a capability")
    subprocess.run(["umount", mount[-1]], check=True)
    attacked = attack_on(checkout, seed=1)
    attacked.disk(300)
    assert not +attacked.troubles, dict(attacked.troubles)


def test_a_soak_counts_a_record_that_was_published_and_deleted_in_one_start(tmp_path: Path) -> None:
    attacked, record = (
        Soak(Checkout(tmp_path), random.Random(1)),
        tmp_path / "results/tiny/records/a.json",
    )
    record.parent.mkdir(parents=True)
    with attacked.watched():
        record.write_text("{}")
        wait_for(lambda: attacked.seen)
        record.unlink()
    attacked.look()
    assert attacked.troubles["records lost or changed"] == 1
