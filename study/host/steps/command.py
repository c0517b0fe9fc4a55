"""A run of a command: a fresh copy of its files, the program itself, our clock, and the numbers
that it prints."""

import json
import math
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from io import StringIO
from pathlib import Path
from select import select
from typing import TextIO

from study.artifacts.machine import Machine
from study.artifacts.record import JobResult
from study.artifacts.run import TELEMETRY
from study.artifacts.samples import CommandSamples, ReferenceWorkload
from study.base import hardware
from study.base.devices import visible_gpus
from study.base.errors import printable
from study.base.files import PACKAGE
from study.base.imports import PYTHON as PACKAGE_OF_PYTHON
from study.base.privacy import anonymous, plain
from study.config.command import PYTHON, Output, text_of
from study.config.settings import Settings
from study.host import program
from study.host.engine import container, lifetime
from study.host.engine.container import SCRATCH, Mount
from study.host.engine.docker import Docker
from study.host.fork_servers import begin, fork_server_of
from study.host.supervise import Ended, Spawned, supervise

WORKLOAD = "study.training.instruments.reference_workload"
SAMPLER = "study.training.instruments.sampler"
WORKLOAD_SECONDS = 120
"""Seconds after which a reference workload is given up."""
COPY = "copy"
"""Folder in the scratch folder with the copy of the command's files."""
TIMES = "times"
"""File in the scratch folder with the CPU time of a container's processes."""
SAMPLER_SECONDS = 10.0
"""Seconds that a sampler may take until it is ready; it then takes none of the command's time."""
MOST_NUMBERS = 100_000
"""Numbers of one kind that a record holds."""
LONGEST_LOG = 2**26
"""Characters that a command may print."""
CACHES = ("TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
"""Variables of folders that would let one run leave something for the next."""
OUT_OF_MEMORY = ("out of memory", "MemoryError", "Cannot allocate memory")
"""Words of a program that an allocation failed."""


@dataclass
class Heard:
    """What was read so far from the lines of a command."""

    output: Output
    printed: dict[str, list[float]] = field(default_factory=dict)
    marked: float | None = None
    """When the line came with which the work begins, by ``time.perf_counter``."""
    characters: int = 0

    def take(self, line: str) -> None:
        """Take a line as it comes."""
        now, self.characters = time.perf_counter(), self.characters + len(line)
        if self.marked is None and self.output.starts and re.search(self.output.starts, line):
            self.marked = now
        patterns = self.output.patterns()
        told = _json_of(line) if patterns and "{" in line else {}
        for key, pattern in patterns.items():
            values = self.printed.setdefault(key, [])
            found = (value for value in _numbers(pattern, line, told) if math.isfinite(value))
            values += found
            del values[MOST_NUMBERS:]

    def lost(self) -> str | None:
        """Return what no line held; None if all was found."""
        for key, pattern in self.output.patterns().items():
            skipped = self.output.skip if key == "seconds" else 0
            if len(self.printed.get(key, [])) <= skipped:
                beyond = f" after the first {skipped}" if skipped else ""
                return f"no line of its output fits output.{key} {pattern!r}{beyond}"
            if key == "seconds" and max(self.printed[key][skipped:]) <= 0:
                return f"output.seconds {pattern!r} finds no number above 0, so no time"
            if key == "accuracy" and not 0 <= self.printed[key][-1] <= 100:
                told = self.printed[key][-1]
                return f"output.accuracy finds {told:g}: allowed are 0 to 1, and percent to 100"
        if self.output.starts and self.marked is None:
            return f"no line of its output fits output.starts {self.output.starts!r}"
        return None

    def too_much(self) -> str | None:
        """Return why the command is ended for what it has printed; None if it may go on."""
        if self.characters <= LONGEST_LOG:
            return None
        return f"it printed more than {LONGEST_LOG >> 20} MiB: such output belongs in a file"


def _json_of(line: str) -> Mapping[str, object]:
    """Return the object of a line of JSON, from its first brace on; an event of MLPerf has its
    value under its own key, too."""
    with suppress(ValueError, RecursionError):
        told = json.loads(line[line.index("{") :])
        if isinstance(told, dict):
            named = told.get("key")
            return told | ({named: told.get("value")} if isinstance(named, str) else {})
    return {}


def _numbers(pattern: str, line: str, told: Mapping[str, object]) -> Iterator[float]:
    """Yield the numbers of a line that a pattern finds, or that a key of its JSON has."""
    if re.compile(pattern).groups:
        texts: list[object] = list(re.findall(pattern, line))
    else:
        value = told.get(pattern)
        texts = value if isinstance(value, list) else [value]
    for text in texts:
        with suppress(TypeError, ValueError):
            yield float(str(text).replace(",", ""))


@dataclass
class CommandRun:
    """A command that is to be run once: what it is, where, and who is told of it."""

    settings: Settings
    seed: str
    scratch: Path
    title: str
    log: TextIO
    root: Path
    """The folder where the study is started."""
    python: str
    """The Python that ``python`` stands for."""
    python_version: str
    """Its version, for the record."""
    libraries: Mapping[str, str]
    """Versions of the packages, for the record."""
    with_workload: bool
    """Whether a reference workload is measured before and after it."""
    workload_cpu_seconds: float = 0.0
    """CPU time of the reference workloads, whose processes are no children of ours."""

    @cached_property
    def words(self) -> list[str]:
        """The program and its arguments."""
        return self.settings.words(self.seed)

    @cached_property
    def folder(self) -> Path:
        """The folder in which the command is started, below that of its copy."""
        return program.folder_of(self.settings, self.scratch / COPY).relative_to(self.scratch)

    @cached_property
    def files(self) -> list[Path]:
        """The files of which it gets a copy."""
        return program.files(self.settings, self.root)

    @cached_property
    def data(self) -> list[Path]:
        """The files and folders that it reads where they lie."""
        return program.data(self.settings, self.root)

    def copy_files(self) -> None:
        """Make the fresh copy of the files."""
        for path in self.files:
            copy = self.scratch / COPY / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / path, copy)
            copy.chmod((self.root / path).stat().st_mode & 0o777 | 0o444)
        (self.scratch / self.folder).mkdir(parents=True, exist_ok=True)

    def link_data(self) -> None:
        """Make a link in the copy to each of the data that lie below the folder of the start."""
        for path in self.data:
            link = self.scratch / COPY / path  # an absolute path leads to itself
            if not path.is_absolute():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to((self.root / path).resolve())

    def variables(self, scratch: str) -> dict[str, str]:
        """Return the environment variables that the study gives the command, and the folders that
        end with the run: else a first run compiles what the others find."""
        assert self.settings.command
        texts = {name: text_of(value) for name, value in self.settings.values(self.seed).items()}
        given = self.settings.command.variables.items()
        own = {name: text.format_map(texts) for name, text in given}
        return dict.fromkeys(CACHES, str(Path(scratch, "tmp"))) | own

    def on_the_host(self) -> tuple[Ended, JobResult | None]:
        """Run the command, and return how it ended with what is recorded; None where its end says
        all."""
        heard, limits = Heard(self.settings.output), self.settings.limits
        words = [self.python, *self.words[1:]] if self.words[0] in PYTHON else self.words
        self.copy_files()
        self.link_data()
        given = _inherited(self.settings.device) | self.variables(str(self.scratch))
        if self.settings.gpus:
            every = visible_gpus() or [str(number) for number in range(self.settings.gpus)]
            given["CUDA_VISIBLE_DEVICES"] = ",".join(every[: self.settings.gpus])
        before = self._workload()
        with sampling(self.scratch / TELEMETRY, self.settings.gpus) as watch:
            cpus = lifetime.allowed_cpus(limits.cpus)
            try:
                child = Spawned(words, given, cpus=cpus, folder=self.scratch / self.folder)
            except OSError as error:
                why = f"{words[0]}: it cannot be started ({error.strerror})"
                return Ended(1, []), JobResult(outcome="failed", message=anonymous(why))
            watch(child.pid)
            ended = self._supervised(child, heard)
        times = (child.started, child.seconds or 0.0, child.began + (child.seconds or 0.0))
        return ended, self._result(ended, heard, times, before, child.peak_resident_bytes)

    def _supervised(self, child: Spawned, heard: Heard) -> Ended:
        room = shutil.disk_usage(self.scratch).free // 2

        def full() -> str | None:
            return heard.too_much() or lifetime.overfull(self.scratch, room)

        limit = self.settings.limits.timeout_seconds
        return supervise(child, self.log, self.title, limit, full, heard.take, LONGEST_LOG)

    def in_a_container(self, engine: Docker, image: str) -> tuple[Ended, JobResult | None]:
        """Run the command in the image of its own, which needs ``sh`` and nothing of ours.

        A word that nobody can guess, before and after it, gives start and end to our clock.
        """
        heard, word = Heard(self.settings.output), secrets.token_hex(16)
        arrived: dict[str, float] = {}

        def take(line: str) -> None:
            name = line.rstrip("\n").removeprefix(word)
            if name in ("starts", "ends") and line.startswith(word):
                arrived[name] = time.perf_counter()
            elif "starts" in arrived:
                heard.take(line)

        self.copy_files()
        copy = self.scratch / COPY
        for path in [copy, *copy.rglob("*")]:  # another user executes it
            path.chmod(0o777 if path.is_dir() else path.stat().st_mode | 0o666)
        inside = f"{SCRATCH}/{self.folder.as_posix()}"
        shell = (
            f'cd "$0" && echo {word}starts; "$@"; code=$?; echo; echo {word}ends; '
            f"times > {SCRATCH}/{TIMES}; exit $code"
        )
        given = self.variables(SCRATCH)
        if self.settings.gpus:  # the container has every GPU, numbered from 0
            given["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(self.settings.gpus)))
        before = self._workload()
        with sampling(self.scratch / TELEMETRY, self.settings.gpus) as watch:
            watch(0)
            ended = lifetime.enter(
                engine,
                image,
                ["sh", "-c", shell, inside, *self.words],
                self.scratch,
                self._mounts(),
                self.log,
                self.title,
                settings=self.settings,
                environment=given,
                gpus=bool(self.settings.gpus),
                heard=take,
                full=heard.too_much,
                folder=SCRATCH,
            )
        now = time.perf_counter()
        end = arrived.get("ends", now)
        start = arrived.get("starts", end)
        times = (time.time() - (now - start), end - start, end)
        return ended, self._result(ended, heard, times, before, None)

    def _mounts(self) -> list[Mount]:
        """Return the mounts of the data, which nothing inside can change."""
        inside = Path(SCRATCH, COPY)  # an absolute path stays as it is
        return [Mount((self.root / path).resolve(), str(inside / path)) for path in self.data]

    def _result(
        self,
        ended: Ended,
        heard: Heard,
        times: tuple[float, float, float],
        before: Mapping[str, list[float]],
        peak: int | None,
    ) -> JobResult | None:
        """Return what is recorded of a command that ended by itself; None for any other."""
        if ended.trouble or ended.oom_killed or ended.code < 0:
            return None
        machine = self._machine()
        failed = JobResult(outcome="failed", machine=machine)
        if ended.code:
            said = next((line for line in reversed(ended.tail) if line.strip()), "nothing")[:300]
            words = f"the command ended with exit code {ended.code}; it said: {said}"
            for name in re.findall(r"['\"]([^'\"]+)['\"]", said):
                path = Path(name)
                below = not path.is_absolute() and ".." not in path.parts
                with suppress(OSError):  # any text may stand in quotes
                    if below and path not in self.files and (self.root / path).is_file():
                        words += f"; {name} lies in your folder: name it in command.files"
            every = "\n".join(ended.tail)
            short = any(sign in every for sign in OUT_OF_MEMORY)
            change = {"outcome": "out_of_memory"} if short else {}
            return failed.model_copy(update=change | {"message": anonymous(printable(words))})
        if lost := heard.lost():
            return failed.model_copy(update={"message": anonymous(lost)})
        started, seconds, end = times
        measured = CommandSamples(
            line=" ".join(plain(self.words)),
            program=Path(self.words[0]).name[:200],
            files=len(self.files),
            started=started,
            seconds=max(seconds, 1e-9),
            marked_seconds=None if heard.marked is None else max(0.0, end - heard.marked),
            printed=heard.printed,
            peak_resident_bytes=peak,
        )
        workload = None
        if before:
            after = self._workload()
            workload = ReferenceWorkload(
                first_use_seconds=before["first_use"][0],
                before=before["device"],
                after=after.get("device", []),
                host_before=before["host"],
                host_after=after.get("host", []),
            )
        return JobResult(
            outcome="ok", command=measured, machine=machine, reference_workload=workload
        )

    def _machine(self) -> Machine:
        """Return the machine, as the launcher sees it."""
        known = hardware.processor() | {"python": self.python_version}
        libraries = {name: one for name, one in self.libraries.items() if name != PACKAGE_OF_PYTHON}
        gpu = hardware.told_by_nvml() if self.settings.gpus else {}
        named = {"device_name": known["cpu_name"], "libraries": libraries}
        return Machine.model_validate(known | named | gpu)

    def _workload(self) -> Mapping[str, list[float]]:
        """Return the seconds of the repetitions of the reference workload, by what it was on; none
        where the start has no torch.

        A process of its own executes it, and is gone before the command starts.
        """
        if not self.with_workload:
            return {}
        device, limits = self.settings.device, self.settings.limits
        child = begin(
            fork_server_of(self.settings),
            f"{WORKLOAD}:main",
            [device],
            [sys.executable, "-m", WORKLOAD, device],
            container.environment(device, os.environ),
            lifetime.allowed_cpus(limits.cpus),
        )
        ended = supervise(child, StringIO(), f"{self.title}: reference workload", WORKLOAD_SECONDS)
        self.workload_cpu_seconds += child.elsewhere_seconds or 0.0
        told = _json_of(ended.tail[-1]) if ended.tail and ended.code == 0 else {}
        return {str(name): one for name, one in told.items() if isinstance(one, list)}


def _inherited(device: str) -> dict[str, str]:
    """Return the environment of a command without what is ours: what our processes tell each other,
    and where a start finds this package."""
    values = container.environment(device, os.environ)
    values.pop("PYTHONSAFEPATH", None)
    path = [one for one in values.pop("PYTHONPATH", "").split(os.pathsep) if one]
    if path := [one for one in path if Path(one) != PACKAGE.parent]:
        values["PYTHONPATH"] = os.pathsep.join(path)
    return {name: value for name, value in values.items() if not name.startswith("STUDY_")}


@contextmanager
def sampling(path: Path, gpus: int) -> Iterator[Callable[[int], None]]:
    """Sample the machine into ``path`` within the context, from the moment on when the function
    that it yields is told a process; with 0 no process is watched.

    Without a sampler the run goes on: it has no telemetry then.
    """
    sampler = None
    with suppress(OSError):
        sampler = subprocess.Popen(
            [sys.executable, "-m", SAMPLER, str(path), "-", str(gpus)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        if sampler.stdout:
            select([sampler.stdout], [], [], SAMPLER_SECONDS)

    def watch(pid: int) -> None:
        if sampler and sampler.stdin:
            with suppress(OSError):
                sampler.stdin.write(f"{pid}\n".encode())
                sampler.stdin.flush()

    try:
        yield watch
    finally:
        if sampler:
            sampler.terminate()
            with suppress(subprocess.TimeoutExpired):
                sampler.wait(2)
            sampler.kill()
            sampler.communicate()
