"""A table of timings for tests that plant some of its columns."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from study.analysis.analysis import Analysis, analyse
from study.analysis.table.exclusions import with_exclusions
from study.analysis.table.rows import Sampled, as_table, table_of, values_of
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.config.study import Study


def as_timings(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a table with every declared column from rows that have some of them; what they lack is
    empty."""
    planned = {
        "study": "tiny",
        "key": "00000000",
        "block": 1,
        "device": "cpu",
        "precision": "fp32",
        "training.batch_size": 4,
    }
    return as_table(
        planned
        | {
            "position": place,
            "run": f"run {place}",
            "outcome": "ok",
            "session": 1,
            "warmed_up": True,
        }
        | dict(row)
        for place, row in enumerate(rows, start=1)
    )


def analysed(study: Study, frame: pd.DataFrame) -> Analysis:
    """Return the analysis of a planted table, once the rules of exclusion have seen it."""
    plan = Plan(name="tiny", study=study, runs=[], engine="none", engine_reason="")
    return analyse(plan, with_exclusions(study, frame))


def table(
    plan: Plan, records: Mapping[str, Record], sampled: Mapping[str, Sampled | None] | None = None
) -> pd.DataFrame:
    """The table of timings of records that count, by the run's name; ``sampled`` are their
    telemetry."""
    values = {
        name: values_of(record, (sampled or {}).get(name)) for name, record in records.items()
    }
    return table_of(plan, values, [])
