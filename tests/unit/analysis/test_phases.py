"""The parts of each mean: which there are, that they add up, and how they are drawn."""

import re
from itertools import product
from typing import Any

import pandas as pd
import pytest

from study.analysis.answers.phases import COMPUTING, PARTS, summed, with_parts
from study.analysis.report.step import templates
from study.artifacts.plan import Plan
from study.config.study import display_level
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
        named = {
            key: display_level(plan.study, key, level)
            for key, level in zip(factors, levels, strict=True)
        }
        rows.append({"block": block, "software": "the same"} | named | SECONDS)
    frame = as_timings(rows).assign(model_seconds=2.5, **columns)
    return frame.assign(fit_seconds=frame[list(SECONDS)].sum(axis=1))


def phases_of(plan: Plan, frame: pd.DataFrame) -> dict[str, dict[str, float]]:
    """The phases of each setting that has some, by its name."""
    frame = frame.assign(fit_seconds=frame[list(SECONDS)].sum(axis=1))
    return dict(analysis_of(plan.study, frame).phases())


def totals(found: dict[str, dict[str, float]]) -> dict[str, Any]:
    return {label: pytest.approx(sum(phases.values())) for label, phases in found.items()}


def test_the_phases_of_a_setting_add_up_to_its_mean() -> None:
    plan = plan_of()
    frame = frame_of(plan)
    frame.loc[(frame["block"] == 2) & (frame["training.batch_size"] == 4), "data_wait_seconds"] = (
        8.0
    )
    found = phases_of(plan, frame)
    geometric = (10 * 14) ** 0.5
    assert found["4"]["waiting for data"] == pytest.approx(geometric / 2)
    assert totals(found) == {"4": geometric, "8": 10.0}


def test_the_first_steps_and_the_workers_starts_are_phases_of_their_own() -> None:
    """Two epochs, each with a start for training and one for its validation; the first steps took
    3.5 s beyond later ones: 0.25 of them in transforms."""
    plan = plan_of()
    own = {"loader_start_seconds": 0.5, "warm_up_extra_seconds": 3.5, "train_seconds": 8.5}
    phases = phases_of(plan, frame_of(plan, **own, epoch_seconds=4.25))["4"]
    expected = {"starting the workers": 2.0, "waiting for data": 3.0, "validation": 0.5}
    expected |= {"start-up": 3.5, "optimizer": 0.0, "host to device": 0.5, "rest": 0.5}
    assert {name: phases.get(name, 0.0) for name in expected} == pytest.approx(expected)
    assert summed(phases).get("computing", 0.0) == sum(phases.get(one, 0.0) for one in COMPUTING)
    assert sum(with_parts(phases).values()) == pytest.approx(10.0) == sum(phases.values())


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
def test_a_time_with_the_model_or_without_validation_has_its_own_phases(
    time: str, shares: dict[str, float]
) -> None:
    plan = plan_of(curve={"x": "training.batch_size", "y": time})
    frame = frame_of(plan).assign(blog_seconds=12.5, train_seconds=8.0 + 1 / 3)
    phases = phases_of(plan, frame)["4"]
    whole = sum(phases.values())
    assert {name: 100 * phases[name] / whole for name in shares} == pytest.approx(shares)
    assert ("validation" in phases) is (time == "blog_seconds")


def test_failed_runs_are_in_no_phase_and_a_group_that_does_not_know_them_has_none() -> None:
    plan = plan_of(factors=DEVICES)
    frame = frame_of(plan)
    frame.loc[frame["block"] == 2, "outcome"] = "failed"
    frame.loc[frame["block"] == 2, "forward_seconds"] = 99.0
    frame.loc[frame["device"] == "cpu", "forward_seconds"] = float("nan")
    assert totals(phases_of(plan, frame)) == {"GPU, 4": 10.0, "GPU, 8": 10.0}


def test_a_time_that_is_no_sum_of_phases_has_none() -> None:
    plan = plan_of(curve={"x": "training.batch_size", "y": "step_seconds"})
    assert not phases_of(plan, frame_of(plan).assign(step_seconds=1.0))


def test_every_phase_has_a_colour_and_all_but_small_ones_have_their_own() -> None:
    rules = re.findall(
        r"([^}]*){ background: (var\(--p-[a-z-]+\))",
        templates().get_template("report.css").render(),
    )
    colours = [
        colour
        for name in PARTS.values()
        for names, colour in rules
        if re.search(rf"phase-{name.replace(' ', '-')}[ ,]", names)
    ]
    assert len(colours) == len(PARTS) and len(set(colours)) == len(PARTS) - 1
