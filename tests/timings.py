"""A table of timings for tests that plant some of its columns; and bounds of what chance decides, of which a right test
breaks one once in 500 times."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
from scipy.stats import binom

from study.analysis.analysis import Analysis, analyse
from study.analysis.table.exclusions import keys_of, with_exclusions
from study.analysis.table.rows import Sampled, as_table, table_of, values_of
from study.analysis.table.tables import as_epochs
from study.artifacts.checked import Records
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.setting import part_of
from study.config.study import Study


def as_timings(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a table with every declared column from rows, where what they lack is empty."""
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


def labelled(study: Study, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a planted table with the labels of each run's group and level."""
    level_keys, group_keys = keys_of(study)
    rows: Any = frame.to_dict("records")
    return frame.assign(
        group=[part_of(study, row, group_keys).label for row in rows],
        level=[part_of(study, row, level_keys).label for row in rows],
    )


def ruled(study: Study, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a planted table, once the rules of exclusion have seen it."""
    return with_exclusions(study, labelled(study, frame))


def analysed(study: Study, frame: pd.DataFrame) -> Analysis:
    """Return the analysis of a planted table, once the rules of exclusion have seen it."""
    plan = Plan(name="tiny", study=study, runs=[], engine="none", engine_reason="")
    return analyse(plan, ruled(study, frame), Records(), as_epochs())


def table(
    plan: Plan, records: Mapping[str, Record], sampled: Mapping[str, Sampled | None] | None = None
) -> pd.DataFrame:
    """The table of timings of counted records, by run; ``sampled`` are their telemetry."""
    values = {
        name: values_of(record, (sampled or {}).get(name)) for name, record in records.items()
    }
    return table_of(plan, values, [])


def at_most(share: float, draws: int) -> int:
    """The most of ``draws`` that happen, where each happens with the probability ``share``."""
    return int(binom.ppf(0.998, draws, share))


def at_least(share: float, draws: int) -> int:
    """The fewest of ``draws`` that happen, where each happens with the probability ``share``."""
    return int(binom.ppf(0.002, draws, share))
