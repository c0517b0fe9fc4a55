"""What the page's charts and cards say of the numbers that they show."""

import re

import pytest

from study.analysis.figures.marks import Dot, Row
from study.analysis.figures.rows import Group, RowsChart, rows_chart
from study.analysis.figures.svg import Chart
from study.analysis.report.drawings import main_chart, pairs_chart
from study.analysis.rows import level_rows
from study.analysis.table.files import read_timings
from study.artifacts.plan import Plan
from tests.conftest import tiny_plan
from tests.examples import with_analysis
from tests.timings import table
from tests.unit.analysis.planted import analysis_of
from tests.unit.analysis.test_golden_page import planned, recorded
from tests.unit.artifacts.test_records import make_record

NAMES = (
    "16",
    "channels_last + cuda graph + fused",
    "bf16 + channels_last + cuda graph + fused + device",
    "folder/" + "letters" * 12 + "/one",
    "folder/" + "letters" * 12 + "/two",
)
WAY = "GPU, torch, channels_last, cuda graph, fused, device"


def present(chart: Chart | None) -> Chart:
    assert chart is not None
    return chart


def chart_of(*rows: Row, name: str = "", **changes: object) -> Chart:
    return present(rows_chart(RowsChart((Group(rows, name),), "Every run", **changes)))  # type: ignore[arg-type]


def texts(drawing: str) -> list[tuple[str, float, float]]:
    """What a reader sees of each text, with its place."""
    found = re.findall(r'<text x="([^"]*)" y="([^"]*)">([^<]*)</text>', drawing)
    return [(told, float(x), float(y)) for x, y, told in found]


def places(drawing: str, kind: str) -> list[float]:
    """The middle of each mark of a kind, from left to right."""
    groups = re.findall(rf'<g class="mark {kind}"[^>]*>(.*?)</g>', drawing)
    found = [re.findall(r'(?:cx="|d="M)([\d.]+)', shape) for shape in "".join(groups).split("/>")]
    return sorted(float(x[0]) for x in found if x)


def seconds(drawing: str, kind: str) -> list[float]:
    """Where the marks of a kind lie on the linear axis, by its two first numbers."""
    axis = [
        (float(told.split()[0]), x)
        for told, x, _ in texts(drawing)
        if re.fullmatch(r"[\d.,]+( s)?", told)
    ]
    (low, left), (high, right) = sorted(axis)[:2]
    return [low + (x - left) * (high - low) / (right - left) for x in places(drawing, kind)]


def test_every_run_is_a_dot_at_its_time_that_links_to_its_row() -> None:
    dots = tuple(Dot(value, f"tiny/r{place}") for place, value in enumerate((2.0, 3.0, 3.001, 5.0)))
    chart = chart_of(Row("16", dots, mean=3.1, low=2.5, high=4.0))
    for drawing in (chart.wide, chart.narrow):
        assert seconds(drawing, "other") == pytest.approx([2, 3, 3, 5], abs=0.06)
        assert re.findall('<a href="#run-tiny/([^"]*)"', drawing) == [
            f"r{place}" for place in range(4)
        ]
        heights = {float(y) for y in re.findall('cy="([^"]*)"', drawing)}
        assert len(heights) == 2  # two that would lie on each other lie above each other
    assert [told for _, told in chart.key] == ["one run", "mean, 95% interval"]


def test_what_was_excluded_is_a_cross_with_its_value_and_moves_no_axis() -> None:
    dots = (
        Dot(2.0),
        Dot(2.2),
        Dot(0.8, "tiny/near", aside=True),
        Dot(68.0, "tiny/far", aside=True),
    )
    chart = chart_of(Row("16", dots, mean=2.1, low=1.9, high=2.3), Row("32", (Dot(2.8),), mean=2.8))
    told = [text for text, _, _ in texts(chart.wide)]
    assert {"0.800 s, excluded", "68.0 s, excluded"} <= set(told)
    assert chart.wide.count('class="mark beyond ink"') == 1
    assert set(re.findall('aria-label="(near|far)"', chart.wide)) == {"near", "far"}
    assert max(places(chart.wide, "aside")) < max(places(chart.wide, "beyond ink")) < 736
    assert "excluded, in no number" in dict(chart.key).values()


def test_what_is_out_of_the_ranking_is_hollow_dashed_and_grey_and_a_failed_row_has_its_cause() -> (
    None
):
    chart = chart_of(
        Row("16", (Dot(2.0),), 2.0, 1.0, 3.0, "out", "60% accurate"),
        Row("32", cause="out of memory"),
    )
    hollow = '<g class="mark out" fill="var(--bg)" stroke="var(--out)"'
    assert hollow in chart.wide and "stroke-dasharray" in chart.wide
    assert "out of memory" in [told for told, _, _ in texts(chart.narrow)]
    assert "out of the ranking" in dict(chart.key).values()


@pytest.mark.parametrize("names", [NAMES, NAMES[:3], NAMES[:1]])
def test_every_row_and_every_group_has_its_whole_name_and_no_line_lies_on_another(
    names: tuple[str, ...],
) -> None:
    """Rows whose names begin alike would else read alike."""
    rows = [Row(name, (Dot(2.0),), 2.0, verdict="60% accurate") for name in names]
    chart = chart_of(*rows, name=WAY)
    for drawing in (chart.wide, chart.narrow):
        seen = re.sub(r"\s", "", "".join(told for told, _, _ in texts(drawing)))
        assert all(re.sub(r"\s", "", name) in seen for name in (*names, WAY))
        starts = [(x, y) for _, x, y in texts(drawing)]
        assert len(starts) == len(set(starts))


def test_a_drawing_has_no_id_its_letters_are_text_and_its_colours_the_pages() -> None:
    chart = chart_of(Row("<b>&", (Dot(2.0, "tiny/r1"),), 2.0, 1.0, 3.0, "answer"))
    assert " id=" not in chart.wide + chart.narrow
    assert "&lt;b&gt;&amp;" in chart.wide
    assert 'role="group" aria-label="Every run"' in chart.wide  # what an image holds is no link
    assert 'role="img"' in chart_of(Row("16", (Dot(2.0),), 2.0)).wide
    assert not re.findall("#[0-9a-f]{6}", chart.wide.replace("#run", ""))
    assert chart.wide == chart_of(Row("<b>&", (Dot(2.0, "tiny/r1"),), 2.0, 1.0, 3.0, "answer")).wide


@pytest.mark.parametrize(("claimed", "kind"), [(14.9, "claim"), (15.1, "beyond contra")])
def test_a_claim_up_to_half_above_the_longest_time_is_a_diamond_in_its_place(
    claimed: float, kind: str
) -> None:
    wide = chart_of(Row("16", (Dot(10.0),), 10.0, claimed=claimed)).wide
    assert len(places(wide, kind)) == 1


def test_the_main_chart_has_a_diamond_where_a_claim_puts_a_setting() -> None:
    """The claim says what four sizes reach on a GPU, so the CPU's rows have none."""
    plan = planned()
    frame = table(plan, {run.name: recorded(plan, at) for at, run in enumerate(plan.runs)})
    for full, diamonds in (({}, 4), ({"training.epochs": 3}, 0)):
        study = plan.study.model_copy(update={"full": full})
        analysis = analysis_of(study, frame)
        chart = main_chart(plan, level_rows(study, frame, analysis.groups), analysis)
        assert chart is not None
        assert (
            len(places(chart.wide, "claim")) + len(places(chart.wide, "beyond contra")) == diamonds
        )


@pytest.mark.xdist_group("the example")
def test_only_the_fastest_way_has_the_colour_of_the_answer_where_the_others_are_slower() -> None:
    study = with_analysis("photographs") / "photographs"
    plan = Plan.read(study / "plan.json")
    frame = read_timings(study / "timings.csv", plan)
    analysis = analysis_of(plan.study, frame)
    chart = present(main_chart(plan, level_rows(plan.study, frame, analysis.groups), analysis))
    assert len(places(chart.wide, "answer")) == (frame["training.cuda_graph"] == "cuda graph").sum()


def test_the_two_sides_of_a_switch_are_drawn_as_a_pair() -> None:
    """Tables show a switch that is on by its name, and its setting holds True."""
    switch = "training.drop_last"
    plan = tiny_plan(factors={switch: [False, True]}, contrast=switch, curve=None, replicates=3)
    times = {True: 1.0, False: 2.0}
    records = {
        run.name: make_record(
            plan, at, fit_seconds=times[run.settings.training.drop_last] + 0.01 * (at % 3)
        )
        for at, run in enumerate(plan.runs)
    }
    frame = table(plan, records)
    analysis = analysis_of(plan.study, frame)
    chart = present(pairs_chart(plan, level_rows(plan.study, frame, analysis.groups), analysis))
    assert {"Last batch kept", "Last batch dropped"} <= {told for told, _, _ in texts(chart.wide)}
