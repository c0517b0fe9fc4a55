"""Times of a run: of its phases and steps, and of the parts of its process."""

import time
from pathlib import Path

import psutil
import pytest

from study.artifacts.samples import PHASES, Step
from study.training.instruments.clock import HostClock, StepRecorder, Stopwatch, mark_warm_up
from tests.conftest import PlantedClock
from tests.unit.training.test_inputs import Prepared


def step(seconds: float, epoch: int = 1) -> Step:
    phases = {f"{phase}_seconds": 0.0 for phase in PHASES} | {"forward_seconds": seconds}
    return Step(epoch=epoch, images=4, warm_up=False, **phases)


def test_a_planted_wait_is_found_in_its_phase_step_and_epoch(clock: PlantedClock) -> None:
    recorder = StepRecorder(HostClock())
    for steps in (3, 1):
        recorder.begin()
        for number in range(steps):
            for phase in PHASES:
                clock.pass_by(5.0 if (number, phase) == (1, "transfer") else 0.25)
                recorder.mark(phase)
            recorder.end_step(4)
        recorder.end()
    epoch, other = recorder.read()
    found = [[getattr(step, f"{phase}_seconds") for phase in PHASES] for step in epoch.steps]
    expected = [[0.25] * len(PHASES) for _ in range(3)]
    expected[1][PHASES.index("transfer")] = 5.0
    assert found == expected
    assert epoch.train_seconds == sum(map(sum, expected))
    assert [step.epoch for step in (*epoch.steps, *other.steps)] == [1, 1, 1, 2]


@pytest.mark.parametrize(
    ("seconds", "warm"),
    [
        ([1, 1, 1, 1, 1, 1], 1),
        ([9, 5, 2, 1, 1, 1, 1, 1], 3),
        ([9, 9, 9, 9, 1, 1], 3),  # half of the stage at most
        ([1], 1),
        ([5, 1], 1),
        ([1, 1, 1, 9, 1, 1], 1),  # a slow step later is noise, not warm-up
    ],
)
def test_warm_up_is_the_slow_start_and_at_least_the_first_step(seconds: list[float], warm: int) -> None:
    marked = mark_warm_up([step(s) for s in seconds], ["unfrozen"])
    assert [s.warm_up for s in marked] == [True] * warm + [False] * (len(seconds) - warm)


def test_each_stage_warms_up_by_itself() -> None:
    steps = [step(1, 1), step(1, 1), step(3, 2), step(3, 2), step(3, 3), step(3, 3)]
    marked = mark_warm_up(steps, ["frozen", "unfrozen", "unfrozen"])
    assert [s.warm_up for s in marked] == [True, False, True, False, False, False]


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
