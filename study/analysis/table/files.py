"""The tables of timings and of epochs: what they are made of, and each as a file."""

from collections.abc import Mapping, Sequence
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
from study.artifacts.samples import Epoch, Measurement
from study.artifacts.timing import Timing, dtype, kind
from study.base.errors import StudyError
from study.base.files import check_plain, write_whole
from study.config.times import INFERENCE

LARGEST = 2**28
"""Bytes of a table: a million runs have a tenth of it."""
PARSER: dict[str, Any] = {} if pd.__version__ >= "3.1" else {"float_precision": "round_trip"}
"""What makes pandas read each number to its last bit: before 3.1 it missed that in two of five
unless it was asked."""

RUN = ["run", "group", "level", "block", "excluded"]
"""Columns of the table of epochs that all epochs of a run share."""
COLUMNS = [*RUN, "epoch", *Epoch.model_fields, "seconds"]
TYPES = dict.fromkeys(("run", "group", "level", "excluded", "stage"), "object")
TYPES |= dict.fromkeys(("train_loss", "loss_sum", "valid_loss", "accuracy"), "float64")
"""The types of texts, and of the numbers that an epoch may be without."""


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
    if samples is None:
        return None
    return telemetry_table.summarise(samples, *window, record.settings.device)


def _window(measured: Measurement) -> tuple[float, float] | None:
    """Return the start and end of the fit (or of the inference), in seconds since 1970 UTC. None if
    not recorded."""
    asked = measured.inference
    if asked:
        return asked.started, asked.started + asked.seconds
    if measured.fit_started is None:
        return None
    return measured.fit_started, measured.fit_started + measured.fit_seconds


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
    types = dict.fromkeys(text, "str") | {name: dtype(name) for name in Timing.model_fields}
    columns = ("study", *KEYS, *plan.study.factors, *Timing.model_fields)
    frame = _read(path, types, columns, plan.name)
    for name in frame.loc[frame["study"] != plan.name, "study"]:
        raise StudyError(
            f"{path.name}: the table of study {name!r} is not allowed with the plan of "
            f"{plan.name!r}"
        )
    return frame.copy()  # in one block for each type: the reader leaves a hundred


def as_epochs(rows: Sequence[Any] = ()) -> pd.DataFrame:
    """Return rows (values by column) as a table of epochs."""
    return pd.DataFrame(rows, columns=COLUMNS).astype(TYPES)


def epochs_of(plan: Plan, frame: pd.DataFrame, records: Records) -> pd.DataFrame:
    """Return the epochs of the runs in a plan's table of timings, from the records that it was made
    of.

    Beside the fields of an epoch there are the labels of a run's ``group`` and of its setting,
    ``level``; why it is ``excluded``; and ``seconds``, the time of training and validation until
    the end of the epoch, with the building of the model where that is in the study's time. An
    inference has none: its training is preparation.
    """
    total = plan.study.total
    rows = []
    known = {(name, one.started): one for name, one in records.included.items()}
    known |= {(one.run.name, one.record.started): one.record for one in records.aside}
    for row in frame[[*RUN, "started"]].to_dict("records"):
        record = known.get((row["run"], row["started"]))
        measured = record.measurement if record else None
        if measured is None or total == INFERENCE:
            continue
        end = measured.model_seconds if total == "blog_seconds" else 0.0
        for number, epoch in enumerate(measured.epochs, start=1):
            end += epoch.train_seconds + epoch.valid_seconds
            rows.append(row | epoch.model_dump() | {"epoch": number, "seconds": end})
    return as_epochs(rows)


def read_epochs(path: Path, study: str) -> pd.DataFrame:
    """Return the table of epochs of ``study`` in ``path``. Raise :class:`StudyError` if it is
    none."""
    return _read(path, TYPES, COLUMNS, study)


def _read(path: Path, types: Mapping[str, Any], columns: Sequence[str], study: str) -> pd.DataFrame:
    again = f"python -m study analyse {study}"
    try:
        check_plain(path, LARGEST)
        frame: pd.DataFrame = pd.read_csv(
            path,
            dtype=dict(types),
            keep_default_na=False,
            na_values=[""],
            compression=None,
            **PARSER,
        )
    except (StudyError, OSError, ValueError) as error:
        why = error if isinstance(error, StudyError) else error.__class__.__name__
        raise StudyError(
            f"{path.name}: cannot be read as a table ({why}); make it with: {again}"
        ) from None
    for column in columns:
        if column not in frame:
            raise StudyError(f"{path.name}: it has no column {column!r}; make it with: {again}")
    return frame
