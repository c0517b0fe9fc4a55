"""What each switch buys: planted effects are found again, with their interaction, and no effect is made up."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from study.analysis.analysis import Analysis
from study.analysis.answers.context import Context
from study.analysis.answers.switches import Effect, Switches
from study.analysis.caveats import find_caveats
from study.analysis.caveats.inputs import DecodedBefore
from study.artifacts.record import Record
from study.artifacts.run import Run
from study.base.errors import StudyError
from study.base.files import write_new
from study.config.load import read_study
from study.config.selection import Selection
from study.host.plan.configuration import study_folders
from tests.chance import at_most
from tests.conftest import repeats, tiny_plan
from tests.timings import as_timings, table
from tests.unit.analysis.found import only as only_of
from tests.unit.analysis.planted import analysis_of
from tests.unit.analysis.test_report import finish
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


def records(seed: int, noise: float = 0.02, time: Callable[[Run], float] = seconds) -> dict[str, Record]:
    """Runs with noise of their own, and a noise that each block shares."""
    random = np.random.default_rng(seed)
    blocks = {block: random.normal(0, 0.1) for block in (1, 2, 3)}
    return {
        run.name: make_record(
            PLAN, number, fit_seconds=time(run) * math.exp(blocks[run.block] + random.normal(0, noise))
        )
        for number, run in enumerate(PLAN.runs)
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
        assert effect.changes() == ["no change shown", "no change shown", ""]


def test_switches_that_depend_on_each_other_are_found_and_no_others() -> None:
    (found,) = only(analysed(1)).interactions
    assert [found.first.levels, found.second.levels] == [
        {"training.precision": "bf16"},
        {"training.memory_format": "channels_last"},
    ]
    assert found.more.value == pytest.approx(TOGETHER, rel=0.04)


def test_the_best_combination_is_compared_with_the_first_level_of_each_switch() -> None:
    found = analysed(1)
    combination = only(found).combination
    assert combination
    assert combination.base.label == "first levels"
    assert combination.best.label in ("bf16 + channels last", "bf16 + channels last + fused optimizer")
    assert combination.times_as_fast.value == pytest.approx(2 * 1.2 * TOGETHER, rel=0.04)
    assert combination.decided
    assert found.answer == only(found).text(Context(PLAN.study, found.groups, scope="95% in this start"))


def test_a_gain_below_the_margin_is_called_none_above_it() -> None:
    found = analysed(1, 0.002, lambda run: 10 / (1.02 if "bf16" in run.setting.levels.values() else 1))
    assert found.answer.startswith("**No switch** is shown to gain more than 5% by itself")


def test_where_nothing_differs_an_effect_is_made_up_in_no_more_than_one_study_of_twenty() -> None:
    false, studies = 0, repeats(15, 60)
    for seed in studies:
        switches = only(analysed(seed, 0.05, lambda run: 10.0))
        false += any(not e.times_as_fast.low <= 1 <= e.times_as_fast.high for e in switches.effects)  # type: ignore[operator]
    assert false <= at_most(0.05, len(studies))


def test_the_bounds_hold_the_planted_effects_where_one_run_is_far_and_one_block_is_slow() -> None:
    held, studies = 0, repeats(12, 40)
    for seed in studies:
        made = records(seed)
        victim = list(made)[seed % len(made)]
        measured = made[victim].measurement
        assert measured
        slow = measured.model_copy(update={"fit_seconds": 3 * measured.fit_seconds})
        made[victim] = made[victim].model_copy(update={"measurement": slow})
        fused = next(e for e in only(analysis_of(PLAN.study, table(PLAN, made))).effects if e.level == "fused")
        held += fused.times_as_fast.low <= 1 <= fused.times_as_fast.high  # type: ignore[operator]
    assert held >= 0.9 * len(studies)


def test_a_setting_that_failed_leaves_its_pairs_out_and_the_rest_are_compared() -> None:
    made = records(1)
    for number, run in enumerate(PLAN.runs):
        if (
            run.setting.levels["training.precision"] == "bf16"
            and run.setting.levels["training.memory_format"] == "contiguous"
        ):
            made[run.name] = make_record(PLAN, number, "failed")
    effects = {effect.level: effect for effect in only(analysis_of(PLAN.study, table(PLAN, made))).effects}
    assert effects["bf16"].settings == 3
    assert effects["bf16"].times_as_fast.value == pytest.approx(2 * TOGETHER, rel=0.03)
    assert effects["channels_last"].settings == 3


SAVES = {"bf16": 0.5, "fused": 1.2}
"""Energy at these levels over that at the first."""


def with_beside(seed: int, unknown: Callable[[Run], bool], saves: dict[str, float], noise: float) -> pd.DataFrame:
    """Runs whose energy follows ``saves``, unknown of some, and whose accuracy and memory follow no switch."""
    frame, random = table(PLAN, records(seed)), np.random.default_rng(seed)
    planted = {
        run.name: 100 * math.prod(saves.get(str(level), 1.0) for level in run.setting.levels.values())
        for run in PLAN.runs
        if not unknown(run)
    }
    chance = [random.normal(0, noise, len(frame)) for _ in range(3)]
    return frame.assign(
        energy_joules=frame["run"].map(planted) * np.exp(chance[0]),
        accuracy=0.9 + chance[1] / 10,
        peak_host_resident_bytes=1e9 * np.exp(chance[2]),
    )


def effects_of(frame: pd.DataFrame) -> dict[str, Effect]:
    return {effect.level: effect for effect in only(analysis_of(PLAN.study, frame)).effects}


def test_energy_is_compared_where_it_is_known_on_both_sides() -> None:
    """The energy of short runs is not known: here of all with channels_last."""
    without = "channels_last"
    effects = effects_of(with_beside(1, lambda run: without in run.setting.levels.values(), SAVES, 0.02))
    for level, planted in SAVES.items():
        energy = effects[level].energy
        assert energy
        assert energy.low
        assert energy.low < planted < energy.high  # type: ignore[operator]
        assert effects[level].changes()[2].startswith(f"{energy.value:.3g}")
    assert effects[without].energy is None
    assert effects[without].changes() == ["no change shown", "no change shown", ""]


def test_one_pair_is_too_few_for_a_mean_where_there_are_more_and_what_no_run_knows_has_no_change() -> None:
    keys, known = list(FACTORS)[1:], (("auto", "contiguous", "auto"), ("bf16", "contiguous", "auto"))
    frame = with_beside(1, lambda run: tuple(run.setting.levels[key] for key in keys) not in known, SAVES, 0.02)
    assert effects_of(frame)["bf16"].energy is None
    assert {effect.energy for effect in effects_of(table(PLAN, records(1))).values()} == {None}


def test_where_a_switch_changes_nothing_a_change_is_stated_in_no_more_than_one_study_of_twenty() -> None:
    stated, studies = 0, repeats(15, 200)
    for seed in studies:
        frame = with_beside(seed, lambda run: False, {}, 0.05)
        stated += any("(" in told for effect in effects_of(frame).values() for told in effect.changes())
    assert stated <= at_most(0.05, len(studies))


def test_accuracies_that_all_runs_share_show_no_change_and_memory_without_noise_shows_one() -> None:
    """Memory is counted to the byte; accuracies that happen to agree have not shown that they always do."""
    frame, bf16 = table(PLAN, records(1)), "training.precision"
    frame = frame.assign(
        accuracy=np.where(frame[bf16] == "bf16", 0.9, 0.8),
        peak_host_resident_bytes=np.where(frame[bf16] == "bf16", 6e8, 8e8),
    )
    effects = effects_of(frame)
    assert effects["bf16"].changes()[0] == "no change shown"
    assert effects["bf16"].changes()[1].startswith("0.75")
    assert effects["fused"].changes()[:2] == ["no change shown"] * 2


def test_the_page_has_a_row_for_each_switch_and_for_those_that_depend_on_each_other(tmp_path: Path) -> None:
    for run in PLAN.runs:
        write_new(tmp_path / PLAN.name / "records" / run.file, records(1)[run.name].model_dump_json())
    found = finish(PLAN, tmp_path)
    page = (tmp_path / "report.html").read_text()
    switches = only(found)
    names = [switches.label(effect).replace("_", "_<wbr>") for effect in switches.effects]
    names += [f"{both.first.label} with {both.second.label}" for both in switches.interactions]
    assert all(f'<th scope="row">{name}</th>' in page for name in names)


def test_the_study_of_switches_is_a_full_factorial_and_goes_with_no_curve() -> None:
    study = read_study("switches", study_folders(), Selection.model_validate({"studies": ["switches"]}))
    assert study.effects
    assert all(len(levels) == 2 for levels in study.factors.values())
    with pytest.raises((StudyError, ValueError), match="effects: True is not allowed with a curve or a contrast"):
        tiny_plan(factors=FACTORS, contrast="training.precision", curve=None, effects=True)


@pytest.mark.parametrize(("kinds", "found"), [(["workers", "device"], 1), (["workers", "threads"], 0)])
def test_what_the_clock_of_images_on_the_device_leaves_out_is_found(kinds: list[str], found: int) -> None:
    study = tiny_plan(factors={"loader.kind": kinds}, loader={"kind": "workers"}, curve=None).study
    frame = as_timings({"loader.kind": kind, "fit_seconds": 1.0} for kind in kinds)
    assert len(only_of(DecodedBefore, find_caveats(study, frame))) == found
