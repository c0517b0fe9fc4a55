"""The smallest cases in which a verdict was false, or none was given, though nobody had tuned to
them."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from scipy import stats

from study.analysis.analysis import Analysis
from study.analysis.answers.curve import curve_of_model
from study.analysis.answers.fastest import Fastest
from study.analysis.caveats.conditions import CensoredSettings, Starts
from study.analysis.caveats.runs import OutlierRuns
from study.analysis.stats.log_model import fit_log_model
from study.analysis.stats.optimum import may_be_fastest, optimum_of, smallest_difference
from study.artifacts.record import TIMED_OUT
from study.config.study import Study
from tests.conftest import repeats, study_values
from tests.timings import analysed, as_timings, at_least, at_most
from tests.unit.analysis.planted import only

Times = Mapping[int, Sequence[float]]
NEAR_10 = (10.03, 10.14, 9.91, 10.04, 10.05)
NEAR_12 = (12.01, 12.13, 11.92, 12.24, 12.03)


def found(times: Times, starts: int = 1, limit: float | None = None) -> Analysis:
    """The analysis of these seconds of each batch size in each block, which the ``starts`` share
    evenly.

    A run beyond the ``limit`` was ended by it.
    """
    blocks = len(next(iter(times.values())))
    values = study_values(
        factors={"training.batch_size": list(times)}, replicates=blocks, curve=None
    )
    rows: list[dict[str, object]] = []
    for block in range(blocks):
        for size, seconds in times.items():
            late = limit is not None and seconds[block] > limit
            rows.append(
                {
                    "run": f"bs{size}-r{block}",
                    "session": 1 + block * starts // blocks,
                    "block": block + 1,
                    "training.batch_size": size,
                    "fit_seconds": np.nan if late else seconds[block],
                    "outcome": "failed" if late else "ok",
                    "message": f"{TIMED_OUT} {limit} s" if late else None,
                    "accuracy": np.nan if late else 0.9,
                    "chance_accuracy": 0.5,
                    "valid_images": 200,
                    "started": f"2026-01-01T00:{len(rows):02d}:00+00:00",
                }
            )
    return analysed(Study.model_validate(values), as_timings(rows))


def fastest(analysis: Analysis) -> Fastest:
    """Its first answer."""
    answer = analysis.answers[0]
    assert isinstance(answer, Fastest)
    return answer


def test_a_setting_that_is_fast_in_three_processes_of_five_is_not_called_the_fastest_and_both_groups_are_named() -> (
    None
):
    analysis = found({32: NEAR_10, 64: (9.01, 9.12, 14.03, 13.94, 8.93), 128: NEAR_12})
    assert set(analysis.groups[0].indistinguishable) == {"32", "64"}
    (level,) = [one for one in analysis.groups[0].levels if one.label == "64"]
    assert level.runs == 5
    assert level.time and level.time.high
    assert (level.time.low or 99) < 9.02 < 10.5 < level.time.high
    (outliers,) = only(OutlierRuns, analysis.warnings)
    assert outliers.text() == "The times of 64 fall into two groups: 9.0 s in 3 runs, 14 s in 2"


def test_an_outlier_speaks_against_its_own_setting_alone() -> None:
    slow = NEAR_12[:2] + (21.3,) + NEAR_12[3:]
    assert fastest(found({32: NEAR_10, 64: (8.03, 8.14, 8.21, 8.05, 8.22), 128: slow})).tied == []
    hit = fastest(found({32: NEAR_10, 64: (8.03, 8.14, 14.21, 8.05, 8.22), 128: NEAR_12}))
    assert {hit.level.label, *hit.tied} >= {"32", "64"}


def test_a_ratio_to_the_fastest_leaves_out_one_where_the_setting_is_slower() -> None:
    (pair,) = found({32: NEAR_10, 128: NEAR_12}).groups
    known = stats.ttest_1samp(np.log(NEAR_12) - np.log(NEAR_10), 0).confidence_interval()
    assert pair.ratios["128"].bounds == pytest.approx(np.exp([known.low, known.high]))
    times = {32: NEAR_10, 64: (10.12, 9.97, 10.05, 10.11, 10.02), 96: NEAR_12, 128: NEAR_12[::-1]}
    (group,) = found(times).groups
    tied = [label for label, ratio in group.ratios.items() if not ratio.excludes_one]
    assert [group.best, *tied] == group.indistinguishable == ["32", "64"]


def shifted(starts: int, blocks: int, seed: int) -> Times:
    """Five equal settings with noise of 2%; each start shifts 128 and 256 together by a standard
    deviation of 6%."""
    rng = np.random.default_rng(seed)
    start = np.repeat(rng.normal(0, 0.06, starts), blocks)
    return {
        size: np.exp(2.3 + rng.normal(0, 0.02, starts * blocks) + (size > 64) * start).tolist()
        for size in (16, 32, 64, 128, 256)
    }


def test_settings_that_each_start_shifts_anew_are_called_slower_in_one_of_twenty_studies_at_most() -> (
    None
):
    seeds = repeats(25, 200)
    every = [found(shifted(3, 5, seed), starts=3) for seed in seeds]
    assert sum(len(one.groups[0].indistinguishable) < 5 for one in every) <= at_most(
        0.05, len(seeds)
    )


def test_below_three_starts_the_answer_says_of_which_starts_its_interval_tells() -> None:
    times = {32: NEAR_10 + NEAR_10[::-1], 64: NEAR_12 + NEAR_12[::-1]}
    for starts, words in (
        (1, "(95% in this start: "),
        (2, "(95% in these two starts: "),
        (5, "(95%: "),
    ):
        analysis = found(times, starts)
        assert words in analysis.answer
        assert [one.starts for one in only(Starts, analysis.warnings)] == [starts]


def test_a_setting_whose_slow_runs_the_time_limit_ended_is_neither_the_fastest_nor_has_an_interval() -> (
    None
):
    times = {
        16: (12.03, 12.14, 11.91, 12.02, 12.23, 12.11, 11.92, 12.04),
        32: (9.91, 9.95, 9.85, 9.94, 9.92, 9.88, 9.96, 9.93),
        64: (9.14, 13.82, 9.33, 14.91, 14.42, 9.05, 9.21, 9.15),
    }
    analysis = found(times, limit=13.0)
    answer = fastest(analysis)
    assert (answer.level.label, answer.tied, answer.ineligible) == ("32", [], {"64": "censored"})
    (level,) = [one for one in analysis.groups[0].levels if one.label == "64"]
    assert level.time and level.time.low is None
    (lost,) = only(CensoredSettings, analysis.warnings)
    assert [(one.missed, one.runs) for one in lost.missed] == [(3, 8)]


@pytest.mark.parametrize("blocks", [3, 5, 12])
def test_four_of_five_studies_find_the_difference_that_is_said_to_be_found(blocks: int) -> None:
    seeds, told = repeats(150, 1000), 0
    stated, degrees = smallest_difference(blocks) * 0.03, blocks - 1
    names, order = np.tile(range(2), blocks).tolist(), np.repeat(range(blocks), 2).tolist()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        # another study of that size has measured the noise
        shift = stated * np.sqrt(rng.chisquare(degrees) / degrees)
        logs = (
            rng.normal(0, 0.03, len(names))
            + rng.normal(0, 0.03, blocks)[order]
            + shift * (np.array(names) == 0)
        )
        model = fit_log_model(np.exp(logs).tolist(), names, order)
        told += 0 not in may_be_fastest(model, model.levels)
    assert at_least(0.78, len(seeds)) <= told <= at_most(0.85, len(seeds))


def test_a_slope_within_every_block_does_not_call_one_of_equal_settings_slower() -> None:
    """Blocks that differ by nothing lend their degrees to the noise within them, which is
    larger."""
    false, seeds = 0, repeats(150, 1000)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        places = [rng.permutation(4) for _ in range(5)]
        logs = [np.log(2) * place / 3 + rng.normal(0, 0.03, 4) for place in places]
        model = fit_log_model(
            np.exp(np.concatenate(logs)).tolist(), [*range(4)] * 5, np.repeat(range(5), 4).tolist()
        )
        false += len(may_be_fastest(model, model.levels)) < 4
    assert false <= at_most(0.075, len(seeds))


def test_a_setting_that_is_noisier_than_the_others_has_a_noise_of_its_own() -> None:
    rng = np.random.default_rng(2)
    noise = np.array([0.01, 0.01, 0.01, 0.1])
    times = {
        16 * 2**place: (10 * np.exp(rng.normal(0, noise[place], 5))).tolist() for place in range(4)
    }
    analysis = found(times)
    levels = {level.label: level.time for level in analysis.groups[0].levels}
    wide, narrow = (np.log(levels[name].high / levels[name].low) for name in ("128", "64"))  # type: ignore[union-attr, operator]
    assert wide > 1.3 * narrow


def test_an_exponent_is_no_finding_where_a_root_that_rises_again_fits_as_well() -> None:
    findings, sizes = {0.004: 0, 0.0: 0}, np.array([16.0, 32.0, 64.0, 128.0, 256.0])
    for rise in findings:
        for seed in range(40):
            noise = np.random.default_rng(seed).normal(0, 0.03, (5, 5))
            times = (3 + 40 / np.sqrt(sizes) + rise * sizes) * np.exp(noise)
            model = fit_log_model(times.ravel().tolist(), [*sizes.tolist()] * 5, [0] * 25)
            verdict = curve_of_model(model, model.levels, optimum_of(model)).verdict
            findings[rise] += verdict.kind == "power_law"
    assert findings[0.004] <= at_most(0.2, 40)
    assert findings[0.0] >= at_least(0.9, 40)
