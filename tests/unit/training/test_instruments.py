"""The machine, the device and the threads of a run, the arithmetic of fp32, and the reference
workload."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch

from study.artifacts.layout import Results
from study.artifacts.samples import WARM_UP_REPETITIONS
from study.base import hardware
from study.base.devices import usable_cpus
from study.base.fork_server import FORK_SERVERS
from study.config.settings import Settings
from study.host.engine import container
from study.host.fork_servers import Forked, can_fork, fork_server_of, start_fork_servers
from study.training.common import failed
from study.training.instruments import machine, reference_workload
from study.training.instruments.reference_workload import REPETITIONS, repetitions
from tests.conftest import ROOT, tiny_plan
from tests.unit.training.test_measured_code import said_by_forks


def test_a_precision_decides_what_fp32_is_computed_in_and_torchs_older_switches_stay_readable() -> (
    None
):
    """In a process of its own, for the switches are torch's; its own compiler still reads the older
    ones."""
    script = """
import torch
from study.training.instruments.machine import fp32_in_use, has_tf32, set_fp32
import study.training.instruments.machine as switches
for tf32 in (True, False):
    switches.has_tf32 = lambda: tf32
    for precision in ("auto", "fp32", "tf32", "bf16"):
        torch.set_float32_matmul_precision("highest"); torch.backends.cudnn.allow_tf32 = True  # as torch starts
        set_fp32(precision)
        used = fp32_in_use("cuda")
        older = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
        print(precision, used.products, used.convolutions, *older)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.splitlines() == [
        "auto ieee tf32 False True",
        "fp32 ieee ieee False False",
        "tf32 tf32 tf32 True True",
        "bf16 ieee tf32 False True",
        # A GPU that has none, as the T4 of the documents.
        "auto ieee ieee False True",
        "fp32 ieee ieee False False",
        "tf32 ieee ieee True True",
        "bf16 ieee ieee False True",
    ]


def test_the_reference_workload_changes_no_generator_and_no_setting_and_ends_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    seconds = repetitions(torch.device("cpu"))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    assert WARM_UP_REPETITIONS < len(seconds) <= WARM_UP_REPETITIONS + REPETITIONS["cpu"]
    assert min(seconds) > 0
    monkeypatch.setattr(reference_workload, "LIMIT_SECONDS", 0.0)
    assert len(repetitions(torch.device("cpu"))) == WARM_UP_REPETITIONS + 1


def test_a_hypervisor_and_the_processors_units_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(
        "processor: 0\nflags\t: fpu sse avx2 amx_bf16 hypervisor\nprocessor: 1\n"
    )
    (tmp_path / "arm").write_text("processor: 0\nFeatures: fp asimd\n")
    for name, units, virtualised in (("cpuinfo", ["amx_bf16", "avx2"], True), ("arm", None, None)):
        monkeypatch.setattr(hardware, "CPUINFO", tmp_path / name)
        described = machine.describe("cpu")
        assert (described.cpu_units, described.virtualised) == (units, virtualised)


PINNED = """
import threading, torch
from study.training.common import seed_everything

seed_everything(1, {threads!r})
pinning = threading.Thread(target=torch.set_num_threads, args=(1,))  # as torch's loader does to pin memory for a GPU
if {pins}:
    pinning.start()
    pinning.join()
print(torch.get_num_threads())
"""


def test_a_thread_that_pins_memory_leaves_the_training_its_threads() -> None:
    """The plain loop once trained with one thread beside fastai's sixteen."""
    cases = [(threads, pins) for threads in ("auto", 2, 3) for pins in (True, False)]
    programs = [PINNED.format(threads=threads, pins=pins) for threads, pins in cases]
    assert said_by_forks(programs, {"OMP_NUM_THREADS": "2"}) == ["2", "2", "2", "2", "3", "3"]


def test_a_gpu_for_which_torch_has_no_kernels_is_said_to_be_unavailable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "an old GPU")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (6, 0))
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: ["sm_75", "sm_90"])
    told = RuntimeError("CUDA error: no kernel image is available for execution on the device")
    result = failed(told, Settings.model_validate({}))
    assert result.outcome == "unavailable"
    assert "no kernels for an old GPU (compute capability 6.0), but for sm_75, sm_90" in str(
        result.message
    )


@pytest.mark.skipif(not can_fork() or usable_cpus() < 2, reason="needs fork servers and two CPUs")
def test_torch_has_the_threads_of_the_limit_in_a_forked_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch chooses their number when it is imported: a fork server on all CPUs would have chosen
    too many."""
    monkeypatch.setenv(FORK_SERVERS, "")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    plan = tiny_plan(limits={"cpus": 1})
    settings, before = plan.runs[0].settings, set(psutil.Process().children())
    try:
        start_fork_servers([plan], [(plan.name, plan.runs[0].name)], Results(tmp_path))
        fork_server, says = fork_server_of(settings), "import torch; print(torch.get_num_threads())"
        assert fork_server is not None
        process = Forked(
            fork_server, "builtins:exec", [says], container.environment("cpu", os.environ)
        )
        assert list(process.lines) == ["1\n"]
        assert process.wait() == 0
    finally:
        for one in set(psutil.Process().children()) - before:
            one.kill()
            one.wait()
