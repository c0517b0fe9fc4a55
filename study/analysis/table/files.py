"""What the table is made of, and the table as a file."""

from pathlib import Path
from typing import Any

import pandas as pd

from study.analysis.table import telemetry as telemetry_table
from study.analysis.table.telemetry import TelemetrySummary
from study.artifacts import telemetry
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.samples import Measurement
from study.artifacts.shelf import read_record
from study.artifacts.timing import Timing, dtype, kind
from study.base.errors import StudyError
from study.base.files import write_whole
from study.config.study import Study


def read_all(plan: Plan, folder: Path) -> dict[str, Record]:
    """Return the record in ``folder`` of each run that has one, by the run's name.

    The pipeline makes all records first; by hand a part of them can be analysed, too.
    """
    return {run.name: read_record(folder / run.file) for run in plan.runs if (folder / run.file).exists()}


def read_telemetry(plan: Plan, records: dict[str, Record], folder: Path) -> dict[str, TelemetrySummary]:
    """Return the summary of each run's telemetry in ``folder`` while it trained (or inferred), by the run's name.

    Runs without a measurement or without samples are left out.
    """
    found = {}
    for run in plan.runs:
        record, path = records.get(run.name), folder / run.telemetry_file
        window = _window(record.measurement) if record and record.measurement else None
        if window and path.is_file():
            found[run.name] = telemetry_table.summarise(telemetry.read_parquet(path), *window)
    return found


def _window(measured: Measurement) -> tuple[float, float] | None:
    """Return the start and end of the fit (or of the inference), in seconds since 1970 UTC. None if not recorded."""
    asked = measured.inference
    if asked:
        return asked.started, asked.started + asked.seconds
    return None if measured.fit_started is None else (measured.fit_started, measured.fit_started + measured.fit_seconds)


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write ``frame``, the table of timings (one row per run), to ``path`` as CSV, in one piece.

    Whole numbers are written as such, although a column that lacks one holds floats.
    """
    whole = {name: "Int64" for name in Timing.model_fields if kind(name) is int}
    write_whole(path, frame.astype(whole).to_csv(index=False))


def read_csv(path: Path, study: Study) -> pd.DataFrame:
    """Return the table of timings in ``path``: one row per run, the columns and types of :func:`table`.

    Factor levels that are text stay text, also ``NA`` and ``001``. Raise :class:`StudyError` for an unreadable file.
    """
    text = [key for key, levels in study.factors.items() if any(isinstance(level, str) for level in levels)]
    types: dict[str, Any] = dict.fromkeys(text, str) | {name: dtype(name) for name in Timing.model_fields}
    try:
        # The copy has one block for each type: the reader leaves a hundred.
        return pd.read_csv(path, dtype=types, keep_default_na=False, na_values=[""]).copy()
    except (OSError, ValueError) as error:
        raise StudyError(f"{path.name}: cannot be read as a table ({error.__class__.__name__})") from None
