"""A step reads each file once, keeps no record longer than it needs, and fits no model more for
more runs."""

import gc
import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from study.analysis.analysis import Analysis
from study.analysis.report.step import render
from study.analysis.stats.mixed_model import fit_mixed
from study.analysis.step import write_analysis
from study.analysis.table.rows import values_of
from study.analysis.table.tables import read_table
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.artifacts.record import Record, sealed
from study.artifacts.telemetry import COLUMNS, write_parquet
from study.base.files import file_sha256
from tests.conftest import tiny_plan
from tests.unit.analysis.planted import analysis_of
from tests.unit.artifacts.test_records import make_record


def plan_of(replicates: int) -> Plan:
    return tiny_plan(factors={"training.batch_size": [2, 4, 8]}, replicates=replicates)


def results_of(plan: Plan, root: Path) -> Results:
    """A results folder with a sealed record and samples of each run; every three runs are a start
    of their own."""
    files = Results(root)
    write_plans([plan], root)
    for number, run in enumerate(plan.runs):
        path = files.telemetry(plan.name, run.file)
        write_parquet(pd.DataFrame({name: [1.0, 2.0, 3.0 + number] for name in COLUMNS}), path)
        seconds = (1.0 + 0.01 * (number % 7)) / run.settings.training.batch_size
        record = make_record(plan, number, fit_seconds=seconds, session=1 + number // 3)
        assert record.measurement is not None
        own = {
            "started": f"2026-01-01T{number // 60:02d}:{number % 60:02d}:00+00:00",
            "telemetry_sha256": file_sha256(path),
            "measurement": record.measurement.model_copy(update={"fit_started": 1.0}),
        }
        files.record(plan.name, run.file).parent.mkdir(exist_ok=True)
        files.record(plan.name, run.file).write_text(
            sealed(record.model_copy(update=own)).model_dump_json()
        )
    return files


@pytest.fixture
def plan() -> Plan:
    return plan_of(2)


@pytest.fixture
def files(plan: Plan, tmp_path: Path) -> Results:
    return results_of(plan, tmp_path)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """The number of times that each file was opened, by its name."""
    counts: Counter[str] = Counter()
    whole = io.open

    def counting(path: Any, *rest: Any, **named: Any) -> Any:
        counts[Path(path).name] += 1
        return whole(path, *rest, **named)

    monkeypatch.setattr(io, "open", counting)
    yield counts


def test_the_analysis_opens_each_record_once_and_the_page_none(
    plan: Plan, files: Results, opened: Counter[str]
) -> None:
    name = plan.name
    records, samples = (
        [run.file for run in plan.runs],
        [files.telemetry(name, run.file).name for run in plan.runs],
    )
    write_analysis(name, files)
    assert [opened[file] for file in records] == [1] * len(records)
    assert [opened[file] for file in samples] == [1] * len(samples)
    opened.clear()
    render([name], files.root, files.report)
    assert not opened.keys() & {*records, *samples}


def test_the_table_lets_each_record_go_before_it_reads_the_next(
    plan: Plan, files: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive: list[int] = []

    def watched(record: Record, *rest: Any) -> Any:
        alive.append(_with_steps())
        return values_of(record, *rest)

    monkeypatch.setattr("study.analysis.table.tables.values_of", watched)
    gc.collect()
    before = _with_steps()
    frame, records = read_table(plan, files.records(plan.name), files.telemetry_folder(plan.name))
    assert (len(frame), len(alive), len(records.included), records.refused) == (6, 6, 6, {})
    assert max(alive) <= before + 2


def _with_steps() -> int:
    """The number of records in memory that have their steps."""
    records = [one for one in gc.get_objects() if isinstance(one, Record)]
    return sum(bool(one.measurement and one.measurement.steps) for one in records)


def analysed(plan: Plan, root: Path) -> tuple[pd.DataFrame, Analysis]:
    files = results_of(plan, root)
    frame, _ = read_table(plan, files.records(plan.name), files.telemetry_folder(plan.name))
    return frame, analysis_of(plan.study, frame)


def test_more_replicates_need_no_more_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[int] = []

    def counting(y: Any, *rest: Any) -> Any:
        fits.append(len(y))
        return fit_mixed(y, *rest)

    monkeypatch.setattr("study.analysis.stats.log_model.fit_mixed", counting)
    numbers = []
    for replicates in (6, 18):
        fits.clear()
        analysed(plan_of(replicates), tmp_path / str(replicates))
        numbers.append(len(fits))
        assert max(fits) == 3 * replicates
    assert numbers[0] == numbers[1] > 0
