"""The parts of each mean: which there are, that they add up, and how they are drawn."""

import re
from itertools import product
from typing import Any

import pandas as pd
import pytest

from study.analysis.report.drawings import Parts, time_parts
from study.analysis.report.step import stylesheet
from study.analysis.rows import PARTS, level_rows
from study.analysis.screen.limit import Bar
from study.artifacts.plan import Plan
from study.config.study import shown
from tests.conftest import tiny_plan
from tests.timings import as_timings
from tests.unit.analysis.planted import analysis_of

SECONDS = {
    "data_wait_seconds": 4.0,
    "graph_warm_up_seconds": 0.0,
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
        row = {
            "device": "cpu",
            "outcome": "ok",
            "session": 1,
            "block": block,
            "message": None,
            "software": "the same",
        }
        row["run"] = f"run {len(rows)}"
        named = {
            key: shown(plan.study, key, level) for key, level in zip(factors, levels, strict=True)
        }
        rows.append(row | named | SECONDS)
    frame = as_timings(rows).assign(model_seconds=2.5, **columns)
    return frame.assign(fit_seconds=frame[list(SECONDS)].sum(axis=1))


def phases_of(plan: Plan, frame: pd.DataFrame) -> Parts:
    frame = frame.assign(fit_seconds=frame[list(SECONDS)].sum(axis=1))
    parts = found(plan, frame)
    assert parts
    return parts


def found(plan: Plan, frame: pd.DataFrame) -> Parts | None:
    analysis = analysis_of(plan.study, frame)
    return time_parts(level_rows(plan.study, frame, analysis.groups), analysis)


def bars(parts: Parts) -> list[Bar]:
    return [bar for own in parts.groups.values() for bar in own]


def totals(parts: Parts) -> list[tuple[str, Any]]:
    return [(bar.label, bar.total) for bar in bars(parts)]


def test_the_parts_of_a_bar_add_up_to_the_mean_of_the_tables() -> None:
    plan = plan_of()
    frame = frame_of(plan)
    frame.loc[(frame["block"] == 2) & (frame["training.batch_size"] == 4), "data_wait_seconds"] = (
        8.0
    )
    chart = phases_of(plan, frame)
    geometric = (10 * 14) ** 0.5
    assert bars(chart)[0].seconds["waiting for data"] == pytest.approx(geometric / 2)
    assert totals(chart) == [("4", pytest.approx(geometric)), ("8", pytest.approx(10))]


@pytest.mark.parametrize(
    ("time", "shares"),
    [
        (
            "blog_seconds",
            {"building the model": 20, "waiting for data": 32, "rest": 4, "validation": 12},
        ),
        ("train_seconds", {"waiting for data": 48, "rest": 4}),
    ],
)
def test_a_time_with_the_model_or_without_validation_has_its_own_parts(
    time: str, shares: dict[str, float]
) -> None:
    plan = plan_of(curve={"x": "training.batch_size", "y": time})
    frame = frame_of(plan).assign(blog_seconds=12.5, train_seconds=8.0 + 1 / 3)
    chart = phases_of(plan, frame)
    parts, whole = bars(chart)[0].seconds, bars(chart)[0].total
    assert {name: 100 * parts[name] / whole for name in shares} == pytest.approx(shares)
    assert ("validation" in parts) is (time == "blog_seconds")


def test_failed_runs_are_in_no_bar_and_a_group_without_parts_has_none() -> None:
    plan = plan_of(factors=DEVICES)
    frame = frame_of(plan)
    frame.loc[frame["block"] == 2, "outcome"] = "failed"
    frame.loc[frame["block"] == 2, "forward_seconds"] = 99.0
    frame.loc[frame["device"] == "cpu", "forward_seconds"] = float("nan")
    chart = phases_of(plan, frame)
    assert list(chart.groups) == ["GPU"]
    assert totals(chart) == [("4", pytest.approx(10)), ("8", pytest.approx(10))]
    assert "On a GPU" in chart.caption
    assert "On a GPU" not in phases_of(plan_of(), frame_of(plan_of())).caption


def test_a_time_that_is_no_sum_of_parts_has_no_chart() -> None:
    plan = plan_of(curve={"x": "training.batch_size", "y": "step_seconds"})
    assert found(plan, frame_of(plan).assign(step_seconds=1.0)) is None


def test_a_study_without_a_curve_has_a_bar_for_each_level_in_the_order_of_its_file() -> None:
    factors = {
        "device": ["cpu", "cuda"],
        "training.loop": ["torch", "fastai"],
        "training.drop_last": [True, False],
    }
    plan = plan_of(factors=factors, curve=None)
    chart = phases_of(plan, frame_of(plan).iloc[::-1])
    assert sorted(chart.groups) == ["CPU", "GPU"]
    labels = ["PyTorch loop, last batch dropped", "PyTorch loop, last batch kept"]
    labels += ["fastai, last batch dropped", "fastai, last batch kept"]
    assert [[bar.label for bar in own] for own in chart.groups.values()] == [labels, labels]


def test_every_part_has_a_colour_of_its_own() -> None:
    rules = re.findall(r"([^}]*){ background: (var\(--p-[a-z0-9]+\))", stylesheet())
    colours = [
        colour
        for name in PARTS.values()
        for names, colour in rules
        if f"phase-{name.replace(' ', '-')} " in names
    ]
    assert len(set(colours)) == len(PARTS) == 10
