"""What is shown to be equal within the study's margin is called that: in the sentence, the rows,
ways and contrasts."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from study.analysis.answers.contrast import Contrast
from study.analysis.answers.fastest import level_verdict
from study.analysis.answers.ways import Ways
from study.config.study import Study
from tests.conftest import repeats, study_values
from tests.timings import analysed, as_timings, at_most
from tests.unit.analysis.planted import only

SIZE, LOOP = "training.batch_size", "training.loop"
Times = dict[tuple[str, int], float]


def study_of(times: Times, **changes: Any) -> Study:
    loops, sizes = (list(dict.fromkeys(key[part] for key in times)) for part in (0, 1))
    factors: dict[str, Any] = {"device": ["cpu"], LOOP: loops, SIZE: sizes}
    values: dict[str, Any] = study_values(factors=factors, replicates=5, **changes)
    return Study.model_validate(values)


def frame_of(times: Times, noise: float, seed: int = 1) -> pd.DataFrame:
    """Five blocks of one start, with a noise of each run."""
    random = np.random.default_rng(seed)
    return as_timings(
        {
            "run": f"{loop}-{size}-r{block}", "block": block, LOOP: loop, SIZE: size,
            "fit_seconds": seconds * float(np.exp(random.normal(0, noise))),
        }
        for block in range(5)
        for (loop, size), seconds in times.items()
    )  # fmt: skip


def alike(ratio: float, second: float | None = None) -> Times:
    """Two loops at two batch sizes, of which 8 is the fastest: times of stock fastai over those of
    the plain loop."""
    plain = {4: 20.0, 8: 10.0}
    ratios = {4: second or ratio, 8: ratio}
    slow: Times = {("fastai", size): seconds * ratios[size] for size, seconds in plain.items()}
    return slow | {("torch", size): seconds for size, seconds in plain.items()}


def test_settings_that_differ_by_less_than_the_margin_are_equal_in_the_sentence_and_in_every_row() -> (
    None
):
    """The smaller one is told from the others, by a tenth of a percent."""
    planted = {16: 10.0, 32: 10.01, 64: 10.02, 128: 12.0}
    times: Times = {("torch", size): seconds for size, seconds in planted.items()}
    found = analysed(study_of(times), frame_of(times, 1e-4))
    (group,) = found.groups
    assert (
        found.answer
        == "Batch sizes **16, 32 and 64** are **equal within 5%**, at 10 s (95% in this start: at "
        "most 1.00 times as long as 16); batch size 128 takes **1.2 times as long** as 16."
    )
    words = [level_verdict(level, group, 0.05) for level in group.levels]
    assert words == ["equal within 5%"] * 3 + ["slower"]


@pytest.mark.parametrize(
    ("ratio", "noise", "equal"), [(1.003, 0.002, True), (1.02, 0.002, True), (1.0, 0.06, False)]
)
def test_two_ways_are_equal_within_the_margin_whether_their_difference_is_told_or_not(
    ratio: float, noise: float, equal: bool
) -> None:
    times = alike(ratio)
    found = analysed(study_of(times), frame_of(times, noise))
    ways = found.answers[0]
    assert isinstance(ways, Ways)
    assert ways.decided == equal
    assert ("are equal within 5%" in found.screen.chart) == equal
    words = "**equal within 5%** to fastai" if equal else "**tied** with fastai"
    assert found.answer.count(words) == 1, found.answer


def test_a_contrast_within_the_margin_is_equal_and_no_ratio_is_called_a_gain() -> None:
    times = alike(1.003)
    found = analysed(study_of(times, contrast=LOOP), frame_of(times, 0.002))
    assert found.answer == (
        "PyTorch loop and fastai are **equal within 5%**: "
        "1.00 times as long in the mean (95% in this start: 1.00 to 1.01)."
    )
    assert found.screen.chart == "PyTorch loop and fastai are equal within 5%"


@pytest.mark.parametrize("changes", [{}, {"contrast": LOOP}])
def test_what_differs_by_the_margin_is_called_equal_in_one_study_of_twenty_at_most(
    changes: dict[str, Any],
) -> None:
    times, studies = alike(1.05), repeats(10, 200)
    study = study_of(times, **changes)
    equal = [
        "equal within" in analysed(study, frame_of(times, 0.015, seed)).answer for seed in studies
    ]
    assert sum(equal) <= at_most(0.05, len(studies))


def test_opposite_differences_of_the_settings_are_no_equality() -> None:
    times = alike(1.2, 1 / 1.2)
    found = analysed(study_of(times, contrast=LOOP), frame_of(times, 0.005))
    (contrast,) = only(Contrast, found.answers)
    assert not contrast.equal
    assert contrast.decided
    assert "equal within" not in found.answer
