"""What the analysis makes of a run's steps."""

from study.analysis.table.steps import extreme_steps


def test_extremes_are_half_as_long_again_as_the_median() -> None:
    assert extreme_steps([1.0, 1.0, 1.4, 1.0]) == 0
    assert extreme_steps([1.0, 1.0, 1.6, 1.0, 9.0]) == 2
