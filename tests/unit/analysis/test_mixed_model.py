from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from study.analysis.stats.log_model import LogModel, fit_log_model
from study.analysis.stats.mixed_model import Array
from study.analysis.stats.optimum import level_test
from study.analysis.table.exclusions import outliers

LEVELS, BLOCKS = 5, 5
WHOLE = np.tile(range(LEVELS), BLOCKS).tolist(), np.repeat(range(BLOCKS), LEVELS).tolist()


def drawn(seed: int, block_noise: float = 0.2, noise: float = 0.05) -> list[float]:
    """Times of five equal levels in five whole blocks."""
    rng = np.random.default_rng(seed)
    logs = (
        rng.normal(0, noise, LEVELS * BLOCKS)
        + rng.normal(0, block_noise, BLOCKS)[np.array(WHOLE[1])]
    )
    return [float(second) for second in np.exp(logs)]


def errors(model: LogModel, weights: Array) -> float:
    """The standard error of a weighted sum of the effects, one noise for all runs of a level."""
    return float(np.sqrt(weights @ model.covariance @ weights))


def degrees(model: LogModel, weights: Array) -> float:
    """Its degrees of freedom."""
    return float(model.degrees_of(weights[None])[0])


def test_the_variances_and_the_test_of_levels_are_those_of_the_analysis_of_variance_of_whole_blocks() -> (
    None
):
    seconds = drawn(1)
    model = fit_log_model(seconds, *WHOLE)
    table = np.log(seconds).reshape(BLOCKS, LEVELS)
    rows, columns = table.mean(1, keepdims=True), table.mean(0)
    within = float(((table - rows - columns + table.mean()) ** 2).sum()) / (
        (LEVELS - 1) * (BLOCKS - 1)
    )
    between = LEVELS * float(((rows - table.mean()) ** 2).sum()) / (BLOCKS - 1)
    of_levels = BLOCKS * float(((columns - table.mean()) ** 2).sum()) / (LEVELS - 1)
    p = stats.f.sf(of_levels / within, LEVELS - 1, (LEVELS - 1) * (BLOCKS - 1))
    assert level_test(model, model.levels) == pytest.approx(p, rel=1e-2)
    assert model.fit.variances["noise"] == pytest.approx(within, rel=1e-3)
    assert model.fit.variances["block"] == pytest.approx((between - within) / LEVELS, rel=1e-3)
    weights = model.weights(0, 1)
    assert errors(model, weights) == pytest.approx(np.sqrt(2 * within / BLOCKS), rel=1e-3)
    assert degrees(model, weights) == pytest.approx((LEVELS - 1) * (BLOCKS - 1), rel=1e-3)
    assert model.effects == pytest.approx(columns)


def test_the_means_degrees_are_satterthwaites_of_the_two_mean_squares() -> None:
    model = fit_log_model(drawn(1), *WHOLE)
    noise, block = model.fit.variances["noise"], model.fit.variances["block"]
    between = noise + LEVELS * block
    by_hand = (between + (LEVELS - 1) * noise) ** 2 / (
        between**2 / (BLOCKS - 1) + ((LEVELS - 1) * noise) ** 2 / ((LEVELS - 1) * (BLOCKS - 1))
    )
    assert not model.uneven
    weights = model.weights(2)
    assert degrees(model, weights) == pytest.approx(by_hand, rel=0.02)
    assert errors(model, weights) ** 2 == pytest.approx(
        (between + (LEVELS - 1) * noise) / (LEVELS * BLOCKS), rel=1e-3
    )


def test_unbalanced_runs_have_the_estimates_of_generalised_least_squares_by_hand() -> None:
    rng = np.random.default_rng(3)
    keep = rng.random(LEVELS * BLOCKS) < 0.7
    seconds = np.array(drawn(3))[keep].tolist()
    levels, blocks = (np.array(part)[keep].tolist() for part in WHOLE)
    model = fit_log_model(seconds, levels, blocks)
    noise, block = model.fit.variances["noise"], model.fit.variances["block"]
    z = np.equal.outer(blocks, blocks)
    inverse = np.linalg.inv(noise * np.eye(len(seconds)) + block * z)
    x = np.equal.outer(levels, model.levels).astype(float)
    covariance = np.linalg.inv(x.T @ inverse @ x)
    assert model.effects == pytest.approx(covariance @ x.T @ inverse @ np.log(seconds), abs=1e-6)
    # Kenward and Roger's is never the smaller one.
    assert (np.diag(model.fit.covariance) >= np.diag(covariance) * (1 - 1e-6)).all()


def test_starts_have_a_variance_of_their_own_where_they_can_be_told_from_blocks() -> None:
    rng = np.random.default_rng(4)
    starts = np.repeat(range(12), 20)
    blocks = np.repeat(range(60), 4)
    levels = np.tile(range(4), 60)
    logs = (
        rng.normal(0, 0.3, 12)[starts] + rng.normal(0, 0.1, 60)[blocks] + rng.normal(0, 0.03, 240)
    )
    found = fit_log_model(
        np.exp(logs).tolist(), levels.tolist(), blocks.tolist(), starts.tolist()
    ).fit.variances
    assert np.sqrt(found["noise"]) == pytest.approx(0.03, rel=0.15)
    assert np.sqrt(found["block"]) == pytest.approx(0.1, rel=0.3)
    assert np.sqrt(found["start"]) == pytest.approx(0.3, rel=0.6)


def test_a_start_of_one_block_each_is_the_block() -> None:
    levels, blocks = WHOLE
    assert set(fit_log_model(drawn(5), levels, blocks, blocks).fit.variances) == {"noise", "block"}


def test_a_slow_run_in_a_block_of_its_own_moves_no_other_mean() -> None:
    """It was explained away wholly, and lifted every other mean."""
    seconds, levels, blocks = drawn(6, 0.05), list(WHOLE[0]), [*WHOLE[1][:-1], 99]
    seconds[-1] *= 2
    clean = outliers(seconds, levels, blocks) == 0
    kept = [
        [value for value, keep in zip(part, clean, strict=True) if keep]
        for part in (seconds, levels, blocks)
    ]
    with_it = fit_log_model(kept[0], kept[1], kept[2])
    without = fit_log_model(seconds[:-1], levels[:-1], blocks[:-1])
    for level in range(LEVELS):
        assert with_it.mean(level).value == pytest.approx(without.mean(level).value, rel=1e-6)


def test_times_without_noise_are_their_own_intervals() -> None:
    a, b = 2.000000001, 3.000000001  # with the digits of a clock whose step is nothing
    mean = fit_log_model([a, a, b, b], ["a", "a", "b", "b"], [1, 2, 1, 2]).mean("a")
    assert mean.low == pytest.approx(2.0)
    assert mean.high == pytest.approx(2.0)


def test_a_run_of_twice_its_siblings_time_is_an_outlier_and_no_other() -> None:
    seconds = drawn(11)
    seconds[7] *= 2
    assert np.flatnonzero(outliers(seconds, *WHOLE)).tolist() == [7]


def test_noise_blocks_and_levels_that_differ_make_no_outlier() -> None:
    for seed in range(50):
        seconds = [
            second * (1 + 3 * level) for second, level in zip(drawn(seed), WHOLE[0], strict=True)
        ]
        assert not outliers(seconds, *WHOLE).any()
    slow_block = [
        second * (3 if block == 2 else 1) for second, block in zip(drawn(12), WHOLE[1], strict=True)
    ]
    assert not outliers(slow_block, *WHOLE).any()


def _uneven_model(levels: int = 12) -> LogModel:
    """Levels in 5 blocks of 2 starts; the noise of each third level is ten times that of the
    others."""
    rng = np.random.default_rng(3)
    names, blocks = np.tile(np.arange(levels), 5), np.repeat(np.arange(5), levels)
    noise = rng.normal(0, np.where(names % 3 == 0, 0.1, 0.01)) + rng.normal(0, 0.05, 5)[blocks]
    return fit_log_model(
        np.exp(names * 0.02 + noise).tolist(),
        names.tolist(),
        blocks.tolist(),
        (blocks // 3).tolist(),
    )


def test_the_degrees_of_a_pair_are_satterthwaites_formula_written_out() -> None:
    model = _uneven_model().even
    pairs = [model.weights(one, other) for one, other in combinations(model.levels, 2)]
    whole = [np.concatenate([pair, np.zeros(len(model.fit.beta) - len(pair))]) for pair in pairs]
    slopes = [np.einsum("i,kij,j->k", row, model.fit.slopes, row) for row in whole]
    expected = [
        2 * errors(model, pair) ** 4 / float(slope @ model.fit.spread @ slope)
        for pair, slope in zip(pairs, slopes, strict=True)
    ]
    found = [degrees(model, pair) for pair in pairs]
    assert found == pytest.approx(np.clip(expected, 1, model.residual_df).tolist(), rel=1e-9)
    assert model.pair_degrees == pytest.approx(float(np.median(found)), rel=1e-9)
