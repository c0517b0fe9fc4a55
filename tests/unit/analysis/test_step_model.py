"""The step model against planted floors and costs, and what bounds an epoch."""

import numpy as np
import pandas as pd
import pytest

from study.analysis.answers.step_model import StepModel, step_model, step_sentence
from study.analysis.table.steps import extreme_steps
from tests.unit.analysis.planted import setting

SIZES = (16, 32, 64, 128, 256)
IMAGES = 1000


def measured(
    floor: float, own: float, image: float, wait: float = 0.0, noise: float = 0.02, replicates: int = 5
) -> pd.DataFrame:
    """Runs whose step takes the larger of ``floor`` and ``own + image b`` seconds; an epoch waits ``wait`` s."""
    rng = np.random.default_rng(3)
    rows = []
    for block in range(replicates):
        for size in SIZES:
            step = max(floor, own + image * size) * float(np.exp(rng.normal(0, noise)))
            epoch = IMAGES / size * step + wait
            rows.append((size, f"1.{block}", step, epoch, IMAGES // size * size, wait))
    columns = ["step_images", "session_block", "busy_step_seconds", "unfrozen_epoch_seconds", "unfrozen_epoch_images"]
    return pd.DataFrame(rows, columns=[*columns, "unfrozen_epoch_wait_seconds"]).assign(session=1)


def model(frame: pd.DataFrame) -> StepModel:
    found = step_model(frame)
    assert found is not None
    return found


def holds(found: StepModel, name: str, value: float) -> bool:
    bounds = found.intervals[name]
    assert bounds.low is not None
    assert bounds.high is not None
    return bounds.low <= value <= bounds.high


def test_a_planted_floor_and_the_costs_beyond_it_are_recovered() -> None:
    found = model(measured(0.010, 0.003, 0.0001))
    assert found.launch_seconds is not None
    assert found.launch_seconds == pytest.approx(0.010, rel=0.05)
    assert found.bend == pytest.approx(70, rel=0.15)
    assert holds(found, "launch_seconds", 0.010)
    assert holds(found, "step_seconds", 0.003)
    assert holds(found, "image_seconds", 0.0001)
    assert [level.bound for level in found.levels] == ["launch", "launch", "launch", "compute", "compute"]


def test_without_a_floor_the_line_is_the_model() -> None:
    found = model(measured(0.0, 0.002, 0.0002))
    assert found.launch_seconds is None
    assert found.bend is None
    assert holds(found, "step_seconds", 0.002)
    assert holds(found, "image_seconds", 0.0002)
    assert [level.bound for level in found.levels] == ["compute"] * 5


def test_an_epoch_that_waits_longer_than_it_computes_is_bound_by_the_loader() -> None:
    found = model(measured(0.0, 0.0, 0.0002, wait=1.0))
    assert {level.bound for level in found.levels} == {"loader"}


def test_steps_waiting_and_the_rest_are_the_epoch_and_the_remainder_is_a_smaller_step() -> None:
    frame = measured(0.0, 0.0, 0.0002, noise=0.001).assign(unfrozen_epoch_images=IMAGES)
    frame["unfrozen_epoch_seconds"] += 0.1
    for level in model(frame).levels:
        total = level.model_epoch_seconds + level.wait_seconds + (level.other_seconds or 0.0)
        assert level.other_seconds == pytest.approx(0.1, abs=0.02)
        assert total == pytest.approx(level.epoch_seconds)
        assert level.model_epoch_seconds == pytest.approx(IMAGES * 0.0002, rel=0.01)


def test_there_is_no_rest_where_the_models_steps_and_the_waiting_are_longer_than_the_epoch() -> None:
    frame = measured(0.0, 0.002, 0.0002, wait=0.5)
    frame["unfrozen_epoch_seconds"] += np.where(frame["step_images"] == 64, -0.3, 0.3)
    found = model(frame)
    assert [level.batch_size for level in found.levels if level.other_seconds is None] == [64]
    assert all(level.other_seconds is None or level.other_seconds > 0 for level in found.levels)
    assert "At batch size 64 there is no rest: the model's steps and the waiting" in step_sentence(
        found, setting(device="cpu")
    )
    assert "no rest" not in step_sentence(model(frame.assign(unfrozen_epoch_seconds=9.0)), setting(device="cpu"))


def test_two_batch_sizes_or_a_run_without_steps_have_no_step_model() -> None:
    frame = measured(0.01, 0.003, 0.0001)
    assert step_model(frame[frame["step_images"] < 64]) is None
    frame.loc[0, "busy_step_seconds"] = np.nan
    assert step_model(frame) is None


def test_extremes_are_half_as_long_again_as_the_median() -> None:
    assert extreme_steps([1.0, 1.0, 1.4, 1.0]) == 0
    assert extreme_steps([1.0, 1.0, 1.6, 1.0, 9.0]) == 2
