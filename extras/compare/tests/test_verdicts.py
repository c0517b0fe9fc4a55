"""Verdicts that must not be given, or must: few starts, settings that differ, accuracies that
fell."""

import math

import numpy as np
import pandas as pd
import pytest

from study_compare.difference import Difference, difference_of
from study_compare.side import PHASES, STATES, Side
from study_compare.statistics import Pair, compare, differs, rank, within
from study_compare.words import answer_of, settings_table, verdict_lines
from tests.conftest import repeats
from tests.timings import at_least, at_most

NOISE = 0.02 / math.sqrt(15)
"""What 15 runs of 2% leave in the mean of a start."""


def differences(
    rng: np.random.Generator,
    studies: int,
    starts: tuple[int, int],
    spreads: tuple[float, float],
    gap: float,
) -> list[Difference]:
    """Pairs of results, the second of which takes ``gap`` times as long, with standard deviations
    between starts."""
    first, second = (
        math.hypot(spread, NOISE) * rng.standard_normal((studies, count))
        for spread, count in zip(spreads, starts, strict=True)
    )
    pairs = zip(first, second + math.log(gap), strict=True)
    return [difference_of(a, b, [NOISE**2] * 2) for a, b in pairs]


def side(
    name: str,
    seconds: dict[str, list[list[float]]],
    accuracy: float = 0.9,
    images: int = 200,
) -> Side:
    """A result with the seconds of the runs of each start, by setting."""
    rows = [
        (start, setting, value, accuracy)
        for setting, starts in seconds.items()
        for start, values in enumerate(starts)
        for value in values
    ]
    frame = pd.DataFrame(rows, columns=["start", "setting", "seconds", "accuracy"])
    unknown = dict.fromkeys((*PHASES, *STATES), np.nan)
    return Side(name, frame.assign(valid_images=images, **unknown))


def starts_of(*means: float) -> list[list[float]]:
    """Starts of three runs, one percent apart."""
    return [[mean, 1.01 * mean, 0.99 * mean] for mean in means]


def pair(first: Side, second: Side) -> Pair:
    return compare(first, second, list(dict.fromkeys(first.runs["setting"])), margin=0.05)


def test_one_start_and_three_that_differ_by_a_fifth_are_not_told_apart_by_what_a_start_may_do() -> (
    None
):
    """Of these starts a fourth may well take 12 s."""
    found = pair(side("A", {"64": starts_of(8.0, 10.0, 12.0)}), side("B", {"64": starts_of(12.0)}))
    assert found.overall.verdict == "not_enough_starts"
    assert found.spreads[1] == pytest.approx(found.spreads[0]) == pytest.approx(0.2, abs=0.01)
    told = "fewer than three hardly tell how far starts differ, and 20% is assumed."
    assert told in verdict_lines(found)[1]


def test_bounds_beyond_ten_times_are_no_interval() -> None:
    """With 2 starts against one, and 20 settings at once, they may reach from 4e-9 to 3e8."""
    means = {str(n): starts_of(10.0, 12.0) for n in range(20)}
    found = pair(side("A", means), side("B", {n: starts_of(10.0) for n in means}))
    assert found.settings[0].ratio.bounds is None
    assert found.overall.ratio.bounds


def test_single_runs_are_told_apart_from_a_factor_of_1_74_on_and_are_never_equal() -> None:
    once = side("A", {"64": [[10.0]]})
    others = [side("B", {"64": [[seconds]]}) for seconds in (10.0, 13.0, 17.3, 17.5, 5.7)]
    verdicts = [pair(once, other).overall.verdict for other in others]
    assert verdicts == ["not_enough_starts"] * 3 + ["slower", "faster"]
    wide = compare(once, side("B", {"64": [[10.0]]}), ["64"], margin=1.0)
    assert wide.overall.verdict == "not_enough_starts"


@pytest.mark.parametrize("starts", [(1, 1), (1, 2), (1, 5), (2, 2), (2, 8), (3, 3), (5, 5)])
@pytest.mark.parametrize("spreads", [(0.15, 0.15), (0.08, 0.01), (0.01, 0.08)])
def test_equal_results_are_told_apart_in_one_of_twenty_comparisons_whatever_the_starts(
    starts: tuple[int, int], spreads: tuple[float, float]
) -> None:
    """Also where one result's starts differ eight times as much as the other's."""
    rng = np.random.default_rng([*starts, int(100 * spreads[0])])
    found = differences(rng, 400, starts, spreads, 1.0)
    # With 3 and 3 starts of so unequal spreads it is 6.4%.
    assert sum(differs(one, 1) is not None for one in found) <= at_most(0.064, len(found))


def test_three_starts_tell_a_tenth_and_show_equality_for_nothing_is_assumed_of_them() -> None:
    rng = np.random.default_rng(4)
    tenth = differences(rng, 400, (3, 3), (0.03, 0.03), 1.1)
    assert sum(differs(one, 1) == "slower" for one in tenth) >= at_least(0.7, len(tenth))
    quiet = differences(rng, 400, (3, 3), (0.01, 0.01), 1.0)
    assert sum(within(one, 0.05) for one in quiet) >= at_least(0.95, len(quiet))
    at_margin = differences(rng, 400, (3, 3), (0.01, 0.01), 1.05)
    assert sum(within(one, 0.05) for one in at_margin) <= at_most(0.05, len(at_margin))


@pytest.mark.parametrize("counts", [(4, 4, 1), (4, 4, 4)])
def test_of_three_equal_results_one_is_ruled_out_in_one_of_twenty_rankings(
    counts: tuple[int, ...],
) -> None:
    wrong, seeds = 0, repeats(40, 150)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        sides = [
            side(str(place), {"64": [[value] for value in 10 * np.exp(rng.normal(0, 0.12, count))]})
            for place, count in enumerate(counts)
        ]
        wrong += len(rank(sides, ["64"]).may_be_fastest) < len(sides)
    assert wrong <= at_most(0.05, len(seeds))


def test_settings_that_differ_in_opposite_directions_are_not_equal_in_the_mean() -> None:
    """1.40 and 0.71 times as long make 1.00 times."""
    first = side("A", {one: starts_of(10.0, 10.1, 10.05) for one in "ab"})
    second = side("B", {"a": starts_of(14.0, 14.14, 14.07), "b": starts_of(7.1, 7.17, 7.14)})
    found = pair(first, second)
    assert found.overall.verdict == "mixed"
    assert answer_of(found).startswith(
        "Which of A and B is faster depends on the setting: over all 1.00 times as long (95%: "
    )
    assert answer_of(found).endswith("; B is faster in 1 and B is slower in 1 of 2 settings.")


def test_one_setting_of_ten_that_differs_forbids_that_all_are_equal() -> None:
    """The mean of ten moves by less than the margin."""
    names = [f"s{number}" for number in range(10)]
    first = side("A", {one: starts_of(10.0, 10.01, 10.02) for one in names})
    changed = {one: starts_of(10.0, 10.02, 10.01) for one in names}
    changed["s0"] = starts_of(13.0, 13.026, 13.013)
    found = pair(first, side("B", changed))
    assert found.overall.ratio.value < 1.05
    assert found.overall.verdict == "slower"
    assert answer_of(found).endswith("; by itself in 1 of 10 settings.")


def test_a_result_that_is_faster_since_it_learned_less_is_not_called_faster_alone() -> None:
    """92% and 50% of 200 images."""
    first = side("A", {"64": starts_of(10.0, 10.1, 10.2)}, accuracy=0.92)
    found = pair(first, side("B", {"64": starts_of(5.0, 5.1, 5.05)}, accuracy=0.5))
    assert found.overall.learning == ("as_well", "less")
    assert answer_of(found).endswith("; but B learns less (accuracy at 64: 50.0% and not 92.0%).")
    assert "faster, learns less" in settings_table(found)[1]
    found = pair(first, side("B", {"64": starts_of(5.0, 5.1)}, accuracy=0.9))
    assert found.overall.learning == ("as_well", "as_well")


def test_an_accuracy_of_unknown_images_that_fell_by_far_is_told_as_not_shown() -> None:
    first = side("A", {"64": starts_of(10.0, 10.1, 10.2)}, accuracy=0.92)
    second = side("B", {"64": starts_of(5.0, 5.1, 5.05)}, accuracy=0.5)
    unknown = (Side(one.name, one.runs.assign(valid_images=np.nan)) for one in (first, second))
    assert "may learn less, which is not shown" in answer_of(pair(*unknown))


def test_equal_accuracies_at_ten_settings_are_called_unequal_once_in_twenty_comparisons() -> None:
    wrong, seeds, names = 0, repeats(30, 100), [f"s{number}" for number in range(10)]
    for seed in seeds:
        rng = np.random.default_rng(seed)
        first, second = (
            Side(one.name, one.runs.assign(accuracy=rng.binomial(24, 0.8, len(one.runs)) / 24))
            for one in (
                side(name, {setting: starts_of(1.0, 1.1, 1.2) for setting in names}, images=24)
                for name in "AB"
            )
        )
        wrong += "less" in pair(first, second).overall.learning
    assert wrong <= at_most(0.05, len(seeds))


def test_a_result_that_learned_less_is_not_among_those_that_may_be_the_fastest() -> None:
    sides = [side(name, {"64": starts_of(10.0, 10.1, 10.2)}) for name in "ab"]
    found = rank([*sides, side("c", {"64": starts_of(5.0, 5.1, 5.2)}, accuracy=0.5)], ["64"])
    assert found.order[0] == "c"
    assert found.may_be_fastest == ["a", "b"]
    assert found.learn_less == ["c"]
