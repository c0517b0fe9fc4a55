"""The watch over a run's process: every second between its marks is in one of the parts."""

import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from study.training.instruments import clock
from tests.unit.training.test_inputs import Prepared


def test_each_part_is_what_passed_before_its_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=lambda: now[0], time=time.time))
    watch = clock.Stopwatch()
    for name, seconds in (("inputs", 1), ("device_start", 2), ("instruments", 3), ("training", 4), ("instruments", 5)):
        now[0] += seconds
        watch.mark(name)
    timeline = watch.timeline()
    parts = (
        timeline.inputs_seconds,
        timeline.device_start_seconds,
        timeline.instruments_seconds,
        timeline.training_seconds,
    )
    assert parts == (1, 2, 8, 4)
    assert 0 <= timeline.start_seconds <= time.time() - psutil.Process().create_time()


def test_a_run_records_its_parts_and_they_fit_into_its_process(tmp_path: Path) -> None:
    prepared = Prepared({"source": "generated", "images": 20, "image_size": 32}, tmp_path / "results")
    began = time.perf_counter()
    result = prepared.result()
    whole = time.perf_counter() - began
    assert result.timeline
    assert result.measurement
    parts = result.timeline.model_dump()
    assert sum(seconds for name, seconds in parts.items() if name != "start_seconds") <= whole
    assert parts["training_seconds"] >= result.measurement.fit_seconds
    assert result.reference_workload
    assert parts["instruments_seconds"] >= sum(result.reference_workload.before)
