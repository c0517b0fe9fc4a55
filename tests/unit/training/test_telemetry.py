import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pytest

from study.analysis.table.telemetry import summarise, throttle_words
from study.artifacts import telemetry
from study.artifacts.telemetry import read_parquet, read_samples, write_parquet
from study.artifacts.telemetry_columns import COLUMNS
from study.base.errors import StudyError
from study.training.instruments import sampler as sampler_module
from study.training.instruments.sampler import Tree, line, open_gpu, open_packages, read_rapl_joules, sampling
from tests.conftest import ROOT

MIB = 2**20
HOLDS_MEMORY = "held = bytearray(150 * 2**20); held[::4096] = b'x' * len(held[::4096]); print('held', flush=True); "
WAITS = "import time; time.sleep(600)"


def eventually(happens: Callable[[], bool]) -> bool:
    """Whether it happens at all: the limit is there to end a test that would wait for ever."""
    for _ in range(600):
        if happens():
            return True
        time.sleep(0.05)
    return False


def ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@contextmanager
def python(code: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that has said its first line."""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()


@contextmanager
def sampler(path: Path, pid: int) -> Iterator["subprocess.Popen[bytes]"]:
    command = [
        sys.executable,
        "-m",
        "study.training.instruments.sampler",
        str(path),
        "--watch",
        str(pid),
        "--gpus",
        "0",
    ]
    with subprocess.Popen(command) as process:
        try:
            yield process
        finally:
            process.kill()


def at_least(path: Path, samples: int) -> bool:
    return eventually(lambda: count(path) >= samples)


def frame(seconds: list[float], **columns: Any) -> pd.DataFrame:
    values = pd.DataFrame({"seconds": seconds} | columns)
    return values.reindex(columns=list(COLUMNS)).astype("float64")


def count(csv: Path) -> int:
    """The number of samples that are read from a file."""
    return len(read_samples(csv)["seconds"])


def test_the_sampler_starts_without_pandas() -> None:
    """It starts when a run does, and beside it: half a second of imports would be a neighbour's."""
    said = "import study.training.instruments.sampler, sys; sys.exit('pandas' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", said], cwd=ROOT).returncode == 0


def test_a_sampler_sees_again_and_again_what_the_watched_process_holds(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    begin = time.time()
    with python(HOLDS_MEMORY + WAITS) as watched, sampler(path, watched.pid) as process:
        assert at_least(path, 15)
        process.terminate()
        assert process.wait() == 0
    samples = pd.DataFrame(read_samples(path))
    assert path.read_text().splitlines()[0].split(",") == list(COLUMNS)
    assert samples["seconds"].is_monotonic_increasing
    assert samples["seconds"].between(begin, time.time()).all()
    assert samples["process_resident_bytes"].between(150 * MIB, 250 * MIB).all()
    assert samples["process_cpu_percent"].median() < 50
    assert samples["cpu_percent"].between(0, 100).all()
    assert samples["available_memory_bytes"].min() > 0
    assert samples["gpu_power_watts"].isna().all()


def test_samples_are_ten_a_second_or_more_and_after_a_stall_go_on_from_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a planted clock: a sample takes 0.01 s, and the fifth one 3 s. None is made up for."""
    now, taken = 100.0, []

    class Planted:
        def __init__(self, *_: object) -> None:
            """Watch nothing."""

        def sample(self) -> dict[str, float] | None:
            nonlocal now
            taken.append(now)
            now += 3.0 if len(taken) == 5 else 0.01
            return {"seconds": taken[-1]} if len(taken) < 10 else None

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(sampler_module, "Sampler", Planted)
    monkeypatch.setattr(sampler_module, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    monkeypatch.setattr(sampler_module, "die_with_parent", lambda number: None)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    sampler_module.watch(tmp_path / "samples.csv", os.getpid(), 0)
    period = sampler_module.PERIOD_SECONDS
    gaps = [after - before for before, after in pairwise(taken)]
    assert period <= 0.1
    assert gaps == pytest.approx([*[period] * 4, 3.0 + period / 2, *[period] * 4])
    assert read_samples(tmp_path / "samples.csv")["seconds"].tolist() == pytest.approx(taken[:-1], abs=1e-3)


def test_samples_stay_when_the_watched_process_is_killed_and_the_sampler_ends(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    with python(HOLDS_MEMORY + WAITS) as watched, sampler(path, watched.pid) as process:
        assert at_least(path, 5)
        watched.send_signal(signal.SIGKILL)  # and not waited for: its number stays taken
        assert eventually(lambda: process.poll() is not None)
        assert process.returncode == 0
    samples = read_samples(path)
    assert len(samples["seconds"]) >= 5
    assert samples["process_resident_bytes"].min() > 150 * MIB


def test_a_process_that_has_given_up_its_memory_leaves_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between a process's last instruction and its end its number is taken, its state is "running", and its memory is
    gone."""
    held = MIB

    class Leaving(psutil.Process):
        def oneshot(self) -> Any:
            return nullcontext()

        def memory_info(self) -> Any:
            return SimpleNamespace(rss=held)

    monkeypatch.setattr(psutil, "Process", Leaving)
    tree = Tree(os.getpid())
    assert tree.read(0.0) is not None
    held = 0
    assert tree.read(0.1) is None


def test_a_sampler_that_is_killed_leaves_what_it_saw(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    with python("print(1, flush=True); " + WAITS) as watched, sampler(path, watched.pid) as process:
        assert at_least(path, 5)
        process.kill()
    assert count(path) >= 5


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's end at once")
def test_a_sampler_ends_with_the_process_that_started_it_and_watches_it(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    code = (
        "import pathlib, psutil\nfrom study.training.instruments.sampler import sampling\n"
        f"with sampling(pathlib.Path({str(path)!r}), 0):\n"
        "    print(psutil.Process().children()[0].pid, flush=True)\n"
        "    import time; time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert at_least(path, 3)
        assert not ended(pid)
        parent.kill()
    assert eventually(lambda: ended(pid))
    assert count(path) >= 3


def test_sampling_stops_its_sampler_and_lets_errors_through(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    before = {child.pid for child in psutil.Process().children()}
    with pytest.raises(StudyError, match="planted"), sampling(path, 0):
        assert {child.pid for child in psutil.Process().children()} - before
        assert at_least(path, 2)
        raise StudyError("planted")
    assert not {child.pid for child in psutil.Process().children()} - before


def test_a_sampler_that_cannot_start_stops_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sampling(tmp_path / "no such folder" / "samples.csv", 0):
        pass
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    done = False
    with sampling(tmp_path / "samples.csv", 0):
        done = True
    assert done
    assert count(tmp_path / "samples.csv") == 0


def test_children_count_and_are_looked_for_once_a_second() -> None:
    tree = Tree(os.getpid())
    alone = tree.read(0.0)
    with python(HOLDS_MEMORY + WAITS):
        unseen = tree.read(0.5)  # the list of children is as old as it may get
        both = tree.read(1.5)
    assert alone is not None
    assert unseen is not None
    assert both is not None
    assert unseen[1] < alone[1] + 100 * MIB
    assert alone[1] + 100 * MIB < both[1] < alone[1] + 300 * MIB


def test_a_sampler_that_is_a_child_of_the_watched_process_does_not_count_itself() -> None:
    code = (
        "import os; from study.training.instruments.sampler import Tree; "
        "tree = Tree(os.getppid()); alone = tree.read(0.0); "
        f"{HOLDS_MEMORY}print(tree.read(1.5)[1] - alone[1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) < 100 * MIB


@pytest.mark.parametrize("lists", ["kept", "not kept"])
def test_children_of_children_count_whether_the_kernel_keeps_lists_of_them_or_not(
    lists: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listdir = os.listdir

    def without_lists(path: str) -> list[str]:
        if str(path).endswith("/task"):
            raise FileNotFoundError(path)
        return listdir(path)

    if lists == "not kept":
        monkeypatch.setattr(os, "listdir", without_lists)
    tree = Tree(os.getpid())
    alone = tree.read(0.0)
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLDS_MEMORY + WAITS!r}])"
    with python(code) as child:
        both = tree.read(1.5)
        psutil.Process(child.pid).children()[0].kill()
    assert alone is not None
    assert both is not None
    assert both[1] > alone[1] + 100 * MIB


def test_a_busy_process_uses_about_one_core() -> None:
    with python("print(1, flush=True)\nwhile True: pass") as busy:
        tree = Tree(busy.pid)
        times = psutil.Process(busy.pid).cpu_times
        before = times()
        tree.read(10.0)
        begun = times()
        assert eventually(lambda: times().user - begun.user > 0.3)
        used = tree.read(11.0)  # the clock is ours: what the process used counts as used in one second
        after = times()
    assert used is not None
    assert used[0] is not None
    assert 30 <= used[0] <= 100 * (after.user + after.system - before.user - before.system) + 2


class Refused(Exception):
    """NVML's error, with its number."""

    def __init__(self, value: int) -> None:
        self.value = value


class Nvml:
    """A driver with planted values. It knows no power, and one device under two names."""

    NVMLError = Refused
    NVML_ERROR_NOT_SUPPORTED, NVML_ERROR_FUNCTION_NOT_FOUND, NVML_ERROR_NO_PERMISSION = 3, 13, 4
    NVML_CLOCK_SM, NVML_TEMPERATURE_GPU = 1, 0

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.processes: list[int | None] = [3 * MIB, None, 4 * MIB]

    def nvmlInit(self) -> None:
        self.asked.append("init")

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        self.asked.append(f"index {index}")
        return "gpu"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        self.asked.append(f"uuid {uuid}")
        return "gpu"

    def nvmlDeviceGetUtilizationRates(self, _: str) -> Any:
        return SimpleNamespace(gpu=87, memory=12)

    def nvmlDeviceGetMemoryInfo(self, _: str) -> Any:
        return SimpleNamespace(used=9 * MIB, total=80 * MIB)

    def nvmlDeviceGetComputeRunningProcesses(self, _: str) -> list[Any]:
        return [SimpleNamespace(pid=1, usedGpuMemory=used) for used in self.processes]

    def nvmlDeviceGetPowerUsage(self, _: str) -> int:
        self.asked.append("power")
        raise Refused(self.NVML_ERROR_NOT_SUPPORTED)

    def nvmlDeviceGetTotalEnergyConsumption(self, _: str) -> int:
        return 1_234_500

    def nvmlDeviceGetClockInfo(self, _: str, kind: int) -> int:
        return {1: 1980}[kind]

    def nvmlDeviceGetTemperature(self, _: str, sensor: int) -> int:
        self.asked.append("temperature")
        raise Refused(999)  # it does not answer now, and may later

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, _: str) -> int:
        return 0x24


def test_a_gpu_is_read_and_asked_once_for_what_it_does_not_support() -> None:
    nvml = Nvml()
    gpu = open_gpu(nvml)
    assert gpu is not None
    for _ in range(3):
        assert gpu.read() == {
            "gpu_utilisation_percent": 87,
            "gpu_memory_used_bytes": 9 * MIB,
            "gpu_process_memory_bytes": 7 * MIB,
            "gpu_energy_joules": 1234.5,
            "gpu_sm_clock_mhz": 1980,
            "gpu_throttle_reasons": 0x24,
        }
    assert nvml.asked.count("power") == 1
    assert nvml.asked.count("temperature") == 3
    nvml.processes = []
    assert gpu.read()["gpu_process_memory_bytes"] is None


@pytest.mark.parametrize(
    ("visible", "asked"),
    [(None, "index 0"), ("", "index 0"), ("2,1", "index 2"), ("GPU-8f,0", "uuid GPU-8f")],
)
def test_the_gpu_is_the_first_that_is_visible(visible: str | None, asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    nvml = Nvml()
    assert open_gpu(nvml)
    assert nvml.asked == ["init", asked]


def test_without_a_driver_there_is_no_gpu_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise Refused(9)

    nvml = Nvml()
    monkeypatch.setattr(nvml, "nvmlInit", fail)
    assert open_gpu(nvml) is None


def test_a_line_holds_a_value_for_each_column_and_nothing_where_there_is_none() -> None:
    written = line({"seconds": 1763728000.123456, "process_resident_bytes": 10, "gpu_energy_joules": 0.5}).split(",")
    assert len(written) == len(COLUMNS)
    values = dict(zip(COLUMNS, written, strict=True))
    assert values["seconds"] == "1763728000.1235"
    assert values["process_resident_bytes"] == "10"
    assert values["gpu_energy_joules"] == "0.5"
    assert values["gpu_power_watts"] == ""
    assert line({"load_1min": 100.0}).split(",")[COLUMNS.index("load_1min")] == "100"


def plant_zone(folder: Path, zone: str, name: str, microjoules: int) -> Path:
    path = folder / zone
    path.mkdir(parents=True)
    (path / "name").write_text(f"{name}\n")
    (path / "max_energy_range_uj").write_text("9999999\n")
    (path / "energy_uj").write_text(f"{microjoules}\n")
    return path / "energy_uj"


def test_a_processor_counter_that_starts_again_goes_on(tmp_path: Path) -> None:
    first = plant_zone(tmp_path, "intel-rapl:0", "package-0", 9_000_000)
    second = plant_zone(tmp_path, "intel-rapl:1", "package-1", 0)
    plant_zone(tmp_path, "intel-rapl:2", "psys", 0)
    part = plant_zone(tmp_path, "intel-rapl:0:0", "core", 0)
    packages = open_packages(tmp_path)
    assert read_rapl_joules(packages) == 0
    first.write_text("1000000\n")  # 1 J to the end of the counter, 1 J more, and the turn itself is 1 uJ
    second.write_text("3000000\n")
    part.write_text("7000000\n")
    assert read_rapl_joules(packages) == pytest.approx(5.0)
    first.write_text("2000000\n")
    assert read_rapl_joules(packages) == pytest.approx(6.0)
    first.unlink()
    assert read_rapl_joules(packages) is None
    assert read_rapl_joules(open_packages(tmp_path / "nothing")) is None


def test_samples_are_read_back_without_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    whole = [line({"seconds": second, "gpu_power_watts": 100.0 + second}) for second in (1.0, 2.0, 3.0)]
    path.write_text(",".join(COLUMNS) + "\n" + "".join(whole)[:-1])
    samples = read_samples(path)
    assert samples["seconds"].tolist() == [1.0, 2.0]
    assert samples["gpu_power_watts"].tolist() == [101.0, 102.0]
    assert list(read_samples(tmp_path / "nothing.csv")) == list(COLUMNS)
    path.write_text("")
    assert count(path) == 0


def test_lines_that_no_sampler_wrote_cost_the_others_nothing(tmp_path: Path) -> None:
    """A user's code may have written to the file; samples of two samplers may lie in any order."""
    path = tmp_path / "samples.csv"
    late, early = (line({"seconds": second, "load_1min": second / 10}) for second in (2.0, 1.0))
    path.write_text(",".join(COLUMNS) + "\n" + late + "1,2\n" + early)
    samples = read_samples(path)
    assert samples["seconds"].tolist() == [1.0, 2.0]
    assert samples["load_1min"].tolist() == [0.1, 0.2]
    assert bool(np.isnan(samples["gpu_power_watts"]).all())
    words = b"x," * (len(COLUMNS) - 1) + b"x\n"
    for content in (b"\xff\0\n\xfe\n", b"hello\nworld\n", ",".join(COLUMNS).encode(), path.read_bytes() + words):
        path.write_bytes(content)
        assert count(path) == 0


def test_parquet_holds_the_same_samples_and_leaves_nothing_beside(tmp_path: Path) -> None:
    samples = frame([1.0, 2.0], gpu_throttle_reasons=[1, 4], load_1min=[0.5, None])
    path = tmp_path / "telemetry" / "run.parquet"
    write_parquet(samples, path)
    write_parquet(samples, path)
    pd.testing.assert_frame_equal(read_parquet(path), samples)
    assert list(path.parent.iterdir()) == [path]


def test_more_samples_than_a_sampler_takes_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = tmp_path / "samples.csv"
    with large.open("wb") as file:
        file.truncate(telemetry.LARGEST_CSV + 1)
    assert count(large) == 0
    write_parquet(frame([1.0, 2.0, 3.0]), tmp_path / "run.parquet")
    monkeypatch.setattr(telemetry, "MOST_SAMPLES", 2)
    with pytest.raises(StudyError, match="there are more than 2"):
        read_parquet(tmp_path / "run.parquet")


def test_a_summary_takes_means_and_peaks_of_its_window_alone() -> None:
    seconds = [float(second) for second in range(20)]
    inside = [5 <= second <= 14 for second in range(20)]
    samples = frame(
        seconds,
        cpu_percent=[50.0 if i else 100.0 for i in inside],
        process_resident_bytes=[second if i else 1000 for i, second in zip(inside, range(20), strict=True)],
        gpu_utilisation_percent=[(80 if second % 2 else 90) if i else 0 for second, i in enumerate(inside)],
        gpu_memory_used_bytes=[7 if i else 9 for i in inside],
        gpu_sm_clock_mhz=[1500 if i else 300 for i in inside],
        gpu_temperature_celsius=[60 + second if i else 99 for second, i in enumerate(inside)],
        gpu_throttle_reasons=[(0x4 if second == 7 else 0x21) if i else 0x40 for second, i in enumerate(inside)],
    )
    summary = summarise(samples, 5.0, 14.0)
    assert summary.samples == 10
    assert summary.window_seconds == 9
    assert summary.mean_cpu_percent == 50
    assert summary.peak_process_resident_bytes == 14
    assert summary.mean_gpu_utilisation_percent == 85
    assert summary.peak_gpu_memory_used_bytes == 7
    assert summary.peak_gpu_process_memory_bytes is None
    assert summary.mean_gpu_sm_clock_mhz == 1500
    assert summary.max_gpu_temperature_celsius == 74
    assert summary.throttle_reasons == ["software power cap", "software thermal slowdown"]
    assert summary.gpu_energy.refused
    assert summarise(frame([]), 0.0, 10.0).samples == 0


def tenths(first: float, last: float) -> list[float]:
    return [round(first + number / 10, 1) for number in range(round((last - first) * 10) + 1)]


def test_energy_comes_from_the_counter_where_there_is_one() -> None:
    seconds = tenths(0, 30)
    # 50 W until second 10, then 200 W; the power readings are planted wrong, to see which was used.
    counter = [1e6 + 50 * min(s, 10) + 200 * max(s - 10, 0) for s in seconds]
    samples = frame(seconds, gpu_energy_joules=counter, gpu_power_watts=[60.0 if s < 10 else 400.0 for s in seconds])
    energy = summarise(samples, 10.05, 20.05).gpu_energy
    assert energy.method == "counter"
    assert energy.joules == pytest.approx(2000)
    assert energy.refused is None


@pytest.mark.parametrize("counter", [None, 5.0])
def test_energy_comes_from_the_power_where_no_counter_moves(counter: float | None) -> None:
    seconds = tenths(0, 30)
    watts = [40.0 if s < 10 else 100 + 10 * (s - 10) for s in seconds]
    samples = frame(seconds, gpu_power_watts=watts, gpu_energy_joules=[counter] * len(seconds))
    energy = summarise(samples, 12.03, 22.03).gpu_energy
    assert energy.method == "power"
    assert energy.joules == pytest.approx(10 * (100 + 10 * (17.03 - 10)))


@pytest.mark.parametrize("column", ["gpu_power_watts", "gpu_energy_joules", "cpu_package_joules"])
def test_energy_is_refused_where_the_samples_cannot_tell(column: str) -> None:
    def refused(samples: pd.DataFrame, start: float, end: float) -> str:
        summary = summarise(samples, start, end)
        energy = summary.cpu_energy if column.startswith("cpu") else summary.gpu_energy
        assert energy.joules is None
        assert energy.method is None
        assert energy.refused is not None
        return energy.refused

    seconds = tenths(0, 20)
    samples = frame(seconds, **{column: seconds})
    assert refused(samples, 10.0, 11.99) == "The window of 1.99 s is under 2 s."
    assert refused(samples.iloc[::5], 10.1, 14.1) == "The window holds 8 samples, fewer than 10."
    assert refused(samples, 18.0, 22.0) == "The samples leave out 2.0 s of the window."
    empty = frame(seconds)
    assert refused(empty, 0.0, 20.0) in (
        "The device reports neither its energy nor its power.",
        "The processor's energy counter is not readable here.",
    )


def test_a_hole_spoils_an_integral_and_not_a_counter() -> None:
    seconds = [s for s in tenths(0, 20) if not 8 < s < 12]
    power = summarise(frame(seconds, gpu_power_watts=[100.0] * len(seconds)), 1.0, 19.0).gpu_energy
    assert power.refused == "The samples leave out 4.0 s of the window."
    counted = summarise(frame(seconds, gpu_energy_joules=[100 * s for s in seconds]), 1.0, 19.0).gpu_energy
    assert counted.joules == pytest.approx(1800)


def test_a_counter_that_goes_back_is_refused() -> None:
    seconds = tenths(0, 10)
    counter = [100 * s if s < 5 else s for s in seconds]
    energy = summarise(frame(seconds, gpu_energy_joules=counter), 1.0, 9.0).gpu_energy
    assert energy.joules is None
    assert energy.refused == "The energy counter went back: its driver was loaded again."


def test_the_processor_has_its_own_energy() -> None:
    seconds = tenths(0, 30)
    counter = [20 * min(s, 10) + 80 * max(s - 10, 0) for s in seconds]
    energy = summarise(frame(seconds, cpu_package_joules=counter), 10.0, 20.0).cpu_energy
    assert energy.method == "rapl"
    assert energy.joules == pytest.approx(800)


def test_throttling_is_told_in_words_and_idling_is_none() -> None:
    assert throttle_words([]) is None
    assert throttle_words([0, 1]) == []
    assert throttle_words([0x1, 0x8, 0x80, 0x8000]) == [
        "hardware slowdown",
        "hardware power brake slowdown",
        "reason 0x8000",
    ]


def test_one_sample_holds_the_host_and_what_the_gpu_tells() -> None:
    gpu = open_gpu(Nvml())
    taken = sampler_module.Sampler(os.getpid(), [gpu] if gpu else [], []).sample()
    assert taken is not None
    assert set(taken) == set(COLUMNS) - {"gpu_power_watts", "gpu_temperature_celsius"}
    assert taken["process_resident_bytes"] is not None
    assert taken["cpu_package_joules"] is None
