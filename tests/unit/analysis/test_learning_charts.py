"""The table of epochs, how the settings learned, and the answer in shorter and longer jobs."""

import re
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from study.analysis.analysis import StudyResult, result_of
from study.analysis.answers.contrast import Contrast, RatiosByLength
from study.analysis.answers.ways import Ways
from study.analysis.figures.duration import length_chart
from study.analysis.stats.usable import counted
from study.analysis.step import charts_of
from study.artifacts.layout import Results
from tests.examples import EXAMPLE

pytestmark = pytest.mark.xdist_group("the example")


@cache
def example(study: str = "photographs-speedup") -> tuple[StudyResult, RatiosByLength]:
    found = result_of(Results(EXAMPLE), study)
    assert found.analysis.length is not None
    return found, found.analysis.length


def test_the_epochs_are_those_of_the_records_and_the_file_keeps_every_bit(tmp_path: Path) -> None:
    found, _ = example()
    for run, own in counted(found.epochs).groupby("run"):
        epochs = found.records.included[str(run)].measurement.epochs  # type: ignore[union-attr]
        assert own["accuracy"].tolist() == [one.accuracy for one in epochs]
        seconds = np.cumsum([one.train_seconds + one.valid_seconds for one in epochs])
        assert own["seconds"].tolist() == pytest.approx(seconds.tolist())
    assert set(found.epochs["excluded"].dropna()) == set(found.frame["excluded"].dropna())
    found.epochs.to_csv(tmp_path / "epochs.csv", index=False)
    kept = pd.read_csv(
        tmp_path / "epochs.csv", dtype=dict(found.epochs.dtypes), float_precision="round_trip"
    )
    pd.testing.assert_frame_equal(kept, found.epochs)


@pytest.mark.parametrize("study", ["photographs", "photographs-speedup"])
def test_at_the_studys_own_length_the_ratio_is_the_printed_one(study: str) -> None:
    found, length = example(study)
    (own,) = [point.ratios for point in length.points if point.epochs == length.own]
    first = next(one for one in found.analysis.answers if isinstance(one, (Ways, Contrast)))
    if isinstance(first, Ways):
        assert own == [first.beside.times]
    else:
        assert own == [first.least.together, first.most.together]


@pytest.mark.parametrize("epochs", [2, 25])
def test_another_length_is_a_run_without_its_later_epochs_or_with_more_of_them(epochs: int) -> None:
    found, length = example()
    (point,) = [one for one in length.points if one.epochs == epochs]
    logs: dict[tuple[str, str], list[float]] = {}
    for name, record in found.records.included.items():
        assert record.measurement is not None
        each = [one.train_seconds + one.valid_seconds for one in record.measurement.epochs]
        seconds = record.measurement.fit_seconds - sum(each[epochs:])
        seconds += max(epochs - 4, 0) * (each[2] + each[3]) / 2
        loader, device, _ = name.split("-")
        logs.setdefault((loader, device), []).append(np.log(seconds))
    # The model weighs runs by their noise, so that its means are nearly these.
    means = {key: np.exp(np.mean(one)) for key, one in logs.items()}
    ratios = [means[one, "cpu"] / means[one, "cuda"] for one in ("workers", "device")]
    assert [one.value for one in point.ratios] == pytest.approx(ratios, rel=0.02)


def test_the_charts_have_a_panel_for_each_quantity_and_a_line_for_each_run() -> None:
    found, length = example()
    charts = charts_of(found)
    ratios = length_chart(length)
    assert ratios is not None and len(length.rows()) == len(length.points) == 6
    for chart in (*charts.values(), ratios):
        kept = chart.kept("chart", chart.figure)
        assert not re.findall("#[0-9a-f]{6}", kept.wide + kept.narrow)
    axes = charts["learning"].figure.axes[1:]
    assert [len(one.lines) for one in axes] == [7, 7] * 4  # five runs, the mean, chance or training
    accuracy = counted(found.epochs).groupby(["group", "level", "epoch"])["accuracy"].mean()
    means = [
        one.get_ydata()
        for one in chain(*(panel.lines for panel in axes[::2]))
        if one.get_gid() == "mean"
    ]
    assert sorted(np.concatenate(means)) == sorted(accuracy)
    solid = [one for one in ratios.figure.axes[1].lines if one.get_gid() == "measured"]
    (own,) = [point.ratios for point in length.points if point.epochs == length.own]
    assert [np.asarray(one.get_ydata())[-1] for one in solid] == [one.value for one in own]
