import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.text import Text

from study.analysis.analysis import analyse
from study.analysis.charts.phases import PIECES
from study.analysis.figures import memory, phases
from study.analysis.figures.style import Drawn, use_style
from study.analysis.report.drawings import phases_chart
from study.analysis.rows import level_rows
from study.artifacts.plan import Plan
from study.config.study import shown
from tests.conftest import tiny_plan
from tests.timings import as_timings

GIB = 2**30
LOOPS = {"device": ["cpu", "cuda"], "training.loop": ["torch", "fastai"], "training.batch_size": [4, 8]}
SECONDS = {
    "data_wait_seconds": 4.0,
    "transfer_seconds": 0.5,
    "device_transform_seconds": 0.25,
    "forward_seconds": 1.0,
    "backward_seconds": 2.0,
    "optimizer_seconds": 0.25,
    "other_seconds": 0.5,
    "valid_seconds": 1.5,
}
BYTES = {
    "peak_device_allocated_bytes": 1.0 * GIB,
    "peak_device_reserved_bytes": 1.5 * GIB,
    "peak_device_used_bytes": 2.0 * GIB,
    "peak_host_resident_bytes": 3.0 * GIB,
    "peak_tree_resident_bytes": 5.0 * GIB,
}


def plan_of(**changes: Any) -> Plan:
    """A plan that both loops and any batch size are allowed in."""
    training = {"freeze_epochs": 0, "batch_size": 4, "drop_last": False}
    return tiny_plan(loader={"kind": "workers"}, training=training, **changes)


def frame_of(plan: Plan, **columns: Any) -> pd.DataFrame:
    """A row for each setting of the plan and each of two blocks, with the planted columns of both figures."""
    factors = plan.study.factors
    rows: list[dict[str, Any]] = []
    for block, levels in product((1, 2), product(*factors.values())):
        row = {"device": "cpu", "outcome": "ok", "session": 1, "block": block, "message": None, "software": "the same"}
        row["run"] = f"run {len(rows)}"
        named = {key: shown(plan.study, key, level) for key, level in zip(factors, levels, strict=True)}
        rows.append(row | named | SECONDS | BYTES)
    frame = as_timings(rows).assign(**columns)
    frame.loc[frame["device"] == "cpu", [name for name in BYTES if "device" in name]] = float("nan")
    return frame.assign(model_seconds=2.5, fit_seconds=frame[list(SECONDS)].sum(axis=1))


def _without(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    return frame.assign(**dict.fromkeys(columns, float("nan")))


def phases_of(plan: Plan, frame: pd.DataFrame) -> Drawn:
    frame = frame.assign(fit_seconds=frame[list(SECONDS)].sum(axis=1))
    drawn = phases.draw(plan, frame, analyse(plan.study, frame))
    assert drawn is not None
    return drawn


def memory_of(plan: Plan, frame: pd.DataFrame) -> Drawn:
    drawn = memory.draw(plan, frame, analyse(plan.study, frame))
    assert drawn is not None
    return drawn


def panels(drawn: Drawn) -> list[Axes]:
    """Those with a title; a place that no panel took has none."""
    return [axes for axes in drawn.figure.axes if axes.get_title()]


def pieces(axes: Axes) -> list[BarContainer]:
    return [container for container in axes.containers if isinstance(container, BarContainer)]


def heights(axes: Axes, bar: int) -> list[float]:
    return [float(piece.patches[bar].get_height()) for piece in pieces(axes)]


def numbers(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def xdata(line: Line2D) -> list[float]:
    return [float(x) for x in np.asarray(line.get_xdata())]


def ydata(line: Line2D) -> list[float]:
    return [float(y) for y in np.asarray(line.get_ydata())]


def test_the_pieces_of_a_bar_stand_on_each_other_and_add_up_to_the_mean_of_the_tables() -> None:
    plan = plan_of()
    frame = frame_of(plan)
    frame.loc[(frame["block"] == 2) & (frame["training.batch_size"] == 4), "data_wait_seconds"] = 8.0
    (axes,) = panels(phases_of(plan, frame))
    geometric = (10 * 14) ** 0.5
    assert heights(axes, 0) == pytest.approx([geometric / 24 * part for part in (12, 1, 0.5, 2, 4, 0.5, 1, 3)])
    assert [sum(heights(axes, bar)) for bar in (0, 1)] == pytest.approx([geometric, 10])
    for below, above in zip(pieces(axes), pieces(axes)[1:], strict=False):
        assert above.patches[0].get_y() == pytest.approx(below.patches[0].get_y() + below.patches[0].get_height())
    assert numbers(axes) == ["11.8 s", "50%", "10.0 s", "40%"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["4", "8"]


@pytest.mark.parametrize(
    ("time", "shares"),
    [
        ("blog_seconds", {"building the model": 20, "waiting for data": 32, "other": 4, "validation": 12}),
        ("train_seconds", {"waiting for data": 48, "other": 4}),
    ],
)
def test_a_time_with_the_model_or_without_validation_has_its_own_parts_as_on_the_page(
    time: str, shares: dict[str, float]
) -> None:
    curve = {"x": "training.batch_size", "y": time}
    plan = plan_of(curve=curve)
    frame = frame_of(plan).assign(blog_seconds=12.5, train_seconds=8.0 + 1 / 3)
    analysis = analyse(plan.study, frame)
    drawn = phases.draw(plan, frame, analysis)
    assert drawn is not None
    (axes,) = panels(drawn)
    found = {str(piece.get_label()): 100 * piece.patches[0].get_height() for piece in pieces(axes)}
    mean = analysis.groups[0].levels[0].time
    assert mean is not None
    assert sum(found.values()) == pytest.approx(100 * mean.value)
    told = {label: seconds / mean.value for label, seconds in found.items()}
    assert {label: told[label] for label in shares} == pytest.approx(shares)
    assert ("validation" in told) is (time == "blog_seconds")
    chart = phases_chart(level_rows(plan.study, frame, analysis), analysis)
    assert chart is not None
    bar = re.findall(r'width="([\d.]+)" height="16" class="mark piece (\w+)"', chart.wide)[: len(found)]
    wide = {PIECES[f"{name}_seconds"]: float(width) for width, name in bar}
    on_page = {label: 100 * wide[label] / sum(wide.values()) for label in shares}
    assert on_page == pytest.approx(shares, abs=0.1)


def test_a_time_that_is_no_sum_of_parts_has_no_such_picture() -> None:
    plan = plan_of(curve={"x": "training.batch_size", "y": "step_seconds"})
    frame = frame_of(plan).assign(step_seconds=1.0)
    assert phases.draw(plan, frame, analyse(plan.study, frame)) is None


def test_the_legend_is_in_the_order_of_the_stack_without_a_part_that_takes_no_time() -> None:
    (legend,) = phases_of(plan_of(), frame_of(plan_of())).figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    parts = [piece.label for part, piece in phases.PIECES.items() if part != "graph_warm_up_seconds"]
    assert labels == parts[:0:-1]
    assert (labels[0], labels[-1]) == ("validation", "waiting for data")


def test_each_piece_can_be_told_from_its_neighbours_and_from_every_other_in_grey() -> None:
    kinds = list(phases.PIECES.values())
    greys = [_grey(piece.colour) for piece in kinds]
    for index, piece in enumerate(kinds):
        for other in range(index + 1, len(kinds)):
            assert abs(greys[index] - greys[other]) > 0.12 or piece.hatch != kinds[other].hatch
    assert len({piece.hatch for piece in kinds}) == 7


def _grey(colour: str) -> float:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue


def test_every_group_has_a_panel_with_a_scale_of_its_own() -> None:
    plan = plan_of(factors=LOOPS)
    frame = frame_of(plan)
    frame.loc[frame["device"] == "cpu", list(SECONDS)] *= 20
    drawn = phases_of(plan, frame)
    assert [axes.get_title() for axes in panels(drawn)] == ["CPU, torch", "CPU, fastai", "GPU, torch", "GPU, fastai"]
    tops = [axes.get_ylim()[1] for axes in panels(drawn)]
    assert tops[0] == pytest.approx(20 * tops[2], rel=0.1)
    assert "CUDA events" in drawn.caption
    assert "CUDA events" not in phases_of(plan_of(), frame_of(plan_of())).caption


def test_the_text_for_those_who_cannot_see_gives_the_main_share_and_that_of_waiting() -> None:
    plan = plan_of(factors={"device": ["cpu", "cuda"], "training.batch_size": [4, 8]})
    frame = frame_of(plan)
    cuda = frame["device"] == "cuda"
    frame.loc[cuda, ["data_wait_seconds", "backward_seconds"]] = [0.0, 6.0]
    frame.loc[cuda & (frame["training.batch_size"] == 8), ["data_wait_seconds", "backward_seconds"]] = [1.0, 5.0]
    alt = phases_of(plan, frame).alt
    assert "cpu: the largest part is waiting for data, 40%." in alt
    assert "cuda: the largest part is backward, 50% to 60%; waiting for data is 0% to 10%." in alt


def test_a_share_of_waiting_is_left_out_where_it_is_small_or_has_no_room() -> None:
    plan = plan_of(factors={"device": ["cpu"], "training.batch_size": [4, 8, 16]})
    frame = frame_of(plan)
    frame.loc[frame["training.batch_size"] == 8, ["data_wait_seconds", "forward_seconds"]] = [0.2, 4.8]
    frame.loc[frame["training.batch_size"] == 16, list(SECONDS)] /= 50  # 40%, of a bar that is a line
    (axes,) = panels(phases_of(plan, frame))
    assert [text for text in numbers(axes) if "%" in text] == ["40%"]


def test_a_share_of_waiting_below_five_percent_is_left_out_even_where_it_has_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(phases, "HEIGHT_POINTS", 5000)
    frame = frame_of(plan_of())
    frame.loc[frame["training.batch_size"] == 4, ["data_wait_seconds", "forward_seconds"]] = [0.5, 4.5]
    frame.loc[frame["training.batch_size"] == 8, ["data_wait_seconds", "forward_seconds"]] = [0.4, 4.6]
    (axes,) = panels(phases_of(plan_of(), frame))
    assert [text for text in numbers(axes) if "%" in text] == ["5%"]


def test_failed_runs_are_in_no_bar() -> None:
    plan = plan_of()
    frame = frame_of(plan)
    frame.loc[frame["block"] == 2, "outcome"] = "failed"
    frame.loc[frame["block"] == 2, "forward_seconds"] = 99.0
    (axes,) = panels(phases_of(plan, frame))
    assert sum(heights(axes, 0)) == pytest.approx(10)


@pytest.mark.parametrize("column", list(SECONDS))
def test_without_one_of_the_phases_there_is_no_figure(column: str) -> None:
    plan = plan_of()
    frame = frame_of(plan)
    analysis = analyse(plan.study, frame)
    assert phases.draw(plan, frame.assign(**{column: float("nan")}), analysis) is None


def test_a_group_without_phases_has_no_panel_and_the_others_have_theirs() -> None:
    plan = plan_of(factors={"device": ["cpu", "cuda"], "training.batch_size": [4, 8]})
    frame = frame_of(plan)
    frame.loc[frame["device"] == "cpu", "forward_seconds"] = float("nan")
    assert [axes.get_title() for axes in panels(phases_of(plan, frame))] == ["GPU"]


def test_a_study_without_a_curve_has_a_bar_a_level_in_the_order_of_its_file() -> None:
    factors = {"device": ["cpu", "cuda"], "training.loop": ["torch", "fastai"], "training.drop_last": [True, False]}
    plan = plan_of(factors=factors, curve=None)
    frame = frame_of(plan).iloc[::-1]
    frame.loc[(frame["training.loop"] == "fastai") & (frame["training.drop_last"] == "drop last"), "other_seconds"] = (
        5.0
    )
    drawn = phases_of(plan, frame)
    assert sorted(axes.get_title() for axes in panels(drawn)) == ["CPU", "GPU"]
    for axes in panels(drawn):
        labels = [label.get_text() for label in axes.get_xticklabels()]
        assert labels == ["torch\ndrop last", "torch\nno drop last", "fastai\ndrop last", "fastai\nno drop last"]
        assert [sum(heights(axes, bar)) for bar in range(4)] == pytest.approx([10, 10, 14.5, 10])


def test_no_two_words_of_the_phases_overlap_or_leave_the_picture() -> None:
    use_style()
    sizes = [2**power for power in range(1, 12)]
    plan = plan_of(factors=LOOPS | {"training.batch_size": sizes})
    frame = frame_of(plan)
    frame[list(SECONDS)] = frame[list(SECONDS)].mul(1234 / frame["training.batch_size"], axis=0)
    drawn = phases_of(plan, frame)
    assert_legible(drawn)


def test_more_settings_than_can_stand_side_by_side_lie_below_each_other() -> None:
    use_style()
    switches: dict[str, Any] = {
        "training.precision": ["auto", "bf16"],
        "training.memory_format": ["contiguous", "channels_last"],
        "training.optimizer_implementation": ["auto", "fused"],
        "training.batch_size": [4, 8],
    }
    plan = plan_of(factors={"device": ["cpu"]} | switches, curve=None)
    drawn = phases_of(plan, frame_of(plan))
    (axes,) = panels(drawn)
    assert len(axes.get_yticklabels()) == 16
    bars = [bar for pieces in axes.containers for bar in pieces]
    assert max(bar.get_x() + bar.get_width() for bar in bars) == pytest.approx(10)
    assert_legible(drawn)


def test_no_two_words_of_the_memory_overlap_or_leave_the_picture() -> None:
    use_style()
    plan = plan_of(factors=LOOPS | {"loader.workers": [0, 4], "training.batch_size": [2**power for power in range(12)]})
    frame = frame_of(plan)
    frame.loc[frame["training.batch_size"] == 2048, "outcome"] = "out_of_memory"
    assert_legible(memory_of(plan, frame))


def _named(ticks: list[Text]) -> list[Text]:
    """The words of an axis: numbers beyond its end are not shown."""
    return [tick for tick in ticks if not re.fullmatch(r"[\d.]*", tick.get_text())]


def assert_legible(drawn: Drawn) -> None:
    drawn.figure.draw_without_rendering()  # lays it out
    words: list[Text] = []
    for axes in panels(drawn):
        words += [
            *axes.texts,
            *axes.get_xticklabels(),
            *_named(axes.get_yticklabels()),
            axes.title,
            axes.xaxis.label,
            axes.yaxis.label,
        ]
        words += legend.get_texts() if (legend := axes.get_legend()) else []
    words += [text for legend in drawn.figure.legends for text in legend.get_texts()]
    boxes = [text.get_window_extent() for text in words]
    whole = drawn.figure.bbox
    for index, box in enumerate(boxes):
        assert whole.x0 <= box.x0 < box.x1 <= whole.x1, words[index].get_text()
        assert whole.y0 <= box.y0 < box.y1 <= whole.y1, words[index].get_text()
        assert not any(box.overlaps(other) for other in boxes[index + 1 :]), words[index].get_text()


def test_memory_has_a_panel_for_the_device_and_one_for_each_host() -> None:
    plan = plan_of(factors={"device": ["cpu", "cuda"], "training.batch_size": [4, 8]})
    drawn = memory_of(plan, frame_of(plan))
    titles = ["CPU: memory of the host", "GPU: memory of the device", "GPU: memory of the host"]
    assert [axes.get_title() for axes in panels(drawn)] == titles
    assert [len(axes.get_lines()) for axes in panels(drawn)] == [1, 3, 1]
    assert all(axes.get_ylim()[0] == 0 for axes in panels(drawn))
    assert len(panels(memory_of(plan_of(), frame_of(plan_of())))) == 1


def test_memory_is_the_median_over_successful_runs_in_gib() -> None:
    plan = plan_of()
    frame = frame_of(plan)
    frame.loc[(frame["block"] == 2) & (frame["training.batch_size"] == 8), "peak_host_resident_bytes"] = 4.0 * GIB
    frame.loc[(frame["block"] == 2) & (frame["training.batch_size"] == 4), "outcome"] = "failed"
    frame.loc[frame["outcome"] == "failed", "peak_host_resident_bytes"] = 99.0 * GIB
    drawn = memory_of(plan, frame)
    (process,) = panels(drawn)[0].get_lines()  # none of a sum that counts shared pages once in each worker
    assert xdata(process) == [4, 8]
    assert ydata(process) == [3.0, 3.5]
    assert "training process, without the loader's workers 3.00 GiB to 3.50 GiB" in drawn.alt


def test_memory_draws_a_line_for_each_level_of_the_other_factor() -> None:
    drawn = memory_of(plan_of(factors=LOOPS), frame_of(plan_of(factors=LOOPS)))
    lines = panels(drawn)[1].get_lines()
    labels = [str(line.get_label()).replace("\n", " ") for line in lines]
    assert labels[:2] == ["torch: allocated by tensors", "torch: reserved by torch"]
    assert labels[3] == "fastai: allocated by tensors"
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 6
    assert len({(line.get_marker(), line.get_linestyle()) for line in lines}) == 6


def test_a_line_of_a_level_that_is_a_number_says_of_what() -> None:
    plan = plan_of(factors={"device": ["cpu"], "loader.workers": [0, 2], "training.batch_size": [4, 8]})
    labels = [str(line.get_label()) for line in panels(memory_of(plan, frame_of(plan)))[0].get_lines()]
    assert [label.replace("\n", " ").partition(",")[0] for label in labels] == [
        "loader workers 0: training process",
        "loader workers 2: training process",
    ]


def test_levels_out_of_memory_are_crossed_above_every_line_and_named_once() -> None:
    plan = plan_of(factors={"device": ["cuda"], "training.batch_size": [4, 8, 16, 32]})
    frame = frame_of(plan)
    lost = frame["training.batch_size"] >= 16
    frame.loc[lost, "outcome"] = "out_of_memory"
    frame.loc[lost, list(BYTES) + list(SECONDS)] = float("nan")
    drawn = memory_of(plan, frame)
    for axes in panels(drawn):
        (crosses,) = [line for line in axes.get_lines() if line.get_marker() == "x"]
        assert crosses.get_label() == "out of memory"
        assert xdata(crosses) == [16, 32]
        assert [label.get_text() for label in axes.get_xticklabels()] == ["4", "8", "16", "32"]
        highest = max(y for line in axes.get_lines() if line is not crosses for y in ydata(line))
        assert highest / axes.get_ylim()[1] < 0.9 < min(ydata(crosses))
    assert drawn.alt.count("out of memory at 16, 32") == 2
    assert "cross" in drawn.caption


def test_without_a_failure_nothing_speaks_of_one() -> None:
    drawn = memory_of(plan_of(), frame_of(plan_of()))
    assert "out of memory" not in drawn.alt + drawn.caption
    assert not any(line.get_marker() == "x" for line in panels(drawn)[0].get_lines())


def test_quantities_that_were_not_measured_are_left_out_of_the_memory() -> None:
    plan = plan_of(factors={"device": ["cuda"], "training.batch_size": [4, 8]})
    frame = frame_of(plan)
    drawn = memory_of(plan, _without(frame, ["peak_device_used_bytes"]))
    assert [len(axes.get_lines()) for axes in panels(drawn)] == [2, 1]
    assert "samples" not in drawn.caption
    no_device = _without(frame, [name for name in BYTES if "device" in name])
    assert [axes.get_title() for axes in panels(memory_of(plan, no_device))] == ["GPU: memory of the host"]


def test_there_is_no_memory_figure_without_a_curve_a_number_or_data() -> None:
    plan = plan_of()
    frame = frame_of(plan)
    analysis = analyse(plan.study, frame)
    assert memory.draw(plan, frame.assign(**dict.fromkeys(BYTES, float("nan"))), analysis) is None
    assert memory.draw(plan, frame.assign(**{"training.batch_size": "four"}), analysis) is None
    no_curve = plan_of(curve=None)
    assert memory.draw(no_curve, frame, analyse(no_curve.study, frame)) is None


def test_the_same_table_gives_the_same_picture(tmp_path: Path) -> None:
    use_style()
    plan = plan_of(factors=LOOPS)
    for name in ("a", "b"):
        phases_of(plan, frame_of(plan)).figure.savefig(tmp_path / f"{name}.svg", metadata={"Date": None})
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
