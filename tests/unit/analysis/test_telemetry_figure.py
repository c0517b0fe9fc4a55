"""Telemetry over the time of a run: a panel for each level, whose lines do not grow with the number of runs."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from study.analysis.figures import utilisation
from study.analysis.figures.style import use_style
from study.artifacts.telemetry import COLUMNS

GPU, CPU = ("gpu_utilisation_percent", "gpu_memory_used_bytes"), ("cpu_percent", "process_resident_bytes")


def run(level: int, percent: float, gib: float, seconds: float = 10.0, names: tuple[str, str] = GPU) -> Any:
    """The level of a run and its samples, ten a second: one value in its first half, and in its second one twice it."""
    times = np.arange(0, seconds + 0.05, 0.1)
    half = np.where(times < seconds / 2, 1.0, 2.0)
    values = pd.DataFrame({"seconds": 1e9 + times, names[0]: percent * half, names[1]: gib * 2**30 * half})
    return str(level), values.reindex(columns=list(COLUMNS)).astype("float64")


def drawn(samples: list[utilisation.Samples], device: str = "cuda") -> Figure:
    use_style()
    found = utilisation.draw(samples, device, "batch size")
    assert found is not None
    return found.figure


def titles(figure: Figure) -> list[str]:
    return [axes.get_title() for axes in figure.axes if axes.get_title()]


def test_a_panel_shows_the_median_over_its_runs_in_the_two_halves_of_their_time() -> None:
    figure = drawn([run(16, percent, 1.0, seconds) for percent, seconds in ((10, 8.0), (20, 10.0), (45, 30.0))])
    x, y = (np.asarray(values, float) for values in figure.axes[0].get_lines()[0].get_data())
    assert x[-1] < 10 < x[-1] + 0.2  # the median length
    assert (y[x < 4.5] == 20).all() and (y[x > 5.5] == 40).all()
    peaks = np.asarray(figure.axes[1].get_lines()[0].get_ydata(), float)
    assert (peaks[0], peaks[-1]) == (1.0, 2.0)


def test_levels_have_panels_in_the_order_in_which_they_come() -> None:
    figure = drawn([run(level, 10, 1) for level in (8, 128, 64, 8)])
    assert titles(figure) == ["batch size 8, 2 run(s)", "batch size 128, 1 run(s)", "batch size 64, 1 run(s)"]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_hundred_runs_are_drawn_with_as_few_lines_as_three(device: str) -> None:
    names = CPU if device == "cpu" else GPU

    def artists(count: int) -> int:
        runs = [run(16, 10 + number % 7, 1, names=names) for number in range(count)]
        return sum(len(axes.get_lines()) + len(axes.collections) for axes in drawn(runs, device).axes)

    assert artists(100) == artists(3)


def test_of_many_levels_some_have_panels_from_the_first_to_the_last_and_the_caption_says_so() -> None:
    found = utilisation.draw([run(level, 10, 1) for level in range(50)], "cuda", "batch size")
    assert found is not None
    shown = titles(found.figure)
    assert len(shown) == utilisation.MOST_PANELS
    assert (shown[0], shown[-1]) == ("batch size 0, 1 run(s)", "batch size 49, 1 run(s)")
    assert "16 of 50 levels have a panel" in found.caption


def test_the_text_for_those_who_cannot_see_it_is_of_every_run() -> None:
    found = utilisation.draw([run(8, 20, 1), run(16, 40, 3)], "cuda", "batch size")
    assert found is not None
    assert "2 runs over 20 s: GPU utilisation is 45% on average" in found.alt
    assert "peaks at 6.00 GiB" in found.alt


def test_a_run_with_fewer_samples_than_parts_has_no_gaps() -> None:
    figure = drawn([run(16, 10, 1, seconds=0.5)])
    assert np.isfinite(np.asarray(figure.axes[0].get_lines()[0].get_ydata(), float)).all()


def test_runs_without_values_of_the_device_are_not_drawn() -> None:
    assert utilisation.draw([run(16, 10, 1, names=CPU)], "cuda", "batch size") is None
    assert utilisation.draw([], "cpu", "batch size") is None
