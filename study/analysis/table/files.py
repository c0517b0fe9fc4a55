"""What the table is made of, and the table as a file."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from study.analysis.table import telemetry as telemetry_table
from study.analysis.table.rows import KEYS, Sampled, SetAside, table
from study.artifacts.checked import Records, read_records, read_samples
from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.samples import Measurement
from study.artifacts.shelf import Aside, read_record
from study.artifacts.timing import Timing, dtype, kind
from study.base.errors import StudyError
from study.base.files import write_whole
from study.config.study import Study, shown

ASIDE: dict[Aside, str] = {"disturbed": "disturbed", "broken": "broken block"}
"""The folders of records that were set aside and have rows of their own, with the reason in the table."""


def read_all(plan: Plan, folder: Path) -> dict[str, Record]:
    """Return the record in ``folder`` of each run that has one that fits, by the run's name."""
    return read_records(plan, folder).counted


def read_table(plan: Plan, found: Records, telemetry: Path) -> pd.DataFrame:
    """Return the table of timings of a plan's records, whose samples lie in ``telemetry``."""
    return table(
        plan, found.counted, read_telemetry(plan, found.counted, telemetry), set_aside(found, telemetry), found.refused
    )


def set_aside(found: Records, telemetry: Path) -> list[SetAside]:
    """Return the records that were set aside; their samples lie in folders of ``telemetry``."""
    return [
        SetAside(
            one.run,
            ASIDE[one.folder],
            one.record,
            _summary(one.record, telemetry / one.folder / f"{one.path.stem}.parquet"),
        )
        for one in found.aside
    ]


def read_primers(results: Path) -> list[Record]:
    """Return the records of the primers of every start, in their order. A damaged one, in no number, is left out."""
    found = []
    for path in sorted(Results(results).primers.glob("*.json")):
        with suppress(StudyError):
            found.append(read_record(path))
    return found


def read_telemetry(plan: Plan, records: dict[str, Record], folder: Path) -> dict[str, Sampled]:
    """Return the summary of each run's telemetry in ``folder`` while it trained (or inferred), by the run's name.

    Where the samples do not fit the record, it is the reason. Runs without a measurement or without samples are left
    out.
    """
    found = {}
    for run in plan.runs:
        record = records.get(run.name)
        summary = _summary(record, folder / run.telemetry_file) if record else None
        if summary:
            found[run.name] = summary
    return found


def _summary(record: Record, path: Path) -> Sampled | None:
    window = _window(record.measurement) if record.measurement else None
    if window is None:
        return None
    try:
        samples = read_samples(record, path)
    except StudyError as error:
        return str(error)
    return None if samples is None else telemetry_table.summarise(samples, *window)


def _window(measured: Measurement) -> tuple[float, float] | None:
    """Return the start and end of the fit (or of the inference), in seconds since 1970 UTC. None if not recorded."""
    asked = measured.inference
    if asked:
        return asked.started, asked.started + asked.seconds
    return None if measured.fit_started is None else (measured.fit_started, measured.fit_started + measured.fit_seconds)


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write ``frame``, the table of timings, to ``path`` as CSV, in one piece.

    Whole numbers are written as such, although a column that lacks one holds floats.
    """
    whole = {name: "Int64" for name in Timing.model_fields if kind(name) is int}
    write_whole(path, frame.astype(whole).to_csv(index=False))


def read_timings(path: Path, plan: Plan) -> pd.DataFrame:
    """Return the table of timings of ``plan`` in ``path``. Raise :class:`StudyError` if it is that of another study."""
    frame = read_csv(path, plan.study)
    for name in frame.loc[frame["study"] != plan.name, "study"]:
        raise StudyError(f"{path.name}: the table of study {name!r} is not allowed with the plan of {plan.name!r}")
    return frame


def read_csv(path: Path, study: Study) -> pd.DataFrame:
    """Return the table of timings in ``path``: one row per run, the columns and types of :func:`table`.

    Factor levels that are text stay text, also ``NA`` and ``001``. Raise :class:`StudyError` for a file that is no such
    table.
    """
    text = [key for key, levels in study.factors.items() if any(isinstance(level, str) for level in levels)]
    types: dict[str, Any] = dict.fromkeys(text, str) | {name: dtype(name) for name in Timing.model_fields}
    try:
        frame = pd.read_csv(path, dtype=types, keep_default_na=False, na_values=[""])
    except (OSError, ValueError) as error:
        raise StudyError(f"{path.name}: cannot be read as a table ({error.__class__.__name__})") from None
    _check_kind(frame, path.name, study)
    # A table of an earlier version lacks columns: what it did not know is empty.
    optional = (name for name, field in Timing.model_fields.items() if not field.is_required())
    empty = {name: pd.Series(index=frame.index, dtype=dtype(name)) for name in optional if name not in frame}
    # The copy has one block for each type: the reader leaves a hundred.
    return pd.concat([frame, pd.DataFrame(empty)], axis=1).copy()


def _check_kind(frame: pd.DataFrame, name: str, study: Study) -> None:
    """Raise :class:`StudyError` if a table lacks a column that each table has, or holds a level that is not planned."""
    required = [column for column, field in Timing.model_fields.items() if field.is_required()]
    for column in (*required, *KEYS, *study.factors):
        if column not in frame:
            raise StudyError(f"{name}: not the table of this plan: it has no column {column!r}")
    for key, levels in study.factors.items():
        planned = {str(shown(study, key, level)) for level in levels}
        for level in frame[key].unique():
            if str(level) not in planned and level not in levels:
                raise StudyError(
                    f"{name}: not the table of this plan: {key} {level} is not planned; allowed: "
                    f"{', '.join(sorted(planned))}"
                )
