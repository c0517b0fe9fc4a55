"""The tables of timings and of epochs: what they are made of, and each as a file.

The samples of a run become columns, too. A GPU's power reading is unreliable. On recent cards
nvidia-smi and NVML see the power only during about a quarter of the time
(https://arxiv.org/abs/2312.02741), so its integral may be far off, most of all for short loads. The
energy counter covers the whole time, but ticks about every 100 ms. Hence the counter alone tells an
energy, and a window under 2 s gets no number.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from study.analysis.stats.mixed_model import Array
from study.analysis.table.exclusions import ASIDE
from study.analysis.table.rows import TYPES as TIMING_TYPES
from study.analysis.table.rows import Sampled, always, table_of, values_of
from study.artifacts.checked import Records, Refused, each_record, read_samples, without_steps
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.samples import Epoch
from study.artifacts.telemetry import COLUMNS as SAMPLED_COLUMNS
from study.artifacts.timing import Timing, kind
from study.base.errors import StudyError
from study.base.files import check_plain, write_whole

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
    counted = {}
    aside = []
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
    """Return the summary of a run's samples in ``path`` while it trained.

    Where the samples do not fit the record, it is the reason. It is None without a measurement or
    without samples.
    """
    measured, start, seconds = record.measurement, None, 0.0
    if record.command:
        start, seconds = record.command.started, record.command.seconds
    elif measured:
        start, seconds = measured.fit_started, measured.fit_seconds
    if start is None:
        return None
    try:
        samples = read_samples(record, path)
    except StudyError as error:
        return str(error)
    if samples is None:
        return None
    return summarise(samples, start, start + seconds, record.settings.device)


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
    another study's table, and for what is none.
    """
    again = f"python -m study analyse {plan.name}"
    text = [
        key
        for key, levels in plan.study.factors.items()
        if any(isinstance(level, str) for level in levels)
    ]
    types: dict[str, Any] = dict.fromkeys(text, "str") | TIMING_TYPES
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
    for column in ("study", *always(plan.study), *plan.study.factors, *Timing.model_fields):
        if column not in frame:
            raise StudyError(f"{path.name}: it has no column {column!r}; make it with: {again}")
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
    the end of the epoch, with the building of the model where that is in the study's time.
    """
    total = plan.study.total
    rows = []
    known = {(name, one.started): one for name, one in records.included.items()}
    known |= {(one.run.name, one.record.started): one.record for one in records.aside}
    for row in frame[[*RUN, "started"]].to_dict("records"):
        record = known.get((row["run"], row["started"]))
        measured = record.measurement if record else None
        if measured is None:
            continue
        end = measured.model_seconds if total == "blog_seconds" else 0.0
        for number, epoch in enumerate(measured.epochs, start=1):
            end += epoch.train_seconds + epoch.valid_seconds
            rows.append(row | epoch.model_dump() | {"epoch": number, "seconds": end})
    return as_epochs(rows)


SHORTEST_WINDOW_SECONDS = 2.0
FEWEST_SAMPLES = 10
LONGEST_HOLE_SECONDS = 1.0


def summarise(frame: pd.DataFrame, start: float, end: float, device: str) -> dict[str, Any]:
    """Return what samples (columns ``SAMPLED_COLUMNS``) from ``start`` to ``end``, both in
    epoch seconds, tell of a run.

    The keys are columns of the table of timings; a value is None where no sample has one. The
    energy is that of the GPUs, where the ``device`` that trained is one.
    """
    # Arrays: a study has thousands of these tables, and pandas takes longer to choose a column than
    # to add it up.
    whole = dict(zip(SAMPLED_COLUMNS, frame[list(SAMPLED_COLUMNS)].to_numpy(float).T, strict=True))
    inside = (whole["seconds"] >= start) & (whole["seconds"] <= end)
    window = {name: values[inside] for name, values in whole.items()}
    joules, refused = (
        _gpu_energy(whole, start, end)
        if device == "cuda"
        else (None, "Only a GPU counts its energy.")
    )
    return {
        "cpu_percent": _of_known(np.mean, window["cpu_percent"]),
        "peak_tree_resident_bytes": _of_known(np.max, window["process_resident_bytes"], int),
        "gpu_utilisation_percent": _of_known(np.mean, window["gpu_utilisation_percent"]),
        "peak_device_used_bytes": _of_known(np.max, window["gpu_memory_used_bytes"], int),
        "sm_clock_mhz": _of_known(np.mean, window["gpu_sm_clock_mhz"]),
        "gpu_temperature_celsius": _of_known(np.max, window["gpu_temperature_celsius"]),
        "energy_joules": joules,
        "energy_refused": refused,
    }


def _gpu_energy(
    samples: Mapping[str, Array], start: float, end: float
) -> tuple[float | None, str | None]:
    """Return the energy of the GPUs in a window by NVML's counter, in joules, or why it has
    none."""
    known = ~(np.isnan(samples["seconds"]) | np.isnan(samples["gpu_energy_joules"]))
    seconds, joules = samples["seconds"][known], samples["gpu_energy_joules"][known]
    inside = seconds[(seconds >= start) & (seconds <= end)]
    if not len(seconds):
        return None, "The device does not count its energy."
    if end - start < SHORTEST_WINDOW_SECONDS:
        return None, f"The window of {end - start:.2f} s is under {SHORTEST_WINDOW_SECONDS:g} s."
    if len(inside) < FEWEST_SAMPLES:
        return None, f"The window holds {len(inside)} samples, fewer than {FEWEST_SAMPLES}."
    # Between two samples a counter continues; before the first and after the last it is unknown.
    longest = max(seconds[0] - start, end - seconds[-1])
    if longest > LONGEST_HOLE_SECONDS:
        return None, f"The samples leave out {longest:.1f} s of the window."
    if (np.diff(joules) < 0).any():
        return None, "The energy counter went back: its driver was loaded again."
    first, last = np.interp([start, end], seconds, joules)
    if first == last:  # as on some virtual GPUs
        return None, "The energy counter stands still."
    return float(last - first), None


def _of_known(summary: Callable[[Array], Any], values: Array, number: type = float) -> Any:
    """Return the mean or the largest of the values that were read; None where none was."""
    known = values[~np.isnan(values)]
    return number(summary(known)) if len(known) else None
