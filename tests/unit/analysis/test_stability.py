"""Drift, power and contrasts: planted, and found or not as often as it should be."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from study.analysis.stats.analysis import analyse
from study.analysis.stats.contrasts import Ratio, contrast_bootstrap, contrast_of
from study.analysis.stats.curve import fit_curve
from study.analysis.stats.findings import Contrast, Drifted, NoDifference
from study.analysis.stats.log_model import fit_log_model
from study.analysis.stats.stability import drift_of, more_replicates, replicates_needed
from study.config.study import Study
from tests.conftest import study_values
from tests.timings import as_timings


def runs(drift: float = 0.0, noise: float = 0.02, replicates: int = 5, seed: int = 1) -> tuple[pd.DataFrame, list[str]]:
    """Runs of three levels in blocks; their times grow by ``drift`` (a share) from the first to the last."""
    rng = np.random.default_rng(seed)
    levels = [name for _ in range(replicates) for name in rng.permutation(["a", "b", "c"])]
    seconds = [
        (1 + ord(name) - ord("a")) * (1 + drift) ** (place / (len(levels) - 1)) * float(np.exp(rng.normal(0, noise)))
        for place, name in enumerate(levels)
    ]
    return pd.DataFrame({"started": range(len(levels)), "fit_seconds": seconds}), levels


def test_a_planted_drift_along_the_order_is_found_with_its_size() -> None:
    longer, shorter = drift_of(*runs(drift=0.3), "fit_seconds"), drift_of(*runs(drift=-0.3), "fit_seconds")
    assert longer is not None
    assert 1.2 < longer.change < 1.4
    assert longer.p < 0.05
    assert shorter is not None
    assert 0.6 < shorter.change < 0.8


def test_runs_that_do_not_drift_are_called_so_in_one_of_twenty_at_most() -> None:
    found = sum(drift_of(*runs(seed=seed, noise=0.1), "fit_seconds") is not None for seed in range(200))
    assert found <= 20  # 5% of 200 is 10; 20 or more has a probability of 0.3%


def test_too_few_runs_or_runs_without_a_start_tell_no_drift() -> None:
    frame, levels = runs(drift=1.0, replicates=1)
    assert drift_of(frame, levels, "fit_seconds") is None
    frame, levels = runs(drift=1.0)
    assert drift_of(frame.assign(started=float("nan")), levels, "fit_seconds") is None


def test_the_replicates_that_are_needed_are_those_of_cohens_table() -> None:
    # Two-sided 5%, power 80%, two groups: 17 for d = 1, 64 for d = 0.5 (three levels in blocks have 2(n - 1) degrees).
    assert replicates_needed(1.0, 1.0, 3) == 17
    assert replicates_needed(0.5, 1.0, 3) == 64
    assert replicates_needed(0.001, 1.0, 3) is None


def test_replicates_are_counted_for_each_level_that_is_not_told_from_the_best() -> None:
    rng = np.random.default_rng(5)
    levels = ["64", "128", "256"] * 4
    means = {"64": 1.0, "128": 1.03, "256": 2.0}
    model = fit_log_model([means[name] * float(np.exp(rng.normal(0, 0.05))) for name in levels], levels, [0] * 12)
    found = more_replicates(model, ["64", "128"], "64", 4)
    assert found is not None
    assert model.residual_variance is not None
    needed = replicates_needed(float(model.effects[1] - model.effects[0]), model.residual_variance, 3)
    assert needed is not None
    assert (found.fastest, found.needed, found.hopeless) == ("64", {"128": needed - 4}, [])
    assert more_replicates(model, ["64"], "64", 4) is None


def test_a_machine_that_drifted_more_than_the_settings_differ_is_found_in_place_of_a_law() -> None:
    rng = np.random.default_rng(2)
    sizes = np.tile([16.0, 32, 64, 128], 4)
    blocks = np.repeat(np.arange(4), 4)
    seconds = np.exp(rng.normal(0, 0.02, 16)) * np.array([1.0, 1.5, 1.1, 2.0])[blocks]
    verdict = fit_curve(sizes.tolist(), seconds.tolist(), blocks.tolist()).verdict
    assert isinstance(verdict, Drifted)
    assert 1.9 < verdict.machine_change < 2.2
    assert verdict.level_change < 1.1
    still = fit_curve(sizes.tolist(), np.exp(rng.normal(0, 0.02, 16)).tolist(), blocks.tolist()).verdict
    assert isinstance(still, NoDifference)
    told = fit_curve(sizes.tolist(), np.exp(rng.normal(0, 0.02, 16)).tolist(), [0] * 16, machine_change=1.4).verdict
    assert isinstance(told, Drifted)
    assert told.machine_change == 1.4


def contrasted(replicates: int, **columns: Any) -> list[Ratio]:
    """A study of two batch sizes, of which the second takes half the time; ``columns`` give (first, second)."""
    values = study_values(
        factors={"training.batch_size": [4, 8]}, contrast="training.batch_size", curve=None, replicates=replicates
    )
    rng = np.random.default_rng(1)
    rows = []
    for block in range(replicates):
        for level, size in enumerate((4, 8)):
            rows.append(
                {
                    "run": f"bs{size}-r{block}", "outcome": "ok", "message": None, "device": "cpu", "session": 1,
                    "block": block, "training.batch_size": size, "precision": "fp32", "images_processed": 32,
                    "fit_seconds": (2.0 if level == 0 else 1.0) * float(np.exp(rng.normal(0, 0.01))),
                }
                | {name: pair[level] for name, pair in columns.items()}
            )  # fmt: skip
    frame = as_timings(rows)
    if "accuracy" in columns:
        frame["accuracy"] += rng.normal(0, 0.001, len(frame))
    return analyse(Study.model_validate(values), frame).ratios


def test_a_ratio_comes_with_its_two_times_and_the_work_that_they_did() -> None:
    (ratio,) = contrasted(4)
    assert ratio.ratio.value == pytest.approx(2, rel=0.02)
    assert ratio.slower_seconds / ratio.faster_seconds == pytest.approx(ratio.ratio.value)
    assert (ratio.slower_images, ratio.faster_images) == (32, 32)
    found = contrast_of([ratio], "training.batch_size")
    assert found.least == found.most
    assert (found.slower, found.faster, found.least.ratio) == ("4", "8", ratio.ratio)
    assert doubts(found) == set()


def doubts(found: Contrast) -> set[str]:
    """What makes the two times no times of the same work."""
    return {differs.what for differs in found.differs}


@pytest.mark.parametrize(
    ("column", "levels", "doubt"),
    [
        ("images_processed", (32, 24), "images"),
        ("precision", ("fp32", "bf16"), "precision"),
        ("accuracy", (0.9, 0.5), "accuracy"),
        ("threads", (16, 1), "threads"),
        ("workers", (16, 4), "workers"),
    ],
)
def test_work_that_differs_stands_beside_the_ratio(column: str, levels: tuple[Any, Any], doubt: str) -> None:
    found = contrast_of(contrasted(4, **{column: levels}), "training.batch_size")
    assert doubts(found) == {doubt}
    (differs,) = found.differs
    sides = (differs.slower, differs.faster)
    assert sides == (levels if column == "precision" else pytest.approx(levels, abs=0.01))
    assert differs.at == {}


def test_accuracies_within_their_noise_are_not_called_different() -> None:
    assert contrasted(4, accuracy=(0.90, 0.899))[0].differs == []


def test_a_bootstrap_needs_eight_pairs() -> None:
    assert contrasted(7)[0].bootstrap is None
    found = contrasted(8)[0]
    assert found.bootstrap is not None
    assert found.bootstrap.low is not None
    assert found.bootstrap.high is not None
    assert found.bootstrap.low < found.ratio.value < found.bootstrap.high
    assert contrast_bootstrap(pd.Series([2.0] * 9)) is None
