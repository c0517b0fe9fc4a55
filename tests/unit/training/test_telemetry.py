import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pandas as pd
import psutil
import pytest

from study.analysis.table.tables import summarise
from study.artifacts.telemetry import COLUMNS, from_parquet, read_samples, write_parquet
from study.base.errors import StudyError
from study.training.instruments import sampler as sampler_module
from study.training.instruments.sampler import Tree, line, open_gpu, sampling
from tests.waiting import wait_for

MIB = 2**20
HOLDS_MEMORY = (
    "held = bytearray(150 * 2**20); held[::4096] = b'x' * len(held[::4096]); "
    "print('held', flush=True); "
)
WAITS = "import time; time.sleep(600)"


@contextmanager
def python(code: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that has said its first line."""
    with started("-c", code) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


@contextmanager
def started(*words: str) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def sampler(path: Path, pid: int) -> AbstractContextManager["subprocess.Popen[str]"]:
    return started("-m", "study.training.instruments.sampler", str(path), str(pid), "0")


def wait_for_samples(path: Path, samples: int) -> None:
    wait_for(lambda: count(path) >= samples)


def frame(seconds: list[float], **columns: Any) -> pd.DataFrame:
    values = pd.DataFrame({"seconds": seconds} | columns)
    return values.reindex(columns=list(COLUMNS)).astype("float64")


def count(csv: Path) -> int:
    """The number of samples that are read from a file."""
    return len(read_samples(csv)["seconds"])


def test_a_sampler_sees_what_the_watched_process_holds_until_its_end_and_the_samples_stay(
    tmp_path: Path,
) -> None:
    path = tmp_path / "samples.csv"
    begin = time.time()
    with python(HOLDS_MEMORY + WAITS) as watched, sampler(path, watched.pid) as process:
        wait_for_samples(path, 15)
        watched.send_signal(signal.SIGKILL)  # and not waited for: its number stays taken
        assert process.wait(60) == 0
    samples = pd.DataFrame(read_samples(path))
    assert path.read_text().splitlines()[0].split(",") == list(COLUMNS)
    assert samples["seconds"].is_monotonic_increasing
    assert samples["seconds"].between(begin, time.time()).all()
    assert samples["process_resident_bytes"].between(150 * MIB, 250 * MIB).all()
    assert samples["cpu_percent"].between(0, 100).all()
    assert samples["gpu_power_watts"].isna().all()


def test_sampling_stops_its_sampler_and_lets_errors_through(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    before = {child.pid for child in psutil.Process().children()}
    with pytest.raises(StudyError, match="planted"), sampling(path, 0):
        assert {child.pid for child in psutil.Process().children()} - before
        wait_for_samples(path, 2)
        raise StudyError("planted")
    assert not {child.pid for child in psutil.Process().children()} - before


def test_a_sampler_that_cannot_start_stops_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []
    with sampling(tmp_path / "no such folder" / "samples.csv", 0):
        done.append("no folder")
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with sampling(tmp_path / "samples.csv", 0):
        done.append("no python")
    assert done == ["no folder", "no python"]
    assert count(tmp_path / "samples.csv") == 0


def test_a_sampler_that_is_a_child_of_the_watched_process_does_not_count_itself() -> None:
    code = (
        "import os; from study.training.instruments.sampler import Tree; "
        "tree = Tree(os.getppid()); alone = tree.resident_bytes(0.0); "
        f"{HOLDS_MEMORY}print(tree.resident_bytes(1.5) - alone)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) < 100 * MIB


def test_children_and_theirs_count_and_are_looked_for_once_a_second() -> None:
    tree = Tree(os.getpid())

    def resident(now: float) -> int:
        found = tree.resident_bytes(now)
        assert found
        return found

    alone = resident(0.0)
    run = f"subprocess.run([sys.executable, '-c', {HOLDS_MEMORY + WAITS!r}])"
    with python(f"import subprocess, sys; {run}") as child:
        unseen = resident(0.5)  # the list of children is as old as it may get
        all_of_them = resident(1.5)
        psutil.Process(child.pid).children()[0].kill()
    assert unseen < alone + 100 * MIB < all_of_them < alone + 300 * MIB


class Refused(Exception):
    """NVML's error, with its number."""

    def __init__(self, value: int) -> None:
        self.value = value


def planted_driver(asked: list[str]) -> Any:
    """A driver with planted values, and what it is asked. It knows no power, and one device under
    two names."""

    def note(question: str, answer: str | Refused | None = None) -> str | None:
        asked.append(question)
        if isinstance(answer, Refused):
            raise answer
        return answer

    # it does not answer now, and may later
    return SimpleNamespace(
        NVMLError=Refused,
        NVML_ERROR_NOT_SUPPORTED=3,
        NVML_ERROR_FUNCTION_NOT_FOUND=13,
        NVML_ERROR_NO_PERMISSION=4,
        NVML_CLOCK_SM=1,
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: note("init"),
        nvmlDeviceGetHandleByIndex=lambda index: note(f"index {index}", "gpu"),
        nvmlDeviceGetHandleByUUID=lambda uuid: note(f"uuid {uuid}", "gpu"),
        nvmlDeviceGetUtilizationRates=lambda _: SimpleNamespace(gpu=87, memory=12),
        nvmlDeviceGetMemoryInfo=lambda _: SimpleNamespace(used=9 * MIB, total=80 * MIB),
        nvmlDeviceGetPowerUsage=lambda _: note("power", Refused(3)),
        nvmlDeviceGetTotalEnergyConsumption=lambda _: 1_234_500,
        nvmlDeviceGetClockInfo=lambda _, kind: {1: 1980}[kind],
        nvmlDeviceGetTemperature=lambda *_: note("temperature", Refused(999)),
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda _: 0x24,
    )


def test_a_gpu_is_in_each_sample_and_asked_once_for_what_it_does_not_support() -> None:
    asked: list[str] = []
    gpu = open_gpu(planted_driver(asked))
    assert gpu
    for _ in range(3):
        assert gpu.read() == {
            "gpu_utilisation_percent": 87,
            "gpu_memory_used_bytes": 9 * MIB,
            "gpu_energy_joules": 1234.5,
            "gpu_sm_clock_mhz": 1980,
            "gpu_throttle_reasons": 0x24,
        }
    assert (asked.count("power"), asked.count("temperature")) == (1, 3)
    taken = sampler_module.Sampler(os.getpid(), [gpu]).sample()
    assert taken is not None
    assert set(taken) == set(COLUMNS) - {"gpu_power_watts", "gpu_temperature_celsius"}


@pytest.mark.parametrize(
    ("visible", "asked"),
    [(None, "index 0"), ("", "index 0"), ("2,1", "index 2"), ("GPU-8f,0", "uuid GPU-8f")],
)
def test_the_gpu_is_the_first_that_is_visible(
    visible: str | None, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    questions: list[str] = []
    assert open_gpu(planted_driver(questions))
    assert questions == ["init", asked]


def test_without_a_driver_there_is_no_gpu_and_no_error() -> None:
    driver = SimpleNamespace(NVMLError=Refused, nvmlInit=Mock(side_effect=Refused(9)))
    assert open_gpu(driver) is None


def test_lines_that_no_sampler_wrote_or_that_were_cut_off_cost_the_others_nothing(
    tmp_path: Path,
) -> None:
    """A user's code may have written to the file; samples of two samplers may lie in any order."""
    path = tmp_path / "samples.csv"
    late, early, cut = (
        line({"seconds": second, "gpu_power_watts": 100.0 + second}) for second in (2.0, 1.0, 3.0)
    )
    path.write_text(",".join(COLUMNS) + "\n" + late + "1,2\n" + early + cut[:-1])
    pd.testing.assert_frame_equal(
        pd.DataFrame(read_samples(path)), frame([1.0, 2.0], gpu_power_watts=[101.0, 102.0])
    )
    assert list(read_samples(tmp_path / "nothing.csv")) == list(COLUMNS)
    words = b"\n" + b"x," * (len(COLUMNS) - 1) + b"x\n"
    strange = (b"", b"\xff\0\n\xfe\n", b"hello\nworld\n", ",".join(COLUMNS).encode())
    for content in (*strange, path.read_bytes() + words):
        path.write_bytes(content)
        assert count(path) == 0


def test_parquet_holds_the_same_samples_and_leaves_nothing_beside(tmp_path: Path) -> None:
    samples = frame([1.0, 2.0], gpu_throttle_reasons=[1, 4], cpu_percent=[0.5, None])
    path = tmp_path / "telemetry" / "run.parquet"
    write_parquet(samples, path)
    write_parquet(samples, path)
    pd.testing.assert_frame_equal(from_parquet(path.read_bytes()), samples)
    assert list(path.parent.iterdir()) == [path]


def test_a_summary_takes_means_and_peaks_of_its_window_alone() -> None:
    samples = frame([float(second) for second in range(20)])
    samples["process_resident_bytes"] = samples["seconds"]
    samples["gpu_temperature_celsius"] = 60 + samples["seconds"]
    samples["gpu_utilisation_percent"] = 90 - 10 * (samples["seconds"] % 2)
    names = ["cpu_percent", "gpu_memory_used_bytes", "gpu_sm_clock_mhz"]
    samples[names] = [50, 7, 1500]
    outside = ~samples["seconds"].between(5, 14)
    names += ["process_resident_bytes", "gpu_temperature_celsius", "gpu_utilisation_percent"]
    samples.loc[outside, names] = [100, 9, 300, 1000, 99, 0]
    found = summarise(samples, 5.0, 14.0, "cuda")
    assert found.pop("energy_refused")
    assert found == {
        "cpu_percent": 50,
        "peak_tree_resident_bytes": 14,
        "gpu_utilisation_percent": 85,
        "peak_device_used_bytes": 7,
        "sm_clock_mhz": 1500,
        "gpu_temperature_celsius": 74,
        "energy_joules": None,
    }
    nothing = summarise(frame([]), 0.0, 10.0, "cuda")
    assert nothing.pop("energy_refused")
    assert {*nothing.values()} == {None}


def tenths(last: int) -> list[float]:
    return [number / 10 for number in range(10 * last + 1)]


def energy(
    samples: pd.DataFrame, start: float, end: float, device: str = "cuda"
) -> tuple[Any, ...]:
    """Joules, and the reason for their absence."""
    found = summarise(samples, start, end, device)
    return found["energy_joules"], found["energy_refused"]


def test_energy_comes_from_the_counters() -> None:
    """50 W until second 10, then 200 W; the power readings are planted wrong."""
    seconds = tenths(30)
    counter = [5 * min(s, 10) + 20 * max(s - 10, 0) for s in seconds]
    samples = frame(
        seconds,
        gpu_energy_joules=[1e6 + 10 * joules for joules in counter],
        gpu_power_watts=[60.0 if s < 10 else 400.0 for s in seconds],
    )
    assert energy(samples, 10.05, 20.05) == (pytest.approx(2000), None)
    assert energy(samples, 10.05, 20.05, "cpu") == (None, "Only a GPU counts its energy.")


def test_energy_is_refused_where_the_samples_cannot_tell() -> None:
    seconds = tenths(20)
    samples = frame(seconds, gpu_energy_joules=seconds)
    still = frame(seconds, gpu_energy_joules=[5.0] * len(seconds))
    for given, start, end, why in (
        (samples, 10.0, 11.99, "The window of 1.99 s is under 2 s."),
        (samples.iloc[::5], 10.1, 14.1, "The window holds 8 samples, fewer than 10."),
        (samples, 18.0, 22.0, "The samples leave out 2.0 s of the window."),
        (
            frame(seconds, gpu_power_watts=seconds),
            0.0,
            20.0,
            "The device does not count its energy.",
        ),
        (still, 0.0, 20.0, "The energy counter stands still."),
    ):
        assert energy(given, start, end) == (None, why)


def test_a_hole_spoils_no_counter_and_one_that_goes_back_is_refused() -> None:
    seconds = [s for s in tenths(20) if not 8 < s < 12]
    steady, back = [100 * s for s in seconds], [100 * s if s < 5 else s for s in seconds]

    def found(joules: list[float]) -> tuple[Any, ...]:
        return energy(frame(seconds, gpu_energy_joules=joules), 1.0, 19.0)

    again = "The energy counter went back: its driver was loaded again."
    assert found(steady) == (pytest.approx(1800), None)
    assert found(back) == (None, again)
