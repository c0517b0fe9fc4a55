"""Critical values of comparisons with one level, and of all levels."""

import math

import numpy as np
import pytest
from scipy import stats

from study.analysis.stats.critical_values import dunnett, largest_of_all, ranges

PUBLISHED = {
    (True, 5): [2.57, 3.03, 3.29, 3.48, 3.62],
    (True, 10): [2.23, 2.57, 2.76, 2.89, 2.99],
    (True, math.inf): [1.96, 2.21, 2.35, 2.44, 2.51],
    (False, 5): [2.02, 2.44, 2.68, 2.85, 2.98],
    (False, 10): [1.81, 2.15, 2.34, 2.47, 2.56],
    (False, math.inf): [1.64, 1.92, 2.06, 2.16, 2.23],
}
"""Tables 1a and 2a at 5% (Dunnett 1955 and 1964), for two to six levels."""


@pytest.mark.parametrize(("two_sided", "degrees"), PUBLISHED)
def test_critical_values_are_the_published_ones(two_sided: bool, degrees: float) -> None:
    found = [dunnett(levels, degrees, two_sided) for levels in range(2, 7)]
    assert found == pytest.approx(PUBLISHED[two_sided, degrees], abs=0.0051)


@pytest.mark.parametrize(("levels", "runs"), [(4, 3), (10, 2), (10, 5)])
def test_scipys_test_at_a_critical_value_has_a_p_of_a_twentieth(levels: int, runs: int) -> None:
    """The means are planted so that the largest difference is just the critical one."""
    noise = np.resize([-1.0, 1.0, 0.0], runs) - np.resize([-1.0, 1.0, 0.0], runs).mean()
    noise /= noise.std(ddof=1)
    largest = dunnett(levels, levels * (runs - 1), True) * math.sqrt(2 / runs)
    found = stats.dunnett(
        noise + largest, *[noise] * (levels - 2), control=noise, rng=np.random.default_rng(1)
    )
    assert float(np.min(found.pvalue)) == pytest.approx(0.05, abs=0.002)


@pytest.mark.parametrize(("levels", "degrees"), [(3, 2.0), (5, 1.0), (10, 18.0), (30, 58.0)])
def test_the_largest_of_all_differences_is_the_studentized_range_of_scipy(
    levels: int, degrees: float
) -> None:
    assert largest_of_all(levels, degrees) * math.sqrt(2) == pytest.approx(
        stats.studentized_range.ppf(0.95, levels, degrees), rel=1e-4
    )


def test_between_the_points_of_the_grid_a_range_lies_between_theirs() -> None:
    low, between, high = ranges(5, np.array([8.0, 9.0, 10.0]))
    assert high < between < low
    assert (low, high) == pytest.approx((largest_of_all(5, 8.0), largest_of_all(5, 10.0)))
