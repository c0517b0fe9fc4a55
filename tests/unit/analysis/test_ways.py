"""Several groups side by side: the fastest of all, and how much longer the best of each other one
takes."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from study.analysis.answers.context import Context
from study.analysis.answers.ways import Ways
from study.analysis.groups import groups_of
from study.analysis.ratios import quotient_of
from study.config.study import Study
from tests.conftest import repeats, study_values
from tests.timings import as_timings, at_least, ruled
from tests.unit.analysis.planted import analysis_of, only

TIMES: dict[tuple[str, str], dict[int, float]] = {
    ("fastai", "channels_last"): {16: 10.0, 32: 8.0, 64: 9.0},
    ("torch", "channels_last"): {16: 4.0, 32: 3.0, 64: 2.0},
}
"""Planted seconds: the bests are 8 and 2, at batch sizes 32 and 64."""


def measured(
    seed: int, blocks: int = 4, noise: float = 0.04, broken: bool = False, **values: Any
) -> tuple[Study, pd.DataFrame]:
    """Whole blocks of one start; ``broken``: one block is half as fast, and one run is three times
    as long."""
    rng = np.random.default_rng(seed)
    factors: dict[str, Any] = {
        "training.loop": ["fastai", "torch"],
        "training.memory_format": ["channels_last"],
    }
    study = study_values(
        factors=factors | {"training.batch_size": [16, 32, 64]},
        curve={"x": "training.batch_size", "y": "fit_seconds"}, **values,
    )  # fmt: skip
    rows: list[dict[str, Any]] = []
    for block in range(blocks):
        state = rng.normal(0, 0.1) + (0.7 if broken and block == 1 else 0.0)
        for (loop, layout), times in TIMES.items():
            for size, seconds in times.items():
                rows.append(
                    {
                        "run": f"{loop}-{size}-r{block}",
                        "block": block + 1,
                        "training.loop": loop,
                        "training.memory_format": layout,
                        "training.batch_size": size,
                        "fit_seconds": seconds * float(np.exp(state + rng.normal(0, noise))),
                        "started": f"2026-01-01T00:{len(rows):02d}:00+00:00",
                    }
                )
    if broken:
        rows[int(rng.integers(len(rows)))]["fit_seconds"] *= 3
    return Study.model_validate(study), as_timings(rows)


def test_the_fastest_of_all_comes_first_and_is_the_answer_beside_the_first_way() -> None:
    analysis = analysis_of(*measured(1))
    found = analysis.answers[0]
    assert isinstance(found, Ways)
    assert found.decided
    assert [(way.group.levels["training.loop"], way.level.label) for way in found.ways] == [
        ("torch", "64"),
        ("fastai", "32"),
    ]
    assert found.beside == found.ways[1]
    assert analysis.answer == found.text(
        Context(measured(1)[0], analysis.groups, scope="95% in this start")
    )


@pytest.mark.parametrize("broken", [False, True])
def test_the_interval_holds_the_planted_ratio_as_often_as_it_says(broken: bool) -> None:
    """Its sides are at different batch sizes. 19 of 20 are expected.

    An outlier widens it on one side alone, and only where it is a run of these two settings.
    """
    bounds, studies = [], repeats(15, 40)
    for seed in studies:
        study, frame = measured(seed, 5, broken=broken)
        frame = ruled(study, frame)
        outliers = {run.rpartition("-")[0] for run in frame.loc[frame["outlier"] != 0, "run"]}
        found = quotient_of(groups_of(study, frame), (0, "32"), (1, "64"), "fit_seconds")
        assert found.low and found.high
        bounds.append((found.low, found.high))
        assert (found.high / 4.0 < 1.3) or "fastai-32" in outliers
        assert (4.0 / found.low < 1.3) or "torch-64" in outliers
    assert sum(low <= 4.0 <= high for low, high in bounds) >= at_least(0.95, len(bounds))


def test_groups_that_a_contrast_compares_are_compared_by_it_alone() -> None:
    found = analysis_of(*measured(1, contrast="training.loop"))
    assert not only(Ways, found.answers)


def test_which_way_is_the_fastest_is_told_from_two_blocks_though_its_batch_size_is_open() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TIMES, ("torch", "channels_last"), dict.fromkeys((16, 32, 64), 3.0))
        patch.setitem(TIMES, ("fastai", "channels_last"), dict.fromkeys((16, 32, 64), 15.0))
        (found,) = only(Ways, analysis_of(*measured(1, blocks=2)).answers)
    assert found.decided
    assert found.ways[0].group.levels["training.loop"] == "torch"


def test_a_single_block_gives_a_ratio_without_an_interval_and_no_word_of_certainty() -> None:
    found = only(Ways, analysis_of(*measured(1, blocks=1)).answers)
    assert not any(one.decided for one in found)
