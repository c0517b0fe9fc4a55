"""From how many epochs on compiling pays: planted seconds come back, with an interval that holds them."""

from typing import Any

import numpy as np
import pytest

from study.analysis.caveats.payback import Payback, quotient_of_means
from study.config.study import Study
from tests.chance import at_least
from tests.conftest import repeats, study_values
from tests.timings import analysed, as_timings

COMPILE, SIZE = "training.compile", "training.batch_size"


def paybacks(eager: float, compiled: float, blocks: int = 4, noise: float = 0.01) -> list[Payback]:
    """What is found where a steady epoch of 640 images takes so long, and compiling takes 20 s."""
    rng = np.random.default_rng(1)
    study = Study.model_validate(study_values(factors={SIZE: [32, 64], COMPILE: [False, True]}, replicates=blocks))
    rows: list[dict[str, Any]] = []
    for block in range(1, blocks + 1):
        for size in (32, 64):
            for switched, seconds in ((False, eager), (True, compiled)):
                epoch = seconds * (64 / size) * float(np.exp(rng.normal(0, noise)))
                rows.append(
                    {
                        "block": block, SIZE: size, COMPILE: "compile" if switched else "no compile",
                        "images_per_epoch": 640.0, "steady_images_per_second": 640 / epoch, "accuracy": 0.9,
                        "fit_seconds": 5 * epoch + 20 * switched, "compile_seconds": 20.0 if switched else None,
                        "started": f"2026-01-01T00:{len(rows):02d}:00+00:00",
                    }
                )  # fmt: skip
    return [one for one in analysed(study, as_timings(rows)).warnings if isinstance(one, Payback)]


def test_compiling_pays_from_the_planted_number_of_epochs_on_at_the_fastest_setting_that_is_compiled() -> None:
    (found,) = paybacks(eager=2.0, compiled=1.5)
    assert [one.levels[SIZE] for one in (found.compiled, found.other)] == [64, 64]
    assert found.extra_seconds == 20
    assert found.epochs is not None
    assert found.epochs.bounds is not None
    assert found.epochs.bounds[0] < 40 < found.epochs.bounds[1]
    assert found.epochs.bounds[1] < 1.3 * found.epochs.bounds[0]


def test_it_never_pays_where_compiled_epochs_are_longer_and_is_not_shown_to_where_the_noise_hides_it() -> None:
    (longer,), (alike,), (once,) = paybacks(1.5, 2.0), paybacks(1.5, 1.5, noise=0.1), paybacks(2.0, 1.5, blocks=1)
    assert (longer.never, longer.epochs) == (True, None)
    assert not alike.never
    assert alike.epochs is None or alike.epochs.bounds is None
    assert once.epochs is not None
    assert once.epochs.bounds is None


@pytest.mark.parametrize("pairs", [3, 10])
def test_the_interval_of_a_quotient_of_means_holds_the_truth_as_often_as_it_says(pairs: int) -> None:
    """19 of 20 are expected."""
    rng, draws = np.random.default_rng(1), repeats(300, 3000)
    held = 0
    for _ in draws:
        shared = rng.normal(0, 1, pairs)
        found, _ = quotient_of_means(20 + shared, 0.5 + 0.05 * shared + rng.normal(0, 0.1, pairs))
        held += bool(found and (found.bounds is None or found.bounds[0] <= 40 <= found.bounds[1]))
    assert held >= at_least(0.95, len(draws))
