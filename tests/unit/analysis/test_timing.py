"""The declared row of the table of timings."""

import re
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pytest
from pydantic import ValidationError

from study.analysis.report.content import FORMATS
from study.analysis.table.rows import table_of, values_of
from study.analysis.table.tables import read_timings, write_csv
from study.artifacts import timing
from study.artifacts.plan import Plan
from study.artifacts.record import DataUsed
from study.artifacts.samples import PixelDifference, Target
from study.artifacts.timing import Timing
from study.config.times import TIMES
from tests.conftest import tiny_plan
from tests.timings import table
from tests.unit.analysis.planted import with_measured
from tests.unit.artifacts.test_records import make_record

UNITS = {
    "seconds": "s",
    "bytes": "bytes",
    "percent": "%",
    "joules": "J",
    "watts": "W",
    "mhz": "MHz",
    "celsius": "°C",
}


def written(plan: Plan, path: Path, outcomes: dict[int, str] | None = None) -> pd.DataFrame:
    """Write the table of a plan whose runs ended as ``outcomes`` says by number (``none``: no
    record)."""
    kinds = {number: (outcomes or {}).get(number, "ok") for number in range(len(plan.runs))}
    records = {
        run.name: make_record(plan, number, kinds[number])
        for number, run in enumerate(plan.runs)
        if kinds[number] != "none"
    }
    frame = table(plan, records)
    write_csv(frame, path)
    return frame


@pytest.mark.parametrize(
    "outcomes", [{}, {0: "failed"}, {0: "none", 1: "none"}, {0: "failed", 1: "failed"}]
)
def test_every_column_is_there_in_one_order_and_type_whatever_was_measured(
    tmp_path: Path, outcomes: dict[int, str]
) -> None:
    frame = written(tiny_plan(), tmp_path / "t.csv", outcomes)
    assert [name for name in frame if name != "training.batch_size"] == list(Timing.model_fields)
    assert {name: str(frame[name].dtype) for name in Timing.model_fields} == {
        name: timing.dtype(name) for name in Timing.model_fields
    }


@pytest.mark.parametrize("outcomes", [{}, {0: "failed"}, {0: "none", 1: "none"}])
def test_a_table_is_read_as_it_was_written(tmp_path: Path, outcomes: dict[int, str]) -> None:
    plan = tiny_plan(
        factors={
            "device": ["cpu"],
            "training.batch_size": [4],
            "model.name": ["resnet18", "resnet34"],
        }
    )
    frame = written(plan, tmp_path / "t.csv", outcomes)
    pd.testing.assert_frame_equal(read_timings(tmp_path / "t.csv", plan), frame)


def test_a_column_that_is_not_declared_is_refused() -> None:
    values: dict[str, Any] = dict.fromkeys(
        ("study", "run", "key", "device", "precision", "outcome"), "x"
    )
    with pytest.raises(ValidationError, match="fit_second"):
        Timing.model_validate(values | {"block": 1, "position": 1, "fit_second": 1.0})


def units(name: str) -> list[str]:
    return [one.name for one in Timing.model_fields[name].metadata if isinstance(one, timing.Unit)]


@pytest.mark.parametrize("name", Timing.model_fields)
def test_a_columns_name_carries_its_unit_and_it_is_described(name: str) -> None:
    assert re.fullmatch(r".*\.", Timing.model_fields[name].description or "", re.DOTALL)
    suffix = name.removesuffix("_before").rsplit("_", 1)[-1]
    if suffix in UNITS and not name.endswith(("_per_joule", "_per_second")):
        assert units(name) == [UNITS[suffix]]


def test_every_total_of_a_study_is_a_column_in_seconds() -> None:
    assert all(units(name) == ["s"] for name in TIMES)


def test_every_way_in_which_a_resource_is_shown_has_its_function() -> None:
    assert set(FORMATS) == set(get_args(timing.Format))


@pytest.mark.parametrize(("most", "chance"), [(None, 0.25), (3, 0.3), (9, 0.9)])
def test_chance_is_the_share_of_the_most_frequent_class_or_in_an_older_record_that_of_equal_ones(
    most: int | None, chance: float
) -> None:
    data = DataUsed(
        source="folder",
        generated=False,
        sha256="ab",
        classes=list("abcd"),
        train_images=40,
        valid_images=10,
        valid_majority_images=most,
        left_out=0,
    )
    plan = tiny_plan()
    record = make_record(plan).model_copy(update={"data": data})
    row = table(plan, {record.run: record}).iloc[0]
    assert (row["chance_accuracy"], row["valid_images"]) == (chance, 10)


@pytest.mark.parametrize(
    ("target", "columns"),
    [
        (None, {}),
        (Target(reached=False), {"reached_target": False}),
        (
            Target(reached=True, epochs=3, seconds=1.5),
            {"reached_target": True, "target_epochs": 3, "target_seconds": 1.5},
        ),
    ],
)
def test_the_time_to_a_target_is_a_column_that_is_empty_where_it_was_missed(
    tmp_path: Path, target: Target | None, columns: dict[str, Any]
) -> None:
    plan = tiny_plan()
    record = with_measured(make_record(plan), target=target)
    write_csv(table(plan, {record.run: record}), tmp_path / "t.csv")
    row = read_timings(tmp_path / "t.csv", plan).iloc[0]
    names = ("reached_target", "target_epochs", "target_seconds")
    assert {name: row[name] for name in names if not pd.isna(row[name])} == columns


@pytest.mark.parametrize(("sampled", "shown"), [(3, None), (5, 5)])
def test_a_sampled_peak_that_is_below_what_torch_held_was_missed(
    sampled: int, shown: int | None
) -> None:
    plan = tiny_plan()
    values = values_of(make_record(plan), None)
    values |= {
        "peak_device_reserved_bytes": 4,
        "peak_device_allocated_bytes": 2,
        "peak_device_used_bytes": sampled,
    }
    row = table_of(plan, {plan.runs[0].name: values}, []).iloc[0]
    assert (
        None if pd.isna(row["peak_device_used_bytes"]) else row["peak_device_used_bytes"]
    ) == shown


def test_the_start_of_the_workers_is_within_the_wait_for_the_first_batch_that_it_is_told_under() -> (
    None
):
    plan = tiny_plan()
    record = make_record(plan)
    assert record.measurement is not None
    epoch = record.measurement.epochs[0].model_copy(update={"loader_start_seconds": 0.3})
    steps = [
        step.model_copy(update={"epoch": number, "data_wait_seconds": 0.4})
        for number in (1, 2, 3)
        for step in record.measurement.steps
    ]
    for workers in (0, 2):
        measured = with_measured(record, epochs=[epoch] * 3, steps=steps, workers=workers)
        row = table(plan, {record.run: measured}).iloc[0]
        assert row["first_batch_seconds"] == pytest.approx(0.4)
        assert (
            row["loader_start_seconds"] == pytest.approx(0.3)
            if workers
            else pd.isna(row["loader_start_seconds"])
        )
    headings = [resource.heading for resource in timing.resources().values()]
    place = headings.index("first batch of an epoch (s)")
    assert headings[place + 1] == "of that, workers' start (s)"


def test_how_far_a_decoders_pixels_lie_from_pillows_is_a_column() -> None:
    plan = tiny_plan(factors={"device": ["cpu"], "training.batch_size": [4, 8]})
    far = PixelDifference(images=16, mean=0.375, largest=36)
    records = [make_record(plan), with_measured(make_record(plan, 1), decoder_difference=far)]
    frame = table(plan, {record.run: record for record in records})
    assert pd.isna(frame["decoder_difference"][0])
    assert frame["decoder_difference"][1] == 0.375
    assert "decoder_difference" in timing.resources()
