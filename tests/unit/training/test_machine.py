"""The description of a run's machine, and the CPU threads of its training, whatever a loader does in a thread."""

from pathlib import Path

import pytest

from study.training.instruments import machine
from tests.unit.training.forks import said_by_forks


def test_a_hypervisor_and_the_units_of_the_processor_are_seen_by_its_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text("processor: 0\nflags\t: fpu sse avx2 amx_bf16 hypervisor\nprocessor: 1\n")
    (tmp_path / "arm").write_text("processor: 0\nFeatures: fp asimd\n")
    for name, units, virtualised in (("cpuinfo", ["amx_bf16", "avx2"], True), ("arm", None, None)):
        monkeypatch.setattr(machine, "CPUINFO", tmp_path / name)
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
