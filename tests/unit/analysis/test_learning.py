"""Which settings have learned: planted truths, in simulated studies of runs that share their
validation images."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from study.analysis.caveats import Caveat
from study.analysis.caveats.conditions import CensoredSettings, NotLearned
from study.analysis.stats.learning import learning_by_loss, learning_of
from study.config.study import Study
from tests.conftest import study_values
from tests.timings import as_timings
from tests.unit.analysis.planted import analysis_of, only

STUDIES = 1000
ALLOWED = 0.05 + 2.33 * (0.05 * 0.95 / STUDIES) ** 0.5
"""Share of the studies that a test at 5% may get wrong, with the noise of their number (99%,
one-sided)."""
Draw = Callable[[np.random.Generator, int], list[float]]


def guesses(runs: int, images: int, classes: int, shared: float) -> Draw:
    """Runs of a network at chance: a share of the images is judged alike in every run, the others
    anew."""

    def draw(rng: np.random.Generator, _: int) -> list[float]:
        common = int(shared * images)
        always = rng.binomial(common, 1 / classes)
        return [(always + rng.binomial(images - common, 1 / classes)) / images for _ in range(runs)]

    return draw


@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("images", "classes"), [(128, 2), (64, 200)])
def test_a_level_at_chance_passes_as_learned_in_one_study_of_twenty_at_most(
    runs: int, shared: float, images: int, classes: int
) -> None:
    """Alone, where no better level gives it away; also where all runs judge the images alike."""
    rng, draw = np.random.default_rng(13), guesses(runs, images, classes, shared)
    passed = [
        learning_of({"16": draw(rng, runs)}, 1 / classes, images, 0.02)["16"].learned is True
        for _ in range(STUDIES)
    ]
    assert np.mean(passed) <= ALLOWED


@pytest.mark.parametrize(
    ("runs", "spread", "accuracy", "images"),
    [
        (1, 0.0, 0.97, 128),
        (2, 0.1, 0.8, 206),
        (3, 0.0, 0.9, 20),
        (3, 0.02, 0.97, 128),
        (3, 0.1, 0.8, 206),
    ],
)
def test_five_equal_levels_are_called_unequal_in_one_study_of_twenty_at_most(
    runs: int, spread: float, accuracy: float, images: int
) -> None:
    """Also without a margin. Trainings differ by ``spread``; one run of each level would not show
    that."""
    rng = np.random.default_rng(14)
    wrong = 0
    for _ in range(STUDIES):
        true = np.clip(rng.normal(accuracy, spread, (5, runs)), 0, 1)
        seen = rng.binomial(images, true) / images
        levels = learning_of(
            {str(level): row.tolist() for level, row in enumerate(seen)}, 0.1, images, 0.0
        )
        wrong += any(level.reason == "below_best" for level in levels.values())
    assert wrong / STUDIES <= ALLOWED


def test_a_level_that_learned_nothing_is_found_beside_levels_that_did() -> None:
    rng = np.random.default_rng(15)
    for _ in range(STUDIES):
        accuracies = {
            str(size): (rng.binomial(128, 0.95, 3) / 128).tolist() for size in (16, 32, 64)
        }
        accuracies["256"] = (rng.binomial(128, 0.5, 3) / 128).tolist()
        found = learning_of(accuracies, 0.5, 128, 0.02)
        assert found["256"].learned is False
        assert sum(found[size].learned is True for size in ("16", "32", "64")) >= 2


@pytest.mark.parametrize(
    ("margin", "learned", "reason"), [(0.02, False, "below_best"), (0.3, True, "learned")]
)
def test_a_level_above_chance_but_further_below_the_best_than_the_margin_has_not_learned(
    margin: float, learned: bool, reason: str
) -> None:
    accuracies = {"16": [0.95, 0.96, 0.94], "64": [0.94, 0.95, 0.96], "256": [0.70, 0.72, 0.71]}
    found = learning_of(accuracies, 0.5, 206, margin)
    assert (found["256"].learned, found["256"].reason) == (learned, reason)
    assert found["256"].accuracy == pytest.approx(0.71)
    assert found["64"].learned is True


def test_the_chance_of_unequal_classes_is_the_share_of_the_largest() -> None:
    always_the_largest = {"16": [0.8, 0.8, 0.8]}
    assert learning_of(always_the_largest, 0.8, 200, 0.02)["16"].reason == "at_chance"
    assert learning_of(always_the_largest, 0.5, 200, 0.02)["16"].learned is True


def test_runs_that_differ_widely_leave_it_open() -> None:
    """One of two networks learned: their mean is above chance, but says little of the next one."""
    found = learning_of({"256": [1.0, 0.5]}, 0.5, 128, 0.02)["256"]
    assert (found.learned, found.reason) == (None, "unclear")


def test_a_large_shortfall_that_noise_may_explain_is_no_learning_either() -> None:
    """Real runs: at batch size 1024 three trainings ended so far from each other that no test tells
    them from 90%."""
    accuracies = {"16": [0.896, 0.888, 0.916], "64": [0.77, 0.802, 0.814]}
    accuracies |= {"1024": [0.504, 0.364, 0.23], "256": [0.522, 0.584, 0.588]}
    found = learning_of(accuracies, 0.1, 500, 0.02)
    assert (found["1024"].learned, found["1024"].reason) == (None, "unclear")
    assert found["256"].reason == "below_best"


def test_without_an_accuracy_nothing_is_said() -> None:
    found = learning_of({"alone": [], "workers": [0.9, 0.91, 0.92]}, 0.5, 206, 0.02)
    assert (found["alone"].learned, found["alone"].reason) == (None, "unknown")
    assert found["workers"].learned is True
    assert learning_of({"alone": []}, 0.5, 206, 0.02)["alone"].learned is None


SIZES = (4, 8)


def caveats(target: bool = False, **columns: tuple[list[Any], list[Any]]) -> list[Caveat]:
    """What the analysis of a study of two batch sizes warns of; ``columns`` give the runs' values
    of each size."""
    factors = {"device": ["cpu"], "training.batch_size": list(SIZES)}
    training = {"freeze_epochs": 0, "batch_size": 4, "target_accuracy": 0.9 if target else None}
    y = "target_seconds" if target else "fit_seconds"
    values = study_values(
        factors=factors, training=training, curve={"x": "training.batch_size", "y": y}, replicates=3
    )
    rows = [
        {
            "run": f"bs{size}-r{block}",
            "block": block,
            "training.batch_size": size,
            "fit_seconds": 2.0 + 0.1 * block,
            "valid_images": 206,
            "chance_accuracy": 0.5,
        }
        | {name: sides[level][block] for name, sides in columns.items()}
        for level, size in enumerate(SIZES)
        for block in range(3)
    ]
    return analysis_of(Study.model_validate(values), as_timings(rows)).warnings


def test_a_setting_that_did_not_learn_is_a_caveat_with_its_accuracy() -> None:
    found = caveats(accuracy=([0.95, 0.96, 0.94], [0.51, 0.5, 0.52]))
    (caveat,) = only(NotLearned, found)
    assert [(one.level.label, one.reason) for one in caveat.levels] == [("8", "at_chance")]
    assert caveat.levels[0].accuracy == pytest.approx(0.51)
    equal = caveats(accuracy=([0.95, 0.96, 0.94], [0.95, 0.94, 0.95]))
    assert not only(NotLearned, equal)


def test_runs_that_missed_the_target_are_a_caveat_that_names_their_setting_and_number() -> None:
    found = caveats(
        target=True,
        accuracy=([0.95, 0.96, 0.94], [0.91, 0.7, 0.92]),
        reached_target=([True, True, True], [True, False, True]),
        target_seconds=([2.0, 2.1, 2.2], [1.0, None, 1.1]),
    )
    (caveat,) = only(CensoredSettings, found)
    assert [(one.setting.label, one.missed, one.runs) for one in caveat.missed] == [("8", 1, 3)]


@pytest.mark.parametrize(
    ("other", "reason"), [([3.3, 3.31, 3.29], "learned"), ([3.6, 3.61, 3.62], "below_best")]
)
def test_a_loss_above_the_lowest_by_more_than_the_margin_is_not_learned(
    other: list[float], reason: str
) -> None:
    found = learning_by_loss({"a": [3.28, 3.29, 3.27], "b": other}, margin=0.02)
    assert (found["a"].reason, found["b"].reason, found["b"].accuracy) == ("learned", reason, None)
