"""The records and samples of a plan, each checked against it: what does not fit is refused with a reason."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from study.artifacts.plan import Plan
from study.artifacts.record import Record, plain_factors
from study.artifacts.run import Run
from study.artifacts.samples import Measurement
from study.artifacts.shelf import Aside
from study.artifacts.telemetry import read_parquet
from study.base.errors import StudyError
from study.base.files import file_sha256
from study.config.settings import decisive

WITH_ROWS: tuple[Aside, ...] = ("disturbed", "broken")
"""The folders beside the records whose records the analysis shows."""
SHORTEST = 1e-9
"""Seconds of the shortest work that a clock can tell from none."""


@dataclass(frozen=True)
class AsideRecord:
    """A record of a planned run in a folder beside those that count, and the path of its file."""

    folder: Aside
    run: Run
    record: Record
    path: Path


@dataclass(frozen=True)
class Records:
    """The records of a plan in a folder. A refused one is named with its key and the reason, and is used nowhere."""

    counted: dict[str, Record]
    """By the run's name."""
    refused: dict[str, str]
    """The reason by the run's name."""
    aside: list[AsideRecord]
    """In the order of execution."""
    refused_aside: dict[str, str]
    """The reason by the file, e.g. ``broken/bs4-cpu-r1.0a1b2c3d.json``."""


def read_records(plan: Plan, folder: Path) -> Records:
    """Return the records in ``folder`` of the planned runs that have one, those in its folders included.

    The pipeline makes all records first; by hand a part of them can be analysed, too. Raise :class:`StudyError` if
    there is no such folder, although the plan has runs that can be made.
    """
    if not folder.is_dir() and any(not run.unavailable for run in plan.runs):
        raise StudyError(f"{folder}: no such folder of records")
    found = Records({}, {}, [], {})
    for run in plan.runs:
        if os.path.lexists(folder / run.file):
            try:
                found.counted[run.name] = read_fitting(plan, run, folder / run.file)
            except StudyError as error:
                found.refused[run.name] = str(error)
    for kind, run, path in _aside(plan, folder):
        try:
            found.aside.append(AsideRecord(kind, run, read_fitting(plan, run, path), path))
        except StudyError as error:
            found.refused_aside[f"{kind}/{path.name}"] = str(error)
    found.aside.sort(key=lambda one: (one.record.session, one.record.started))
    return found


def _aside(plan: Plan, folder: Path) -> Iterator[tuple[Aside, Run, Path]]:
    """Yield each file of a planned run in the folders beside the records; the second of a name ends in ``.2.json``."""
    runs = {run.file: run for run in plan.runs}
    for kind in WITH_ROWS:
        for path in sorted((folder / kind).glob("*.json")):
            run = runs.get(path.name) or runs.get(re.sub(r"\.\d+\.json$", ".json", path.name))
            if run:
                yield kind, run, path


def read_fitting(plan: Plan, run: Run, path: Path) -> Record:
    """Return the record in a file of ``run``. Raise :class:`StudyError` with the first key that does not fit."""
    try:
        record = Record.of_file(path)
    except OSError as error:
        raise StudyError(f"it cannot be read ({error.strerror})") from None
    # The position is not compared: a study that gets more runs gets another order, and keeps its records.
    for key, planned, recorded in [
        ("study", plan.name, record.study),
        ("run", run.name, record.run),
        ("key", run.key, record.key),
        ("block", run.block, record.block),
        *((f"factors.{key}", *pair) for key, pair in _pairs(plain_factors(run.factors), plain_factors(record.factors))),
        *((f"settings.{key}", *pair) for key, pair in _pairs(decisive(run.settings), decisive(record.settings))),
    ]:
        if planned != recorded:
            raise StudyError(f"{key}: {recorded!r} is not allowed: the plan has {planned!r}")
    for key, seconds in _durations(record.measurement) if record.measurement else ():
        if seconds < SHORTEST:
            raise StudyError(f"measurement.{key}: {seconds!r} is not allowed: a clock tells {SHORTEST:g} s or more")
    if record.measurement and (record.measurement.inference is None) != (run.settings.task == "training"):
        raise StudyError(f"measurement.inference: it does not go with the task {run.settings.task}")
    return record


def _durations(measured: Measurement) -> Iterator[tuple[str, float]]:
    """Yield the times that some work took, by their keys: a model allows 0, and an analysis divides by them."""
    yield "fit_seconds", measured.fit_seconds
    for place, epoch in enumerate(measured.epochs):
        yield f"epochs.{place}.train_seconds", epoch.train_seconds
    if measured.target and measured.target.seconds is not None:
        yield "target.seconds", measured.target.seconds
    if measured.inference:
        for place, batch in enumerate(measured.inference.batches):
            yield f"inference.batches.{place}.seconds", batch.seconds


def _pairs(planned: dict[str, Any], recorded: dict[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys of two nested dictionaries, each with its two values."""
    for key in planned | recorded:
        one, other = planned.get(key), recorded.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            yield from _pairs(one, other, f"{section}{key}.")
        else:
            yield section + key, (one, other)


def read_samples(record: Record, path: Path) -> pd.DataFrame | None:
    """Return the samples of a record (columns ``COLUMNS``), or None if it has none and no file is there.

    Raise :class:`StudyError` with a reason if the file is not the one that the record names.
    """
    if record.telemetry_sha256 is None and not path.exists():
        return None
    if record.telemetry_sha256 is None:
        raise StudyError("telemetry_sha256: the record names no samples, and the file is of another record")
    if not path.is_file():
        raise StudyError("telemetry_sha256: the record names samples, and the file is not there")
    try:
        if file_sha256(path) != record.telemetry_sha256:
            raise StudyError("telemetry_sha256: the file has another checksum than the record names")
    except OSError as error:
        raise StudyError(f"they cannot be read ({error.strerror})") from None
    return read_parquet(path)
