"""Telemetry of one run: a separate process that samples the machine while another trains.

``python -m study.training.instruments.sampler FILE PID GPUS`` appends one line of CSV per sample.
With ``-`` in place of ``PID`` it says that it is ready, and reads the number: 0 watches no process.
It is a process and no thread, because a training loop that holds the interpreter would starve a
thread of exactly the samples that matter. Every line is written when it is taken, so samples
survive when the sampler is killed.
"""

import functools
import importlib
import operator
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import fmean
from typing import Any

import psutil

from study.artifacts.telemetry import COLUMNS, GPU_COLUMNS
from study.base.devices import nvml_handle
from study.base.processes import die_with_parent

PERIOD_SECONDS = 0.09
"""Seconds between samples. They are a little under a tenth, so that a late sample still leaves ten
in a second."""
REFRESH_SECONDS = 1.0
"""Seconds between two searches for children. Finding them costs far more than reading them."""
STOP_SECONDS = 2.0
"""Seconds that a sampler may take to end once it is told to."""
Value = float | int | None
TOGETHER: Mapping[str, Callable[[Any], float]] = {
    "gpu_utilisation_percent": fmean,
    "gpu_sm_clock_mhz": fmean,
    "gpu_temperature_celsius": max,
    "gpu_throttle_reasons": functools.partial(functools.reduce, operator.or_),
}
"""How the readings of several GPUs become one; those of any other column are added up."""


class Tree:
    """The watched process and its children, loader workers included, but without this sampler.

    Memory is the sum of resident sets. Pages that a worker shares with its parent count once in
    each, so the sum is an upper bound. The proportional set would not count them twice, but to read
    it the kernel walks every page of a process and holds the lock that its allocations need. That
    costs milliseconds per gigabyte, and slows the run that is measured.
    """

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._children: list[psutil.Process] = []
        self._refresh_at = 0.0

    def resident_bytes(self, now: float) -> int | None:
        """Return the memory, or None if the process is gone; ``now`` is in seconds of a clock that
        never goes back."""
        if now >= self._refresh_at:
            self._refresh_at = now + REFRESH_SECONDS
            # also checks that the id is not another process's by now
            if not self._root.is_running():
                return None
            with suppress(psutil.Error):
                every = self._root.children(recursive=True)
                self._children = [child for child in every if child.pid != os.getpid()]
        resident = 0
        for process in (self._root, *self._children):
            try:
                memory = process.memory_info().rss
            except psutil.Error:
                if process is self._root:
                    return None
                continue
            # A process that ends gives up its memory first. It keeps its number until it is waited
            # for.
            if process is self._root and not memory:
                return None
            resident += memory
        return resident


class Gpu:
    """One device as NVML reports it. An unsupported value stays empty, and is not asked for
    again."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml = nvml
        self._calls: dict[str, Callable[[], Value]] = {
            "gpu_utilisation_percent": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
            "gpu_memory_used_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used,
            "gpu_power_watts": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
            "gpu_energy_joules": lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000,
            "gpu_sm_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            "gpu_temperature_celsius": lambda: nvml.nvmlDeviceGetTemperature(
                handle, nvml.NVML_TEMPERATURE_GPU
            ),
            # NVML renamed it to ClocksEventReasons; new and old drivers answer to the first name.
            "gpu_throttle_reasons": lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle),
        }

    def read(self) -> dict[str, Value]:
        """Return a value for each column that the device still answers for."""
        values: dict[str, Value] = {}
        for column, call in list(self._calls.items()):
            try:
                values[column] = call()
            except self._nvml.NVMLError as error:
                if error.value in (
                    self._nvml.NVML_ERROR_NOT_SUPPORTED,
                    self._nvml.NVML_ERROR_FUNCTION_NOT_FOUND,
                    self._nvml.NVML_ERROR_NO_PERMISSION,
                ):
                    del self._calls[column]
            except (AttributeError, TypeError):  # another version of the bindings
                del self._calls[column]
        return values


def open_gpu(nvml: Any = None, number: int = 0) -> Gpu | None:
    """Return the GPU at place ``number`` of ``CUDA_VISIBLE_DEVICES`` (PCI index or UUID); without
    that, of all GPUs.

    The function returns None if NVML does not answer. ``nvml`` replaces the bindings in tests.
    """
    try:
        nvml = nvml or importlib.import_module("pynvml")
        nvml.nvmlInit()
        return Gpu(nvml, nvml_handle(nvml, number))
    # no bindings, no driver, no such device: the host's columns are still worth having
    except Exception:
        return None


def read_together(gpus: Sequence[Gpu]) -> dict[str, Value]:
    """Return the readings of all GPUs that train together, by column, as if they were one device.

    Memory, power and energy are sums, utilisation and clock are means, the temperature is the
    highest, and every throttle reason counts. A column that one GPU lacks is left out.
    """
    readings = [gpu.read() for gpu in gpus]
    values = {column: [reading.get(column) for reading in readings] for column in GPU_COLUMNS}
    return {
        column: TOGETHER.get(column, sum)(told)
        for column, told in values.items()
        if None not in told
    }


class Sampler:
    """Takes one sample of all columns at a time."""

    def __init__(self, pid: int, gpus: Sequence[Gpu]) -> None:
        self._tree = Tree(pid) if pid else None
        self._gpus = gpus
        psutil.cpu_percent()  # the first answer covers no time at all

    def sample(self) -> dict[str, Value] | None:
        """Return the values by column, or None if the watched process is gone."""
        seconds = time.time()
        resident = self._tree.resident_bytes(time.monotonic()) if self._tree else None
        if self._tree and resident is None:
            return None
        return {
            "seconds": seconds,
            "cpu_percent": psutil.cpu_percent(),
            "process_resident_bytes": resident,
        } | (read_together(self._gpus) if self._gpus else {})


def line(values: Mapping[str, Value]) -> str:
    """Return one line of CSV; an absent value is empty."""
    return ",".join(_text(values.get(column)) for column in COLUMNS) + "\n"


def _text(value: Value) -> str:
    if value is None:
        return ""
    return f"{value:.4f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def watch(path: Path, pid: int, gpus: int) -> None:
    """Append samples to ``path`` until told to end, or until the watched process or our parent is
    gone.

    ``gpus`` is the number of GPUs that train, counted from the first; 0 in a run on a CPU.
    """
    stopping = False

    def stop(*_: Any) -> None:
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the run, which then ends us
    parent = os.getppid()
    die_with_parent(signal.SIGTERM)
    sampler = Sampler(pid, [gpu for number in range(gpus) if (gpu := open_gpu(number=number))])
    with path.open("a", encoding="ascii", buffering=1) as file:
        if not file.tell():
            file.write(",".join(COLUMNS) + "\n")
        due = time.monotonic()
        while not stopping and os.getppid() == parent:
            # After a stall continue from now: CPU shares over almost no time mean nothing.
            due = max(due + PERIOD_SECONDS, time.monotonic() + PERIOD_SECONDS / 2)
            time.sleep(max(0.0, due - time.monotonic()))
            values = sampler.sample()
            if values is None:
                return
            file.write(line(values))


@contextmanager
def sampling(path: Path, gpus: int) -> Iterator[None]:
    """Sample this process, its children and the first ``gpus`` GPUs into the CSV file ``path``
    within the context.

    Sampling never makes a run fail: if no sampler can be started, the run continues without
    telemetry. Call it from the main thread: the kernel treats the end of the thread that started a
    process as the end of the parent.
    """
    command = [
        sys.executable,
        "-m",
        "study.training.instruments.sampler",
        str(path),
        str(os.getpid()),
        str(gpus),
    ]
    quiet = subprocess.DEVNULL
    process = None
    with suppress(Exception):
        process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        yield
    finally:
        if process:
            with suppress(Exception):
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(STOP_SECONDS)
                process.kill()
                process.wait(STOP_SECONDS)


if __name__ == "__main__":
    watched = sys.argv[2]
    if watched == "-":
        print("ready", flush=True)
        watched = sys.stdin.readline()
    with suppress(psutil.NoSuchProcess, ValueError):  # gone before the first sample; none was told
        watch(Path(sys.argv[1]), int(watched), int(sys.argv[3]))
