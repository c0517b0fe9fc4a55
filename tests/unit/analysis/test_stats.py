import numpy as np
import pytest

from benchmarks.coverage_laws import fit_curve
from study.analysis.stats.laws import aicc
from study.analysis.stats.log_model import fit_log_model
from study.analysis.stats.mixed_model import codes
from study.analysis.stats.noise import connected
from study.analysis.stats.optimum import level_test

BLOG = {
    16: (9.44, 12.54),
    32: (10.5, 12.85),
    64: (7.18, 10.3),
    128: (10.52, 10.77),
    256: (11.35, 14.34),
}
"""Seconds of the blog's two runs over its batch sizes: one in its table, one in its figure."""


def test_the_blogs_two_runs_together_do_not_tell_one_batch_size_from_another() -> None:
    table, figure = zip(*BLOG.values(), strict=True)
    fit = fit_curve([*BLOG, *BLOG], [*table, *figure], ["table"] * 5 + ["figure"] * 5)
    assert fit.differs_p is not None
    assert fit.differs_p > 0.05
    assert fit.verdict.kind == "flat"


def test_aicc_is_undefined_where_it_divides_by_nothing() -> None:
    assert aicc(1.0, 5, 3) is None
    assert aicc(1.0, 10, 1) == pytest.approx(10 * np.log(0.1) + 4 + 12 / 7)


def test_single_runs_have_no_interval_and_no_test() -> None:
    model = fit_log_model([1.0, 2.0], ["a", "b"], [1, 1])
    assert model.mean("a").low is None
    assert level_test(model, model.levels) is None


def test_a_level_that_was_added_in_a_start_of_its_own_keeps_its_time_and_everyone_elses() -> None:
    """Two starts share no level: each level's mean is its own, and nothing is smeared over the
    others."""
    times = {16: 20.0, 32: 15.0, 64: 12.0, 128: 11.0, 256: 10.0}
    rng = np.random.default_rng(3)
    rows = [(size, f"1.{block}", t) for block in range(3) for size, t in times.items()]
    rows += [(512, f"2.{block}", 9.5) for block in range(3)]
    sizes, blocks = [row[0] for row in rows], [row[1] for row in rows]
    seconds = [t * float(np.exp(rng.normal(0, 0.01))) for _, _, t in rows]
    model = fit_log_model(seconds, sizes, blocks)
    for size, t in (times | {512: 9.5}).items():
        assert model.mean(size).value == pytest.approx(t, rel=0.02)
    assert model.ratio(512, 256).value == pytest.approx(0.95, rel=0.02)
    assert connected(codes(sizes), codes(blocks)).tolist() == [0, 0, 0, 0, 0, 1]
    fit = fit_curve(sizes, seconds, blocks)
    assert fit.power.coefficients["Tmin"] == pytest.approx(9.3, abs=0.7)


def test_an_interrupted_start_is_no_set_of_its_own() -> None:
    levels, blocks = [16, 32, 64, 16, 32, 64], ["1.1", "1.1", "2.1", "2.2", "2.2", "2.2"]
    assert not connected(codes(levels), codes(blocks)).any()


def test_one_level_has_an_interval_from_its_runs() -> None:
    mean = fit_log_model([2.0, 2.1, 2.05], ["a"] * 3, ["1.1", "1.2", "1.3"]).mean("a")
    assert mean.low is not None
    assert mean.high is not None
    assert 1.9 < mean.low < mean.value < mean.high < 2.2


def test_levels_of_starts_of_their_own_keep_their_replicates_noise() -> None:
    seconds, levels = [2.0, 2.1, 2.05, 4.0, 4.1, 4.05], ["a"] * 3 + ["b"] * 3
    model = fit_log_model(seconds, levels, ["1.1", "1.2", "1.3", "2.1", "2.2", "2.3"])
    assert model.degrees_of(model.weights("a", "b")[None]) == [4]
    ratio = model.ratio("b", "a")
    assert ratio.low is not None
    assert 1.85 < ratio.low < ratio.value < 2.1
    p = level_test(model, model.levels)
    assert p is not None
    assert p < 0.001


def test_the_level_test_is_the_one_of_scipy_where_there_are_no_blocks() -> None:
    from scipy import stats as scipy_stats

    rng = np.random.default_rng(5)
    groups = [np.exp(rng.normal(0.02 * k, 0.05, 6)) for k in range(3)]
    model = fit_log_model(np.concatenate(groups).tolist(), [0] * 6 + [1] * 6 + [2] * 6, [1] * 18)
    assert not model.uneven
    assert level_test(model, model.levels) == pytest.approx(
        scipy_stats.f_oneway(*[np.log(group) for group in groups]).pvalue
    )
