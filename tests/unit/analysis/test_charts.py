"""What the page's charts and cards say of the numbers that they show."""

import re

import pytest

from study.analysis.figures.rows import Dot, Row, RowGroup, RowsChart, rows_chart
from study.analysis.figures.settings import main_chart, pairs_chart, rows_of
from study.analysis.figures.style import Chart, Kept
from study.analysis.stats.estimate import Estimate
from study.analysis.table.tables import read_timings
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
BOUNDED, BARE = Estimate(value=2.0, low=1.0, high=3.0), Estimate(value=2.0)
WAY = "GPU, torch, channels_last, cuda graph, fused, device"


def present(chart: Chart | None) -> Chart:
    assert chart is not None
    return chart


def kept(chart: Chart | None) -> Kept:
    return present(chart).kept("chart", present(chart).figure)


def chart_of(*rows: Row, name: str = "", **changes: object) -> Kept:
    return kept(rows_chart(RowsChart((RowGroup(rows, name),), "Every run", **changes)))  # type: ignore[arg-type]


def texts(drawing: str) -> list[tuple[str, float, float]]:
    """What a reader sees of each text, with its place."""
    found = re.findall(r'<text x="([^"]*)" y="([^"]*)"[^>]*>([^<]*)</text>', drawing)
    return [(told, float(x), float(y)) for x, y, told in found]


def places(drawing: str, kind: str) -> list[float]:
    """The middle of each mark of a kind, from left to right."""
    groups = re.findall(rf'<g class="mark {kind}"[^>]*>(.*?)</g>', drawing)
    found = re.findall(r'(?:<path [^>]*translate\(|<path d="M )([\d.]+)', "".join(groups))
    return sorted(map(float, found))


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
    dots = tuple(
        Dot(value, f"#run-tiny/r{place}") for place, value in enumerate((2.0, 3.0, 3.001, 5.0))
    )
    chart = chart_of(Row("16", dots, Estimate(value=3.1, low=2.5, high=4.0)))
    for drawing in (chart.wide, chart.narrow):
        assert seconds(drawing, "other") == pytest.approx([2, 3, 3, 5], abs=0.06)
        assert re.findall('<a href="#run-tiny/([^"]*)"', drawing) == [
            f"r{place}" for place in range(4)
        ]
        heights = set(re.findall(r'<path [^>]*y="([\d.]+)" fill="var\(--other', drawing))
        assert len(heights) > 1  # two that would lie on each other lie above each other
    assert [told for _, told in chart.key] == ["one run", "mean, 95% interval"]
    assert [sign.count("<svg") for sign, _ in chart.key] == [1, 1]


def test_what_was_excluded_is_a_cross_that_moves_no_axis() -> None:
    dots = (
        Dot(2.0),
        Dot(2.2),
        Dot(0.8, "#run-tiny/near", excluded=True),
        Dot(68.0, "#run-tiny/far", excluded=True),
    )
    chart = chart_of(
        Row("16", dots, Estimate(value=2.1, low=1.9, high=2.3)),
        Row("32", (Dot(2.8),), Estimate(value=2.8)),
    )
    assert len(places(chart.wide, "beyond ink")) == 1
    assert set(re.findall('aria-label="(near|far)"', chart.wide)) == {"near", "far"}
    assert max(places(chart.wide, "excluded")) <= max(places(chart.wide, "beyond ink")) < 736
    assert "excluded" in dict(chart.key).values()


def test_what_is_out_of_the_ranking_is_hollow_dashed_and_grey_and_a_failed_row_has_its_cause() -> (
    None
):
    chart = chart_of(
        Row("16", (Dot(2.0),), BOUNDED, "out", accuracy="60% accurate"),
        Row("32", verdict="out of memory"),
    )
    hollow = 'fill="var(--bg)" stroke="var(--out)"'
    assert hollow in chart.wide and "stroke-dasharray" in chart.wide
    assert "out of memory" in [told for told, _, _ in texts(chart.narrow)]
    assert "did not learn as well" in dict(chart.key).values()


@pytest.mark.parametrize("names", [NAMES, NAMES[:3], NAMES[:1]])
def test_every_row_and_every_group_has_its_whole_name_and_no_line_lies_on_another(
    names: tuple[str, ...],
) -> None:
    """Rows whose names begin alike would else read alike."""
    rows = [Row(name, (Dot(2.0),), BARE, verdict="60% accurate") for name in names]
    chart = chart_of(*rows, name=WAY)
    for drawing in (chart.wide, chart.narrow):
        seen = re.sub(r"\s", "", "".join(told for told, _, _ in texts(drawing)))
        assert all(re.sub(r"\s", "", name) in seen for name in (*names, WAY))
        starts = [(x, y) for _, x, y in texts(drawing)]
        assert len(starts) == len(set(starts))


def test_the_letters_of_a_drawing_are_text_and_its_colours_the_pages() -> None:
    chart = chart_of(Row("<b>&", (Dot(2.0, "#run-tiny/r1"),), BOUNDED, "answer"))
    assert "style=" not in chart.wide + chart.narrow  # the page's policy refuses it
    assert "&lt;b&gt;&amp;" in chart.wide
    assert 'role="group" aria-label="Every run"' in chart.wide  # what an image holds is no link
    assert 'role="img"' in chart_of(Row("16", (Dot(2.0),), BARE)).wide
    assert not re.findall("#[0-9a-f]{6}", chart.wide.replace("#run", ""))
    assert chart.wide == chart_of(Row("<b>&", (Dot(2.0, "#run-tiny/r1"),), BOUNDED, "answer")).wide


@pytest.mark.parametrize(("claimed", "kind"), [(14.9, "claim"), (15.1, "beyond contra")])
def test_a_claim_up_to_half_above_the_longest_time_is_a_diamond_in_its_place(
    claimed: float, kind: str
) -> None:
    wide = chart_of(Row("16", (Dot(10.0),), Estimate(value=10.0), claimed=claimed)).wide
    assert len(places(wide, kind)) == 1


def test_the_main_chart_has_a_diamond_where_a_claim_puts_a_setting() -> None:
    """The claim says what four sizes reach on a GPU, so the CPU's rows have none."""
    plan = planned()
    frame = table(plan, {run.name: recorded(plan, at) for at, run in enumerate(plan.runs)})
    for full, diamonds in (({}, 4), ({"training.epochs": 3}, 0)):
        study = plan.study.model_copy(update={"full": full})
        analysis = analysis_of(study, frame)
        chart = kept(main_chart(plan, rows_of(plan, frame, analysis), analysis))
        assert (
            len(places(chart.wide, "claim")) + len(places(chart.wide, "beyond contra")) == diamonds
        )


@pytest.mark.xdist_group("the example")
def test_only_the_fastest_way_has_the_colour_of_the_answer_where_the_others_are_slower() -> None:
    study = with_analysis("photographs") / "photographs"
    plan = Plan.read(study / "plan.json")
    frame = read_timings(study / "timings.csv", plan)
    analysis = analysis_of(plan.study, frame)
    chart = kept(main_chart(plan, rows_of(plan, frame, analysis), analysis))
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
    chart = kept(pairs_chart(plan, rows_of(plan, frame, analysis), analysis))
    assert {"Last batch kept", "Last batch dropped"} <= {told for told, _, _ in texts(chart.wide)}
