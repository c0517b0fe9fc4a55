"""What the page's charts and cards say of the numbers that they show."""

import re

import numpy as np
import pytest

from study.analysis.charts.svg import linear
from study.analysis.published.beside import beside
from study.analysis.published.table import read_published
from study.analysis.report.drawings import main_chart
from study.analysis.stats.analysis import analyse
from study.analysis.stats.findings import Unsuccessful, WideSpread
from study.analysis.stats.rows import level_rows, means_of
from study.analysis.stats.usable import with_reasons
from study.analysis.table.rows import table
from study.analysis.wording.answer import answer_sentence
from study.analysis.wording.cards import card, limit_card
from study.analysis.wording.consequences import ranked
from tests.unit.analysis.test_golden_page import fastest, planned, recorded


@pytest.mark.parametrize("width", [120, 160, 320, 640])
def test_an_axis_has_two_numbers_at_least_and_room_for_each(width: int) -> None:
    for highest in np.geomspace(0.01, 9000, 200):
        ticks = linear([highest], 0, width).ticks()
        assert 2 <= len(ticks) <= 1 + width / 25
        assert ticks[0] == 0


def test_a_part_that_takes_no_time_is_not_named_as_one_that_takes_some() -> None:
    card = limit_card("batch size 256", {"computing": 0.953, "validation": 0.045, "the rest": 0.002})
    assert card.text == "Batch size 256: computing 95%, validation 4%."


@pytest.mark.parametrize(
    ("tied", "name", "told"),
    [
        (["2", "8"], "0 (or 2)", "2 may be as fast: the difference is within noise. Of 8 nothing can be said."),
        (["8"], "0 (or 8)", "8 may be as fast: the difference is within noise."),
    ],
)
def test_a_setting_whose_time_is_not_known_is_not_called_as_fast_beside_those_that_are(
    tied: list[str], name: str, told: str
) -> None:
    found = fastest(level="0", factor="loader.workers", tied=tied, left_out=["8"], slower=[])
    assert card(found, several=False).answer == f"loader workers {name}"
    assert card(found, several=False).text.endswith(told)
    sentence = answer_sentence(found)
    assert ("the data do not separate 8 from it" in sentence) is (tied == ["8"])
    assert ("the time of 8 is not determined" in sentence) is (tied != ["8"])


def test_the_main_chart_has_the_first_published_times_beside_the_settings_that_they_are_of() -> None:
    """The document prints them twice, in a table and in a figure, and of a GPU alone."""
    plan = planned()
    frame = with_reasons(plan.study, table(plan, {run.name: recorded(plan, at) for at, run in enumerate(plan.runs)}))
    analysis = analyse(plan.study, frame)
    groups = level_rows(plan.study, frame, analysis)
    series = beside(plan.study, frame, read_published(), means_of(groups))
    assert [one.table for one in series if one.metric == "fit_time"] == ["table", "figure"]
    chart = main_chart(plan, groups, analysis, series)
    assert chart is not None
    assert re.findall(r"published: ([\d.]+) s", chart.wide) == ["9.44", "10.5", "7.18", "10.5"]
    assert chart.wide.index("GPU, by batch size") < chart.wide.index("published: 9.44 s")
    assert "Diamonds are published times (the blog, the table)." in chart.caption
    reduced = plan.model_copy(update={"study": plan.study.model_copy(update={"full": {"training.epochs": 3}})})
    less = main_chart(reduced, groups, analysis, series)
    assert less is not None
    assert "published" not in less.wide + less.caption


def test_runs_that_the_machine_cannot_make_are_no_failure_and_come_after_what_touches_the_answer() -> None:
    absent = Unsuccessful(outcome="unavailable", message="no GPU", runs=["bs4-cuda-r1"])
    failed = Unsuccessful(outcome="failed", message="planted", runs=["bs4-cpu-r1"])
    spread = WideSpread(limit=0.1, spreads={"4": 0.2})
    assert [one.what[0].partition(":")[0] for one in ranked([absent, spread, failed])][::2] == ["Failed", "Unavailable"]
    assert ranked([absent])[0].effect == "Nothing is said about these settings."
