"""Utilisation over the time of a run: a curve for each group, which does not grow with the number
of runs."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from study.analysis.figures import utilisation
from study.analysis.figures.style import use_style
from study.artifacts.telemetry import COLUMNS


def run(
    group: str, percent: float, seconds: float = 10.0, column: str = "gpu_utilisation_percent"
) -> Any:
    """The group of a run and its samples, ten a second: one value in its first half, and in its
    second one twice it."""
    times = np.arange(0, seconds + 0.05, 0.1)
    values = pd.DataFrame(
        {"seconds": 1e9 + times, column: percent * np.where(times < seconds / 2, 1.0, 2.0)}
    )
    return group, values.reindex(columns=list(COLUMNS)).astype("float64")


def drawn(samples: list[utilisation.Samples]) -> Figure:
    use_style()
    found = utilisation.draw(samples, "cuda")
    assert found is not None
    return found.figure


def test_a_curve_is_the_mean_over_its_runs_in_the_two_halves_of_their_time() -> None:
    line, other = drawn([run("a", 10, 8.0), run("b", 30), run("a", 20, 30.0)]).axes[0].get_lines()
    x, y = (np.asarray(values, float) for values in line.get_data())
    assert (line.get_label(), other.get_label()) == ("a", "b")
    assert (y[x < 45] == 15).all() and (y[x > 55] == 30).all()


def test_the_text_for_those_who_cannot_see_it_is_of_every_run() -> None:
    found = utilisation.draw([run("a", 20), run("a", 40)], "cuda")
    assert found is not None
    assert "a: 45% in 2 runs" in found.alt


def test_a_run_with_fewer_samples_than_parts_has_no_gaps() -> None:
    (line,) = drawn([run("", 10, seconds=0.5)]).axes[0].get_lines()
    assert np.isfinite(np.asarray(line.get_ydata(), float)).all()


def test_runs_without_values_of_the_device_are_not_drawn() -> None:
    assert utilisation.draw([run("", 10, column="cpu_percent")], "cuda") is None
    assert utilisation.draw([run("", 10)], "cpu") is None
