"""What each switch buys: planted effects are found again, and no effect is
made up."""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from study.analysis.analysis import Analysis
from study.analysis.answers.context import Context
from study.analysis.answers.switches import Effect, Switches
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.run import Run
from study.base.errors import StudyError
from study.config.load import read_study
from study.config.selection import Selection
from study.host.plan.configuration import study_folders
from tests.conftest import repeats, tiny_plan
from tests.timings import at_most, table
from tests.unit.analysis.planted import analysis_of
from tests.unit.artifacts.test_records import make_record

FACTORS = {
    "device": ["cpu"],
    "training.precision": ["auto", "bf16"],
    "training.memory_format": ["contiguous", "channels_last"],
    "training.optimizer_implementation": ["auto", "fused", "foreach"],
}
BUYS = {"bf16": 2.0, "channels_last": 1.2, "fused": 1.0, "foreach": 0.8}
TOGETHER = 1.25
"""What bf16 and channels_last buy together beyond the product of the two."""
PLAN = tiny_plan(factors=FACTORS, replicates=3, curve=None, effects=True)


def seconds(run: Run) -> float:
    """Planted: 10 s without any switch."""
    levels = set(map(str, run.setting.levels.values()))
    times = math.prod(BUYS.get(level, 1.0) for level in levels)
    return 10 / times / (TOGETHER if {"bf16", "channels_last"} <= levels else 1.0)


def records(
    seed: int, noise: float = 0.02, time: Callable[[Run], float] = seconds, plan: Plan = PLAN
) -> dict[str, Record]:
    """Runs with noise of their own, and a noise that each block shares."""
    random = np.random.default_rng(seed)
    blocks = {block: random.normal(0, 0.1) for block in (1, 2, 3)}
    return {
        run.name: make_record(
            plan,
            number,
            fit_seconds=time(run) * math.exp(blocks[run.block] + random.normal(0, noise)),
        )
        for number, run in enumerate(plan.runs)
    }


def analysed(seed: int, noise: float = 0.02, time: Callable[[Run], float] = seconds) -> Analysis:
    return analysis_of(PLAN.study, table(PLAN, records(seed, noise, time)))


def only(found: Analysis) -> Switches:
    (switches,) = found.switches
    return switches


def test_each_effect_is_the_mean_over_the_settings_of_the_other_switches() -> None:
    effects = {effect.level: effect for effect in only(analysed(1)).effects}
    assert list(effects) == ["bf16", "channels_last", "fused", "foreach"]
    assert [effect.settings for effect in effects.values()] == [6, 6, 4, 4]
    wanted = BUYS | {"bf16": 2 * math.sqrt(TOGETHER), "channels_last": 1.2 * math.sqrt(TOGETHER)}
    for level, effect in effects.items():
        assert effect.times_as_fast.value == pytest.approx(wanted[level], rel=0.03)


def test_one_change_at_a_time_is_enough_for_the_effect_of_each() -> None:
    base = {key: levels[0] for key, levels in FACTORS.items()}
    changes = [base | {key: level} for key, levels in FACTORS.items() for level in levels[1:]]
    plan = tiny_plan(factors=FACTORS, only=[base, *changes], replicates=3, curve=None, effects=True)
    found = analysis_of(plan.study, table(plan, records(1, plan=plan)))
    effects = {effect.level: effect for effect in only(found).effects}
    assert [effect.settings for effect in effects.values()] == [1, 1, 1, 1]
    for level, effect in effects.items():
        assert effect.times_as_fast.value == pytest.approx(BUYS[level], rel=0.04)


def test_the_best_combination_is_compared_with_the_first_level_of_each_switch() -> None:
    found = analysed(1)
    combination = only(found).combination
    assert combination
    assert combination.base.label == "first levels"
    assert combination.best.label in (
        "bf16 + channels last",
        "bf16 + channels last + fused optimizer",
    )
    assert combination.times_as_fast.value == pytest.approx(2 * 1.2 * TOGETHER, rel=0.04)
    assert combination.decided
    assert found.answer == only(found).text(
        Context(PLAN.study, found.groups, scope="95% in this start")
    )


def test_a_gain_below_the_margin_is_called_none_above_it() -> None:
    found = analysed(
        1, 0.002, lambda run: 10 / (1.02 if "bf16" in run.setting.levels.values() else 1)
    )
    assert found.answer.startswith("**No switch** is shown to gain more than 5% by itself")


def test_where_nothing_differs_an_effect_is_made_up_in_no_more_than_one_study_of_twenty() -> None:
    false, studies = 0, repeats(15, 60)
    for seed in studies:
        switches = only(analysed(seed, 0.05, lambda run: 10.0))
        false += any(not e.times_as_fast.low <= 1 <= e.times_as_fast.high for e in switches.effects)  # type: ignore[operator]
    assert false <= at_most(0.05, len(studies))


def test_the_bounds_hold_the_planted_effects_with_an_outlier_and_a_slow_block() -> None:
    held, studies = 0, repeats(12, 40)
    for seed in studies:
        made = records(seed)
        victim = list(made)[seed % len(made)]
        measured = made[victim].measurement
        assert measured
        slow = measured.model_copy(update={"fit_seconds": 3 * measured.fit_seconds})
        made[victim] = made[victim].model_copy(update={"measurement": slow})
        fused = next(
            e
            for e in only(analysis_of(PLAN.study, table(PLAN, made))).effects
            if e.level == "fused"
        )
        held += fused.times_as_fast.low <= 1 <= fused.times_as_fast.high  # type: ignore[operator]
    assert held >= 0.9 * len(studies)


def effects_of(frame: pd.DataFrame) -> dict[str, Effect]:
    return {effect.level: effect for effect in only(analysis_of(PLAN.study, frame)).effects}


def test_the_study_of_switches_is_a_full_factorial_and_goes_with_no_curve() -> None:
    study = read_study(
        "switches", study_folders(), Selection.model_validate({"studies": ["switches"]})
    )
    assert study.effects
    assert all(len(levels) == 2 for levels in study.factors.values())
    with pytest.raises(
        (StudyError, ValueError), match="effects: True is not allowed with a curve or a contrast"
    ):
        tiny_plan(factors=FACTORS, contrast="training.precision", curve=None, effects=True)


def test_a_setting_that_failed_leaves_its_pairs_out_and_the_rest_are_compared() -> None:
    made = records(1)
    for number, run in enumerate(PLAN.runs):
        if (
            run.setting.levels["training.precision"] == "bf16"
            and run.setting.levels["training.memory_format"] == "contiguous"
        ):
            made[run.name] = make_record(PLAN, number, "failed")
    effects = {
        effect.level: effect for effect in only(analysis_of(PLAN.study, table(PLAN, made))).effects
    }
    assert effects["bf16"].settings == 3
    assert effects["bf16"].times_as_fast.value == pytest.approx(2 * TOGETHER, rel=0.03)
    assert effects["channels_last"].settings == 3


def shifted(seed: int, blocks: int = 3, sessions: bool = False) -> pd.DataFrame:
    """Runs without any gain, but that each block, or start, shifts bf16 as a whole by 10%."""
    frame, random = table(PLAN, records(seed, time=lambda run: 10.0)), np.random.default_rng(seed)
    frame = frame[frame["block"] <= blocks]
    shifts = frame["block"].map(dict(enumerate(random.normal(0, 0.1, blocks), start=1)))
    fit = frame["fit_seconds"] * np.exp(-shifts * (frame["training.precision"] == "bf16"))
    return frame.assign(fit_seconds=fit, session=frame["block"] if sessions else 1)


def test_where_blocks_or_starts_shift_a_switch_as_a_whole_they_are_the_unit_of_its_bounds() -> None:
    """By the noise of runs alone the bounds held in four studies of ten."""
    for sessions in (False, True):
        held, studies = 0, repeats(15, 100)
        for seed in studies:
            times = effects_of(shifted(seed, sessions=sessions))["bf16"].times_as_fast
            assert times.low
            assert times.high
            held += times.low <= 1 <= times.high
        assert held >= 0.9 * len(studies)


def test_the_number_of_each_start_stands_beside_the_headline_and_two_blocks_are_called_two() -> (
    None
):
    buys = {1: 2.9, 2: 3.0, 3: 3.1}
    frame = table(PLAN, records(1, 0.001, lambda run: 10.0)).assign(level="", session=1)
    of_bf16 = frame["block"].map(buys).where(frame["training.precision"] == "bf16", 1)
    frame = frame.assign(fit_seconds=frame["fit_seconds"] / of_bf16)
    several = analysis_of(PLAN.study, frame.assign(session=frame["block"]))
    effect = next(one for one in only(several).effects if one.level == "bf16")
    assert effect.starts == pytest.approx([2.9, 3.0, 3.1], rel=0.002)
    assert "; 2.90, 3.00 and 3.10 in 3 starts)" in several.answer
    two = analysis_of(PLAN.study, frame[frame["block"] < 3])
    assert all(one.starts == [] for one in only(two).effects)
    assert "(95% in these two blocks: " in two.answer
