"""The description of a run's machine."""

from pathlib import Path

from study.training.measure import machine


def test_a_hypervisor_is_seen_by_its_flag(tmp_path: Path) -> None:
    for flags, expected in (("fpu sse hypervisor", True), ("fpu sse", False)):
        (tmp_path / "cpuinfo").write_text(f"processor: 0\nflags\t: {flags}\n")
        assert machine.virtualised(tmp_path / "cpuinfo") is expected
    (tmp_path / "arm").write_text("processor: 0\nFeatures: fp asimd\n")
    assert machine.virtualised(tmp_path / "arm") is None
