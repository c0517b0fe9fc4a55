"""What the page's charts and cards say of the numbers that they show."""

import re

import numpy as np
import pytest

from study.analysis.analysis import analyse
from study.analysis.charts.phases import Bar, Bars, legend_sign, phases_chart
from study.analysis.charts.ratios import Measured, ratios_chart
from study.analysis.charts.svg import Chart, linear
from study.analysis.charts.times import Panel, Row, times_chart
from study.analysis.published.beside import beside
from study.analysis.report.drawings import main_chart
from study.analysis.rows import level_rows, means_of
from study.analysis.stats.findings import OfSetting, Unsuccessful, WideSpread
from study.analysis.stats.usable import with_reasons
from study.analysis.table.rows import table
from study.analysis.wording.answer import answer_sentence
from study.analysis.wording.cards import card, limit_card
from study.analysis.wording.consequences import ranked
from tests.unit.analysis.planted import setting
from tests.unit.analysis.test_golden_page import fastest, planned, recorded


@pytest.mark.parametrize("width", [120, 160, 320, 640])
def test_an_axis_has_two_numbers_at_least_and_room_for_each(width: int) -> None:
    for highest in np.geomspace(0.01, 9000, 200):
        ticks = linear([highest], 0, width).ticks()
        assert 2 <= len(ticks) <= 1 + width / 25
        assert ticks[0] == 0


NAMES = (
    "16",
    "channels_last + cuda graph + fused",
    "channels_last + cuda graph + fused + device",
    "bf16 + channels_last + cuda graph + fused + device",
    "folder/" + "letters" * 12 + "/one",
    "folder/" + "letters" * 12 + "/two",
)
TITLE = "GPU, torch, channels_last, cuda graph, fused, device, by batch size"


def times_of(names: tuple[str, ...], best: str = "", doubtful: str = "") -> Chart:
    rows = tuple(Row(name, "85% accurate", name == doubtful, name == best, (), 2.0, 1.0, 3.0) for name in names)
    return present(times_chart([Panel(TITLE, rows)], "Every run", ""))


def parts_of(names: tuple[str, ...], title: str = TITLE) -> Chart:
    bars = tuple(Bar(name, {"forward_seconds": 1.0}) for name in names)
    return present(phases_chart([Bars(title, bars)], "Where the time goes", ""))


def ratios_of(names: tuple[str, ...], claimed: float | None = None) -> Chart:
    return present(ratios_chart([Measured(name, 1.5, 1.2, 2.0) for name in names], claimed, "The ratios", ""))


def present(chart: Chart | None) -> Chart:
    assert chart is not None
    return chart


def texts(drawing: str) -> list[str]:
    """What a reader sees of each text, its spaces left out: a long word goes on in the next line."""
    seen = re.findall("<text.*?</text>", drawing)
    return [re.sub(r"<[^>]*>|\s", "", text) for text in seen]


@pytest.mark.parametrize("names", [NAMES, NAMES[:4], NAMES[:1]])
def test_every_row_of_a_chart_and_every_panel_has_its_whole_name(names: tuple[str, ...]) -> None:
    """Three rows whose names begin alike would else read alike."""
    for chart in (times_of(names), parts_of(names), ratios_of(names)):
        for drawing in (chart.wide, chart.narrow):
            assert [text for text in texts(drawing) if text in {re.sub(r"\s", "", name) for name in names}] == [
                re.sub(r"\s", "", name) for name in names
            ]
            if chart.title != "The ratios":
                assert re.sub(r"\s", "", TITLE) in texts(drawing)
    assert times_of(NAMES[:1]).wide.count("<tspan") == 0  # a name that has room stands in one line


def test_no_line_of_a_name_lies_on_one_of_another() -> None:
    for chart in (times_of(NAMES[:4]), parts_of(NAMES[:4]), ratios_of(NAMES[:4])):
        for drawing in (chart.wide, chart.narrow):
            further = [float(y) for y in re.findall('<tspan[^>]* y="([^"]*)"', drawing)]
            assert further
            assert further == sorted(set(further))


def test_the_ratio_one_has_a_line_of_its_own() -> None:
    chart = ratios_of(NAMES[:2])
    for drawing in (chart.wide, chart.narrow):
        (x,) = re.findall('<line x1="([^"]*)"[^>]*class="one"', drawing)
        assert f'<line x1="{x}" x2="{x}"' in drawing.partition('class="one"')[0]  # on the line of the axis


def test_a_chart_without_a_title_or_a_claim_has_no_empty_band_above() -> None:
    for chart in (parts_of(NAMES[:1], title=""), ratios_of(NAMES[:1])):
        for drawing in (chart.wide, chart.narrow):
            assert min(float(y) for y in re.findall('y1="([^"]*)"', drawing)) <= 12
    assert "claimed: 1.5" in re.sub("<[^>]*>", "", ratios_of(NAMES[:1], claimed=1.5).wide)


def test_the_legend_names_the_colours_of_the_means_that_are_there() -> None:
    assert list(times_of(("a", "b")).series) == ["mean"]
    assert list(times_of(("a", "b"), best="a").series) == ["mean", "best"]
    assert list(times_of(("a", "b"), best="a", doubtful="b").series) == ["mean", "best", "doubt"]
    assert all(f'class="mean {tone}"' in legend_sign(tone) for tone in ("best", "doubt"))


def test_a_part_that_takes_no_time_is_not_named_as_one_that_takes_some() -> None:
    card = limit_card("batch size 256", {"computing": 0.953, "validation": 0.045, "the rest": 0.002})
    assert card.text == "Batch size 256: computing 95%, validation 4%."


@pytest.mark.parametrize(
    ("tied", "name", "told"),
    [
        (["2", "8"], "0 (or 2)", "2 may be as fast: the difference is within noise. The time of 8 is not determined."),
        (["8"], "0 (or 8)", "8 may be as fast: the difference is within noise."),
    ],
)
def test_a_setting_whose_time_is_not_known_is_not_called_as_fast_beside_those_that_are(
    tied: list[str], name: str, told: str
) -> None:
    found = fastest(level=setting(workers=0), factor="loader.workers", tied=tied, left_out=["8"], slower=[])
    assert card(found, {}).answer == f"loader workers {name}"
    assert card(found, {}).text.endswith(told)
    sentence = answer_sentence(found)
    assert ("the data do not separate 8 from it" in sentence) is (tied == ["8"])
    assert ("the time of 8 is not determined" in sentence) is (tied != ["8"])


def test_the_main_chart_has_the_first_published_times_beside_the_settings_that_they_are_of() -> None:
    """The document prints them twice, in a table and in a figure, and of a GPU alone."""
    plan = planned()
    frame = with_reasons(plan.study, table(plan, {run.name: recorded(plan, at) for at, run in enumerate(plan.runs)}))
    analysis = analyse(plan.study, frame)
    groups = level_rows(plan.study, frame, analysis)
    assert plan.beside is not None
    series = beside(plan.study, frame, plan.beside, means_of(groups))
    assert [one.table for one in series if one.metric == "fit_time"] == ["table", "figure"]
    chart = main_chart(plan, groups, analysis, series)
    assert chart is not None
    _, ours, gpu = re.split("CPU, by batch size|GPU, by batch size", chart.wide)
    assert "diamond" not in ours
    least, *others = sorted(float(x) for x in re.findall(r'd="M([\d.]+) [^"]*" class="mark diamond"', gpu))
    ticks = {float(told): float(x) for x, told in re.findall(r'<text x="([\d.]+)"[^>]*small soft[^>]*>([\d.]+)', gpu)}
    (low, high) = sorted(ticks)[:2]
    seconds = [low + (x - ticks[low]) * (high - low) / (ticks[high] - ticks[low]) for x in (least, *others)]
    assert seconds == pytest.approx([7.18, 9.44, 10.5, 10.52], abs=0.1)
    assert "Diamonds are published times (the blog, the table)." in chart.caption
    reduced = plan.model_copy(update={"study": plan.study.model_copy(update={"full": {"training.epochs": 3}})})
    less = main_chart(reduced, groups, analysis, series)
    assert less is not None
    assert "published" not in less.wide + less.caption


def test_runs_that_the_machine_cannot_make_are_no_failure_and_come_after_what_touches_the_answer() -> None:
    absent = Unsuccessful(outcome="unavailable", message="no GPU", runs=["bs4-cuda-r1"])
    failed = Unsuccessful(outcome="failed", message="planted", runs=["bs4-cpu-r1"])
    spread = WideSpread(limit=0.1, spreads=[OfSetting(setting=setting(size=4), value=0.2)])
    assert [one.what[0].partition(":")[0] for one in ranked([absent, spread, failed])][::2] == ["Failed", "Unavailable"]
    assert ranked([absent])[0].effect == "Nothing is said about these settings."
