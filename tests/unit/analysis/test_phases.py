"""The parts of each mean: which there are, that they add up, and how they are drawn."""

import re
from itertools import product
from typing import Any

import pandas as pd
import pytest

from study.analysis.figures import bars as figures
from study.analysis.figures.bars import PARTS, Bar, BarsChart, bars_chart
from study.analysis.rows import level_rows
from study.artifacts.plan import Plan
from study.config.study import shown
from tests.conftest import tiny_plan
from tests.timings import as_timings
from tests.unit.analysis.planted import analysis_of

SECONDS = {
    "data_wait_seconds": 4.0,
    "transfer_seconds": 0.5,
    "device_transform_seconds": 0.25,
    "forward_seconds": 1.0,
    "backward_seconds": 2.0,
    "optimizer_seconds": 0.25,
    "other_seconds": 0.5,
    "valid_seconds": 1.5,
}
DEVICES = {"device": ["cpu", "cuda"], "training.batch_size": [4, 8]}


def plan_of(**changes: Any) -> Plan:
    training = {"freeze_epochs": 0, "batch_size": 4, "drop_last": False}
    return tiny_plan(loader={"kind": "workers"}, training=training, **changes)


def frame_of(plan: Plan, **columns: Any) -> pd.DataFrame:
    """A row for each setting of the plan and each of two blocks, with the planted parts."""
    factors = plan.study.factors
    rows: list[dict[str, Any]] = []
    for block, levels in product((1, 2), product(*factors.values())):
        row = {"device": "cpu", "outcome": "ok", "session": 1, "block": block, "message": None, "software": "the same"}
        row["run"] = f"run {len(rows)}"
        named = {key: shown(plan.study, key, level) for key, level in zip(factors, levels, strict=True)}
        rows.append(row | named | SECONDS)
    frame = as_timings(rows).assign(model_seconds=2.5, **columns)
    return frame.assign(fit_seconds=frame[list(SECONDS)].sum(axis=1))


def phases_of(plan: Plan, frame: pd.DataFrame) -> BarsChart:
    frame = frame.assign(fit_seconds=frame[list(SECONDS)].sum(axis=1))
    analysis = analysis_of(plan.study, frame)
    return figures.phases_of(level_rows(plan.study, frame, analysis.groups), analysis)


def bars(chart: BarsChart) -> list[tuple[str, Any]]:
    return [(bar.label, sum(bar.parts.values())) for bar in chart.bars]


def test_the_parts_of_a_bar_add_up_to_the_mean_of_the_tables() -> None:
    plan = plan_of()
    frame = frame_of(plan)
    frame.loc[(frame["block"] == 2) & (frame["training.batch_size"] == 4), "data_wait_seconds"] = 8.0
    chart = phases_of(plan, frame)
    geometric = (10 * 14) ** 0.5
    assert chart.bars[0].parts["data_wait_seconds"] == pytest.approx(geometric / 2)
    assert bars(chart) == [("4", pytest.approx(geometric)), ("8", pytest.approx(10))]


@pytest.mark.parametrize(
    ("time", "shares"),
    [
        ("blog_seconds", {"model": 20, "data_wait": 32, "other": 4, "valid": 12}),
        ("train_seconds", {"data_wait": 48, "other": 4}),
    ],
)
def test_a_time_with_the_model_or_without_validation_has_its_own_parts(time: str, shares: dict[str, float]) -> None:
    plan = plan_of(curve={"x": "training.batch_size", "y": time})
    frame = frame_of(plan).assign(blog_seconds=12.5, train_seconds=8.0 + 1 / 3)
    chart = phases_of(plan, frame)
    parts = chart.bars[0].parts
    whole = sum(parts.values())
    assert {name: 100 * parts[f"{name}_seconds"] / whole for name in shares} == pytest.approx(shares)
    assert ("valid_seconds" in parts) is (time == "blog_seconds")


def test_failed_runs_are_in_no_bar_and_a_group_without_parts_has_none() -> None:
    plan = plan_of(factors=DEVICES)
    frame = frame_of(plan)
    frame.loc[frame["block"] == 2, "outcome"] = "failed"
    frame.loc[frame["block"] == 2, "forward_seconds"] = 99.0
    frame.loc[frame["device"] == "cpu", "forward_seconds"] = float("nan")
    chart = phases_of(plan, frame)
    assert list(chart.groups) == ["GPU"]
    assert bars(chart) == [("4", pytest.approx(10)), ("8", pytest.approx(10))]
    assert "On a GPU" in chart.caption
    assert "On a GPU" not in phases_of(plan_of(), frame_of(plan_of())).caption


@pytest.mark.parametrize("column", list(SECONDS))
def test_without_one_of_the_phases_there_is_no_chart(column: str) -> None:
    frame = frame_of(plan_of())
    frame = frame.assign(**{column: float("nan")})
    analysis = analysis_of(plan_of().study, frame)
    assert bars_chart(figures.phases_of(level_rows(plan_of().study, frame, analysis.groups), analysis)) is None


def test_a_time_that_is_no_sum_of_parts_has_no_chart() -> None:
    plan = plan_of(curve={"x": "training.batch_size", "y": "step_seconds"})
    assert bars_chart(phases_of(plan, frame_of(plan).assign(step_seconds=1.0))) is None


def test_a_study_without_a_curve_has_a_bar_for_each_level_in_the_order_of_its_file() -> None:
    factors = {"device": ["cpu", "cuda"], "training.loop": ["torch", "fastai"], "training.drop_last": [True, False]}
    plan = plan_of(factors=factors, curve=None)
    chart = phases_of(plan, frame_of(plan).iloc[::-1])
    assert sorted(chart.groups) == ["CPU", "GPU"]
    labels = ["PyTorch loop, last batch dropped", "PyTorch loop, last batch kept"]
    labels += ["fastai, last batch dropped", "fastai, last batch kept"]
    assert [[bar.label for bar in own] for own in chart.groups.values()] == [labels, labels]


def chart_of(**parts: float) -> BarsChart:
    seconds = {f"{name}_seconds": value for name, value in parts.items()}
    return BarsChart({"CPU": (Bar("16", seconds), Bar("32", {"forward_seconds": 4.0}))}, "Where the time goes")


def test_parts_are_drawn_one_after_the_other_as_wide_as_their_seconds() -> None:
    drawn = bars_chart(chart_of(data_wait=2.0, forward=1.0, valid=5.0, optimizer=0.0001))
    assert drawn is not None
    boxes = re.findall(r'class="mark piece (\w+)"[^>]*>(?:<path d="M([\d.]+) [^L]*L([\d.]+) [^>]*>)', drawn.wide)
    wide = {name: (float(left), float(right)) for name, left, right in boxes[:3]}
    assert list(wide) == ["data_wait", "forward", "valid"]  # a hair of the optimizer is not drawn
    for name, (begin, end) in {"data_wait": (0, 2), "forward": (2, 3), "valid": (3, 8)}.items():
        assert wide[name] == pytest.approx((92 * begin, 92 * end - 1), abs=0.2)
    assert "validation 5.00 s" in drawn.wide
    assert [told for _, told in drawn.key] == ["waiting for data", "forward", "optimizer", "validation"]


def test_words_stand_in_a_part_that_has_room_for_them() -> None:
    drawn = bars_chart(chart_of(data_wait=0.1, backward=0.8, forward=0.35, valid=12.0))
    assert drawn is not None
    inside = re.findall(r'fill="#fff"[^>]*>((?:<text.*?</text>)+)', drawn.wide)
    told = re.findall(">([^<]+)<", "".join(inside))
    assert told == ["0.800", "validation 12.0 s", "forward 4.00 s"]


def test_every_part_has_a_colour_of_its_own() -> None:
    assert len({colour for _, colour in PARTS.values()}) == len(PARTS) == 10
