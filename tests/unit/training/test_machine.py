"""The description of a run's machine."""

from pathlib import Path

import pytest

from study.training.instruments import machine


def test_a_hypervisor_and_the_units_of_the_processor_are_seen_by_its_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text("processor: 0\nflags\t: fpu sse avx2 amx_bf16 hypervisor\nprocessor: 1\n")
    (tmp_path / "arm").write_text("processor: 0\nFeatures: fp asimd\n")
    for name, units, virtualised in (("cpuinfo", ["amx_bf16", "avx2"], True), ("arm", None, None)):
        monkeypatch.setattr(machine, "CPUINFO", tmp_path / name)
        described = machine.describe("cpu")
        assert (described.cpu_units, described.virtualised) == (units, virtualised)
