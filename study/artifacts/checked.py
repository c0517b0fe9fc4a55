"""The records and samples of a plan, each checked against it: what does not fit is refused with a
reason.

A record holds every step of its run. :func:`each_record` therefore yields one record at a time.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from study.artifacts.plan import Plan
from study.artifacts.record import Aside, Record, is_readable
from study.artifacts.run import Run
from study.artifacts.samples import Measurement
from study.artifacts.setting import cut_paths
from study.artifacts.telemetry import from_parquet
from study.base.errors import StudyError
from study.config.settings import decisive, flat

if TYPE_CHECKING:
    import pandas as pd

WITH_ROWS: tuple[Aside, ...] = ("disturbed", "broken")
"""The folders beside the records whose records the analysis shows."""
SHORTEST = 1e-9
"""Seconds of the shortest work that a clock can tell from none."""


class Fitting(NamedTuple):
    """A record that fits its planned run, and the path of its file."""

    run: Run
    path: Path
    folder: Aside | None
    """The folder beside the records that count; None for one of these."""
    record: Record


class Refused(NamedTuple):
    """A file in the place of a planned run's record, and the reason why it is used nowhere."""

    run: Run
    path: Path
    folder: Aside | None
    reason: str


@dataclass(frozen=True)
class Records:
    """The records of a plan in a folder. A refused one is named with its key and the reason, and is
    used nowhere."""

    included: dict[str, Record] = field(default_factory=dict)
    """By the run's name."""
    refused: dict[str, str] = field(default_factory=dict)
    """The reason by the run's name."""
    aside: list[Fitting] = field(default_factory=list)
    """In the order of execution."""
    refused_aside: dict[str, str] = field(default_factory=dict)
    """The reason by the file, e.g. ``broken/bs4-cpu-r1.0a1b2c3d.json``."""

    def add(self, one: Fitting | Refused) -> None:
        """Take a record, or the reason why it is refused."""
        if isinstance(one, Fitting) and one.folder:
            self.aside.append(one)
        elif isinstance(one, Fitting):
            self.included[one.run.name] = one.record
        elif one.folder:
            self.refused_aside[f"{one.folder}/{one.path.name}"] = one.reason
        else:
            self.refused[one.run.name] = one.reason


def read_records(plan: Plan, folder: Path) -> Records:
    """Return the records in ``folder`` of the planned runs that have one, those in its folders
    included."""
    records = Records()
    for one in each_record(plan, folder):
        records.add(one)
    return records


def without_steps(one: Fitting) -> Fitting:
    """Return a record without its steps, which are most of what it takes in memory."""
    if not one.record.measurement:
        return one
    measured = one.record.measurement.model_copy(update={"steps": []})
    return one._replace(record=one.record.model_copy(update={"measurement": measured}))


def each_record(plan: Plan, folder: Path) -> Iterator[Fitting | Refused]:
    """Yield the file of each planned run that has one, read and checked, and then those in the
    folders beside.

    The former are in the plan's order, the latter in the order of execution. There are none in a
    folder that is not there: a study that has not begun.
    """
    for run in plan.runs:
        if os.path.lexists(folder / run.file):
            yield _checked(plan, run, folder / run.file, None)
    runs = {run.file: run for run in plan.runs}
    aside = []
    for kind in WITH_ROWS:
        for path in sorted((folder / kind).glob("*.json")):
            # the second of a name ends in ``.2.json``
            own = runs.get(path.name) or runs.get(re.sub(r"\.\d+\.json$", ".json", path.name))
            if own:
                aside.append(_checked(plan, own, path, kind))
    yield from (one for one in aside if isinstance(one, Refused))
    fitting = [one for one in aside if isinstance(one, Fitting)]
    yield from sorted(fitting, key=lambda one: (one.record.session, one.record.started))


def _checked(plan: Plan, run: Run, path: Path, folder: Aside | None) -> Fitting | Refused:
    try:
        return Fitting(run, path, folder, read_fitting(plan, run, path))
    except StudyError as error:
        return Refused(run, path, folder, str(error))


def read_fitting(plan: Plan, run: Run, path: Path) -> Record:
    """Return the record in a file of ``run``. Raise :class:`StudyError` with the first key that
    does not fit."""
    try:
        record = Record.of_file(path)
    except OSError as error:
        raise StudyError(f"it cannot be read ({error.strerror})") from None
    # The position is not compared: a study that gets more runs gets another order, and keeps its
    # records.
    planned = {"study": plan.name, "run": run.name, "key": run.key, "block": run.block}
    planned |= flat("setting.levels.", cut_paths(run.setting.levels))
    planned |= flat("settings.", decisive(run.settings))
    recorded = record.model_dump(include={"study", "run", "key", "block"})
    recorded |= flat("setting.levels.", record.setting.levels)
    recorded |= flat("settings.", decisive(record.settings))
    for key in planned | recorded:
        there, value = planned.get(key), recorded.get(key)
        if there != value:
            raise StudyError(key=key, value=value, why=f"the plan has {there!r}")
    for key, seconds in _durations(record.measurement) if record.measurement else ():
        if seconds < SHORTEST:
            raise StudyError(
                key=f"measurement.{key}", value=seconds, why=f"a clock tells {SHORTEST:g} s or more"
            )
    return record


def _durations(measured: Measurement) -> Iterator[tuple[str, float]]:
    """Yield the times that some work took, by their keys: a model allows 0, and an analysis divides
    by them."""
    yield "fit_seconds", measured.fit_seconds
    for index, epoch in enumerate(measured.epochs):
        yield f"epochs.{index}.train_seconds", epoch.train_seconds
    if measured.target and measured.target.seconds is not None:
        yield "target.seconds", measured.target.seconds


def read_samples(record: Record, path: Path) -> "pd.DataFrame | None":
    """Return the samples of a record (columns ``COLUMNS``), or None if it has none and no file is
    there.

    Raise :class:`StudyError` with a reason if the file is not the one that the record names.
    """
    if record.telemetry_sha256 is None:
        if not path.exists():
            return None
        raise StudyError(
            "telemetry_sha256: the record names no samples, and the file is of another record"
        )
    if not path.is_file():
        raise StudyError("telemetry_sha256: the record names samples, and the file is not there")
    if not is_readable(path):
        raise StudyError("they cannot be read (the file is too large)")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StudyError(f"they cannot be read ({error.strerror})") from None
    if hashlib.sha256(content).hexdigest() != record.telemetry_sha256:
        raise StudyError("telemetry_sha256: the file has another checksum than the record names")
    return from_parquet(content)
