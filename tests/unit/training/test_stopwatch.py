"""The watch over a run's process: every second between its marks is in one of the parts."""

import time
from pathlib import Path

import psutil

from study.training.instruments.clock import Stopwatch
from tests.conftest import PlantedClock
from tests.unit.training.test_inputs import Prepared


def test_each_part_is_what_passed_before_its_mark(clock: PlantedClock) -> None:
    watch = Stopwatch()
    for name, seconds in (("inputs", 1), ("device_start", 2), ("instruments", 3), ("training", 4), ("instruments", 5)):
        clock.pass_by(seconds)
        watch.mark(name)
    parts = watch.timeline().model_dump()
    assert 0 <= parts.pop("start_seconds") <= time.time() - psutil.Process().create_time()
    assert parts == {"inputs_seconds": 1, "device_start_seconds": 2, "instruments_seconds": 8, "training_seconds": 4}


def test_a_run_records_its_parts_and_they_fit_into_its_process(tmp_path: Path) -> None:
    prepared = Prepared(tmp_path / "results")
    began = time.perf_counter()
    result = prepared.result()
    whole = time.perf_counter() - began
    assert result.timeline and result.measurement and result.reference_workload
    parts = result.timeline.model_dump()
    assert sum(seconds for name, seconds in parts.items() if name != "start_seconds") <= whole
    assert parts["training_seconds"] >= result.measurement.fit_seconds
    assert parts["instruments_seconds"] >= sum(result.reference_workload.before)
