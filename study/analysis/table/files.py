"""What the table is made of, and the table as a file."""

from pathlib import Path
from typing import Any

import pandas as pd

from study.analysis.table import telemetry as telemetry_table
from study.analysis.table.exclusions import ASIDE
from study.analysis.table.rows import KEYS, Sampled, Values, table_of, values_of
from study.artifacts.checked import Records, Refused, each_record, read_samples, without_steps
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.run import Run
from study.artifacts.samples import Measurement
from study.artifacts.timing import Timing, dtype, kind
from study.base.errors import StudyError
from study.base.files import check_plain, write_whole

LARGEST = 2**28
"""Bytes of a table: a million runs have a tenth of it."""
PARSER: dict[str, Any] = {} if pd.__version__ >= "3.1" else {"float_precision": "round_trip"}
"""What makes pandas read each number to its last bit: before 3.1 it missed that in two of five
unless it was asked."""


def read_table(plan: Plan, records: Path, telemetry: Path) -> tuple[pd.DataFrame, Records]:
    """Return the table of timings from the folders of a plan's records and of their samples, and
    the records.

    Each record is let go once its row is known: those that are returned are without their steps.
    """
    kept = Records()
    counted: dict[str, Values] = {}
    aside: list[tuple[Run, Values]] = []
    for found in each_record(plan, records):
        if isinstance(found, Refused):
            kept.add(found)
            if found.folder is None:
                counted[found.run.name] = {"outcome": "refused", "message": found.reason}
            continue
        kept.add(without_steps(found))
        samples = telemetry / (found.folder or "") / f"{found.path.stem}.parquet"
        values = values_of(found.record, summary_of(found.record, samples))
        if found.folder:
            aside.append((found.run, values | {"excluded": ASIDE[found.folder]}))
        else:
            counted[found.run.name] = values
    return table_of(plan, counted, aside), kept


def summary_of(record: Record, path: Path) -> Sampled | None:
    """Return the summary of a run's samples in ``path`` while it trained (or inferred).

    Where the samples do not fit the record, it is the reason. It is None without a measurement or
    without samples.
    """
    window = _window(record.measurement) if record.measurement else None
    if window is None:
        return None
    try:
        samples = read_samples(record, path)
    except StudyError as error:
        return str(error)
    return (
        None
        if samples is None
        else telemetry_table.summarise(samples, *window, record.settings.device)
    )


def _window(measured: Measurement) -> tuple[float, float] | None:
    """Return the start and end of the fit (or of the inference), in seconds since 1970 UTC. None if
    not recorded."""
    asked = measured.inference
    if asked:
        return asked.started, asked.started + asked.seconds
    return (
        None
        if measured.fit_started is None
        else (measured.fit_started, measured.fit_started + measured.fit_seconds)
    )


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write ``frame``, the table of timings, to ``path`` as CSV, in one piece.

    Whole numbers are written as such, although a column that lacks one holds floats.
    """
    whole = {name: "Int64" for name in Timing.model_fields if kind(name) is int}
    write_whole(path, frame.astype(whole).to_csv(index=False))


def read_timings(path: Path, plan: Plan) -> pd.DataFrame:
    """Return the table of timings of ``plan`` in ``path``, with the columns and types of
    :func:`table_of`.

    Factor levels that are text stay text, also ``NA`` and ``001``. Raise :class:`StudyError` for
    another study's table.
    """
    text = [
        key
        for key, levels in plan.study.factors.items()
        if any(isinstance(level, str) for level in levels)
    ]
    again = f"python -m study analyse {plan.name}"
    types: dict[str, Any] = dict.fromkeys(text, str) | {
        name: dtype(name) for name in Timing.model_fields
    }
    try:
        check_plain(path, LARGEST)
        frame: pd.DataFrame = pd.read_csv(
            path, dtype=types, keep_default_na=False, na_values=[""], compression=None, **PARSER
        )
    except (StudyError, OSError, ValueError) as error:
        why = error if isinstance(error, StudyError) else error.__class__.__name__
        raise StudyError(
            f"{path.name}: cannot be read as a table ({why}); make it with: {again}"
        ) from None
    for column in ("study", *KEYS, *plan.study.factors, *Timing.model_fields):
        if column not in frame:
            raise StudyError(f"{path.name}: it has no column {column!r}; make it with: {again}")
    for name in frame.loc[frame["study"] != plan.name, "study"]:
        raise StudyError(
            f"{path.name}: the table of study {name!r} is not allowed with the plan of "
            f"{plan.name!r}"
        )
    return frame.copy()  # in one block for each type: the reader leaves a hundred
