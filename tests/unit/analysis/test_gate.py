"""The answer under what real machines do: planted, and never a number that nobody could use."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from study.analysis.analysis import Analysis
from study.analysis.answers.context import Context
from study.analysis.answers.fastest import CannotSay, Fastest, level_verdict
from study.analysis.stats.estimate import Estimate, printed, undetermined
from study.config.study import Study
from tests.conftest import repeats, study_values
from tests.timings import as_timings, ruled
from tests.unit.analysis.planted import analysis_of

SIZES = (16, 32, 64, 128)
TIMES = {16: 8.0, 32: 7.0, 64: 6.0, 128: 5.0}
STUDY = Study.model_validate(
    study_values(
        factors={"training.batch_size": list(SIZES)},
        curve={"x": "training.batch_size", "y": "fit_seconds"},
    )
)


def told(
    runs: Sequence[tuple[int, int, int, float]],
    accuracies: Mapping[int, float] | None = None,
    warmed_up: bool = True,
) -> Analysis:
    """The analysis of runs (session, block, batch size, seconds) in this order, with these
    accuracies."""
    rows = [
        {
            "run": f"bs{size}-r{block}-{place}",
            "session": session,
            "block": block,
            "training.batch_size": size,
            "fit_seconds": seconds,
            "started": f"2026-01-01T00:{place:02d}:00+00:00",
            "warmed_up": warmed_up,
            "valid_images": 206,
            "chance_accuracy": 0.5,
            "accuracy": (accuracies or {}).get(size),
        }
        for place, (session, block, size, seconds) in enumerate(runs)
    ]
    frame = as_timings(rows)
    frame["accuracy"] = frame["accuracy"].astype(float)
    return analysis_of(STUDY, ruled(STUDY, frame))


def whole(
    rng: np.random.Generator, blocks: int = 5, noise: float = 0.03
) -> list[tuple[int, int, int, float]]:
    """Whole blocks of one session."""
    return [
        (1, block, int(size), TIMES[int(size)] * float(np.exp(rng.normal(0, noise))))
        for block in range(1, blocks + 1)
        for size in rng.permutation(SIZES)
    ]


def test_the_fastest_is_named_with_what_cannot_be_told_from_it() -> None:
    (answer,) = told(whole(np.random.default_rng(1))).answers
    assert isinstance(answer, Fastest)
    assert (answer.level.label, answer.ineligible) == ("128", {})
    assert answer.tied == answer.left_out == []
    assert answer.slower == ["16", "32", "64"]


@pytest.mark.parametrize("reached", [0.5, 0.57, 0.75])
def test_a_setting_that_does_not_learn_is_never_called_the_fastest(reached: float) -> None:
    for seed in repeats(4, 20):
        rng = np.random.default_rng(seed)
        accuracies = {16: 0.9, 32: 0.91, 64: 0.89, 128: reached}
        noisy = {size: float(rng.binomial(206, share)) / 206 for size, share in accuracies.items()}
        (answer,) = told(whole(rng), noisy).answers
        assert isinstance(answer, Fastest)
        assert answer.level.label == "64"
        assert answer.ineligible == {"128": "not_learned"}
        assert "128" not in answer.tied


def test_a_setting_that_does_not_learn_hides_no_tie_among_those_that_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(TIMES, 32, 6.0)
    (answer,) = told(
        whole(np.random.default_rng(1)), {16: 0.9, 32: 0.91, 64: 0.89, 128: 0.5}
    ).answers
    assert isinstance(answer, Fastest)
    assert {answer.level.label, *answer.tied} == {"32", "64"}
    assert answer.slower == ["16"]


def test_where_none_learned_none_is_called_the_fastest() -> None:
    (answer,) = told(whole(np.random.default_rng(1)), dict.fromkeys(SIZES, 0.5)).answers
    assert isinstance(answer, CannotSay)
    assert set(answer.reasons.values()) == {"not_learned"}
    assert answer.more_runs is None


def test_one_clean_run_a_setting_decides_nothing_and_one_more_is_asked_for() -> None:
    (answer,) = told(whole(np.random.default_rng(1), blocks=1)).answers
    assert isinstance(answer, CannotSay)
    assert (set(answer.reasons.values()), answer.more_runs) == ({"few_runs"}, 1)


def test_two_runs_in_two_blocks_are_a_number_whose_interval_says_what_they_are_worth() -> None:
    (group,) = told(whole(np.random.default_rng(1), blocks=2)).groups
    assert all(
        level.undetermined is None and level.time and level.time.low for level in group.levels
    )
    (answer,) = told([(1, 1, 16, 8.0)]).answers
    assert isinstance(answer, CannotSay)
    assert answer.only


def test_no_law_rests_on_a_level_whose_time_cannot_be_told() -> None:
    """The one run at 64, where the time is still to fall, was slowed."""
    runs = [
        (1, block, size, TIMES[size])
        for block in (1, 2, 3, 4)
        for size in SIZES
        if size != 64 or block == 1
    ]
    rng = np.random.default_rng(1)
    slowed = [
        (s, b, size, t * (1.8 if size == 64 else float(np.exp(rng.normal(0, 0.02)))))
        for s, b, size, t in runs
    ]
    analysis = told(slowed)
    curve = analysis.groups[0].curve
    assert curve is not None
    assert curve.batch_sizes == 3
    assert curve.verdict.kind != "turns"


def test_a_slow_level_with_one_run_is_left_out_and_the_fastest_is_named() -> None:
    runs = whole(np.random.default_rng(1))
    kept = [run for run in runs if run[2] != 16 or run[1] <= 1]
    analysis = told(kept)
    (answer,), (group,) = analysis.answers, analysis.groups
    assert isinstance(answer, Fastest)
    assert answer.left_out == ["16"]
    assert [level_verdict(level, group, 0.05) for level in group.levels] == [
        "slower, no interval", "slower", "slower", "fastest"
    ]  # fmt: skip


@pytest.mark.parametrize("factor", [3.0, 20.0])
def test_without_a_warm_up_run_a_slow_first_run_of_a_start_is_in_no_number_and_one_like_the_others_is(
    factor: float,
) -> None:
    runs = whole(np.random.default_rng(2))
    two = [(1 if block <= 2 else 2, block, size, seconds) for _, block, size, seconds in runs]
    firsts = [0, next(place for place, run in enumerate(two) if run[0] == 2)]
    slow, slower = (
        [(*run[:3], times * run[3]) if place in firsts else run for place, run in enumerate(two)]
        for times in (factor, 2 * factor)
    )
    quick, found, same = (
        told(one, warmed_up=False).groups[0].levels for one in (two, slow, slower)
    )
    assert [level.time for level in found] == [level.time for level in same]
    assert sum(level.excluded.get("first of its start", 0) for level in found) == 2
    assert {level.runs for level in quick} == {5}


def test_a_first_run_that_is_the_only_one_of_its_setting_counts() -> None:
    runs = [run for run in whole(np.random.default_rng(2)) if run[2] != 16]
    levels = told([(1, 1, 16, 80.0), *runs], warmed_up=False).groups[0].levels
    assert [level.runs for level in levels] == [1, 5, 5, 5]


def test_no_printed_mean_lies_beside_its_clean_runs_by_more_than_their_noise_however_sessions_break() -> (
    None
):
    printed = 0
    for seed in repeats(15, 60):
        rng = np.random.default_rng(seed)
        session, runs = 1, []
        machine = 1.0
        for _, block, size, seconds in whole(rng, blocks=4):
            if rng.random() < 0.25:
                session, machine = session + 1, float(np.exp(rng.normal(0, 0.2)))
            runs.append((session, block, size, seconds * machine))
        own = pd.DataFrame(runs, columns=["session", "block", "size", "seconds"]).groupby("size")[
            "seconds"
        ]
        (group,) = told(runs).groups
        noise = group.noise.spreads["noise"] if group.noise else 0.0
        for level in group.levels:
            if level.time and level.time.low is not None:
                printed += 1
                times = own.get_group(int(level.label))
                assert times.min() / (1 + noise) <= level.time.value <= times.max() * (1 + noise)
    assert printed > len(repeats(25, 100))


def in_one_start(
    rng: np.random.Generator, faster: float, start: float | None = None
) -> list[tuple[int, int, int, float]]:
    """Three blocks of a start without 128, three of another with it alone, and three that hold both
    it and 64.

    128 is so many times as fast as 64. The second start is slower by ``start``, or by a random 30%.
    """
    slow = float(np.exp(rng.normal(0, 0.3))) if start is None else start
    blocks = [(1, (64,)), (1, (64,)), (1, (64,)), *[(2, (128,))] * 3, *[(2, (64, 128))] * 3]
    seconds = {64: 10.0, 128: 10.0 / faster}
    return [
        (
            session,
            block,
            size,
            seconds[size] * (slow if session == 2 else 1) * float(np.exp(rng.normal(0, 0.02))),
        )
        for block, (session, sizes) in enumerate(blocks, start=1)
        for size in sizes
    ]


@pytest.mark.parametrize("start", [0.7, 1.3])
def test_a_setting_with_runs_in_one_of_two_starts_is_compared_by_the_blocks_that_hold_both(
    start: float,
) -> None:
    """It was "not decided", for its time in an average start is that of none of its runs."""
    analysis = told(in_one_start(np.random.default_rng(1), 1.2, start))
    (answer,), level = analysis.answers, analysis.groups[0].levels[-1]
    assert isinstance(answer, Fastest)
    assert (answer.level.label, answer.tied, answer.slower) == ("128", [], ["64"])
    assert level.time is not None
    assert level.time.bounds is None
    assert answer.text(Context(STUDY, analysis.groups)).endswith(
        "; batch size 64 takes **1.2 times as long**."
    )


def test_a_mean_beside_its_own_runs_is_printed_without_an_interval() -> None:
    times, mean = pd.Series([1.0, 1.1, 1.2]), Estimate(value=1.3, low=1.0, high=1.5)
    assert printed(mean, times, 0.0) == printed(mean.inverse, times, 0.0).inverse == mean.bare
    assert printed(mean, times, 0.1) == mean
    assert printed(Estimate(value=1.1, low=0.1, high=12.0), times, 0.0).bounds is None


def test_a_mean_that_cannot_be_used_says_why() -> None:
    blocks, mean = pd.Series(["1", "2", "3"]), Estimate(value=1.1, low=1.0, high=1.2)
    assert undetermined(mean, [], blocks) is None
    assert undetermined(mean, [], blocks[:2]) is None
    assert undetermined(mean, [], blocks[:1]) == "few_runs"
    assert undetermined(mean, [], pd.Series(["1", "1", "1"])) == "one_block"
    wide, narrow = Estimate(value=1.1, low=0.1, high=12.0), Estimate(value=2.0, low=1.9, high=2.1)
    assert undetermined(wide, [], blocks) == "wide_interval"
    assert undetermined(wide, [wide, Estimate(value=2.0)], blocks) == "wide_interval"
    assert undetermined(wide, [wide, narrow], blocks) is None


def test_equal_times_of_one_level_do_not_make_its_noise_nothing() -> None:
    times = {
        16: (1.0, 1.0, 1.0),
        32: (1.0, 1.0, 1.0),
        64: (0.95, 1.02, 1.12),
        128: (30.0, 31.0, 33.0),
    }
    runs = [(1, block, size, times[size][block - 1]) for block in (1, 2, 3) for size in SIZES]
    (answer,) = told(runs).answers
    assert isinstance(answer, Fastest)
    assert {answer.level.label, *answer.tied} == {"16", "32", "64"}


def test_equal_settings_of_which_one_met_a_slow_or_a_fast_start_alone_are_tied() -> None:
    seeds = repeats(20, 100)
    answers = [told(in_one_start(np.random.default_rng(seed), 1.0)).answers[0] for seed in seeds]
    assert sum(
        not isinstance(answer, Fastest) or answer.tied != [] for answer in answers
    ) >= 0.9 * len(seeds)
    assert all(isinstance(answer, Fastest) for answer in answers)
