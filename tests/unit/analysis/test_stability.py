"""Equivalence and contrasts: planted, and found or not as often as it should be."""

import numpy as np
import pytest

from study.analysis.analysis import Analysis
from study.analysis.answers.contrast import Contrast, NoRatio
from study.analysis.stats.log_model import LogModel, fit_log_model
from study.analysis.stats.optimum import equivalent_to
from study.analysis.table.exclusions import outliers
from study.config.study import Study
from tests.conftest import repeats, study_values
from tests.timings import as_timings, at_most
from tests.unit.analysis.planted import analysis_of, only


def model_of_levels(means: dict[str, float], noise: float, replicates: int, seed: int) -> LogModel:
    """The model of levels with these times in whole blocks."""
    rng = np.random.default_rng(seed)
    names = list(means) * replicates
    blocks = np.repeat(range(replicates), len(means))
    seconds = [means[name] * float(np.exp(rng.normal(0, noise))) for name in names]
    return fit_log_model(seconds, names, blocks.tolist())


def test_equal_levels_are_called_equivalent_where_the_noise_is_small_and_not_where_it_is_large() -> (
    None
):
    quiet = model_of_levels({"a": 1.0, "b": 1.0, "c": 1.3}, 0.01, 5, 2)
    assert equivalent_to(quiet, "a", 0.05) == ["b"]
    assert equivalent_to(model_of_levels({"a": 1.0, "b": 1.0}, 0.2, 5, 2), "a", 0.05) == []


def contrasted(replicates: int) -> Analysis:
    """A study of two batch sizes, of which the second takes half the time."""
    values = study_values(
        factors={"training.batch_size": [4, 8]},
        contrast="training.batch_size",
        curve=None,
        replicates=replicates,
    )
    rng = np.random.default_rng(1)
    rows = [
        {
            "run": f"bs{size}-r{block}",
            "block": block,
            "training.batch_size": size,
            "images_processed": 32,
            "fit_seconds": seconds * float(np.exp(rng.normal(0, 0.01))),
        }
        for block in range(replicates)
        for size, seconds in ((4, 2.0), (8, 1.0))
    ]
    return analysis_of(Study.model_validate(values), as_timings(rows))


def test_a_setting_without_a_pair_is_named_beside_the_ratios() -> None:
    values = study_values(
        factors={"device": ["cpu", "cuda"], "training.batch_size": [4, 8]}, contrast="device"
    )
    rows = [
        {
            "run": f"bs{size}-{device}-r{block}",
            "outcome": "failed" if (device, size) == ("cuda", 8) else "ok",
            "device": device,
            "block": block,
            "training.batch_size": size,
            "fit_seconds": 2.0 + block / 100,
        }
        for block in range(4)
        for device in ("cpu", "cuda")
        for size in (4, 8)
    ]
    study = Study.model_validate(values)
    (found,) = only(Contrast, analysis_of(study, as_timings(rows)).answers)
    assert found.least == found.most
    apart = [row | {"session": 1 if row["device"] == "cpu" else 2} for row in rows]
    (none,) = only(NoRatio, analysis_of(study, as_timings(apart)).answers)
    assert (none.slower, none.faster) == ("cpu", "cuda")


def test_a_ratio_comes_with_its_two_times() -> None:
    analysis = contrasted(4)
    (ratio,), (found,) = analysis.ratios, only(Contrast, analysis.answers)
    assert ratio.ratio.value == pytest.approx(2, rel=0.02)
    assert ratio.slower_seconds / ratio.faster_seconds == pytest.approx(ratio.ratio.value)
    assert found.least == found.most
    assert (found.slower, found.faster, found.least.ratio) == ("4", "8", ratio.ratio)


@pytest.mark.parametrize("levels", [3, 4, 10])
def test_noise_of_a_fifth_without_an_accident_has_hardly_an_outlier(levels: int) -> None:
    """The median polish of a small table leaves nothing of half of its runs: they tell of no
    noise."""
    seeds, places, blocks = (
        repeats(60, 300),
        np.tile(range(levels), 3).tolist(),
        np.repeat(range(3), levels).tolist(),
    )
    times = [
        np.exp(np.random.default_rng(seed).normal(0, 0.2, 3 * levels)).tolist() for seed in seeds
    ]
    assert sum(outliers(one, places, blocks).any() for one in times) <= at_most(0.05, len(seeds))
