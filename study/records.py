"""The record of one run: its model, an atomic write that never overwrites, reading, and moving aside."""

import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from study.config import Settings, Strict
from study.errors import StudyError
from study.measure.arithmetic import Ceilings, Fp32
from study.measure.machine import Machine
from study.measure.samples import Measurement, Yardstick
from study.weights import Weights

Outcome = Literal["ok", "out_of_memory", "failed", "unavailable"]


class DataUsed(Strict):
    """The dataset of the run."""

    source: str
    generated: bool
    sha256: str = Field(description="Checksum over names, contents, classes and split.")
    classes: list[str]
    train_images: int
    valid_images: int
    left_out: int = Field(description="Number of files that could not be used; the manifest gives the reasons.")


class JobResult(Strict):
    """The result that the training process leaves for its launcher."""

    outcome: Outcome
    message: str | None = Field(default=None, description="Reason for an outcome other than ok; no host, user or path.")
    measurement: Measurement | None = None
    machine: Machine | None = None
    data: DataUsed | None = None
    weights: Weights | None = None
    yardstick: Yardstick | None = None
    fp32: Fp32 | None = Field(default=None, description="Arithmetic of fp32; null in older records.")


class Software(Strict):
    """The code that measured, and its environment."""

    study_version: str
    git_commit: str | None
    git_dirty: bool | None
    lock_sha256: str | None = Field(
        description="Checksum of the lock file from which the software was installed; null if an image does not say."
    )
    engine: str = Field(description="Container engine; `none` means that the run was on the host.")
    engine_reason: str
    engine_version: str | None = None
    image: str | None = Field(default=None, description="Checksum of the image itself.")
    image_digest: str | None = Field(default=None, description="Checksum by which a registry knows the image.")


class Record(JobResult):
    """One complete run. It holds raw samples only: every statistic is computed on read."""

    schema_version: Literal[1] = 1
    study: str
    run: str
    key: str
    session: int = Field(
        ge=1, description="Number of the session: each start of the pipeline that measured something is one."
    )
    block: int = Field(ge=1)
    position: int = Field(ge=1, description="Place of the run in the study's seeded order, from 1.")
    started: str = Field(description="Start of the run in UTC, ISO 8601.")
    factors: dict[str, Any]
    settings: Settings
    seed: int = Field(description="Seed of this run, from the study's seed and the run's name without its strategy.")
    process_seconds: float = Field(
        description="Seconds of the whole process: start-up (also of the container), imports, data, model, fit."
    )
    other_device_processes: int | None = Field(
        default=None, description="Number of processes that computed on the GPU when this run began; null if unknown."
    )
    device_percent_before: int | None = Field(
        default=None, description="Utilisation of the GPU in percent when this run began; null if unknown."
    )
    device_watts_before: float | None = Field(
        default=None,
        description="Power of the GPU in watts when this run began: its idle power, if nothing else computed.",
    )
    cpu_percent_before: float | None = Field(
        default=None,
        description="Load of the whole machine in percent before this run began, with no process of the study at work.",
    )
    telemetry_sha256: str | None = Field(
        default=None,
        description="Checksum of `telemetry/<run>.<key>.parquet` beside the records; null without samples.",
    )
    ceilings: Ceilings | None = Field(
        default=None,
        description="Measured ceilings of the device, in the first run of each device and precision; null in the "
        "others.",
    )
    software: Software


def without_paths(settings: Settings) -> Settings:
    """Return the settings with every path cut to its base name, because people share records."""
    values = settings.model_dump()
    for section, key in (("dataset", "path"), ("dataset", "manifest"), ("model", "weights")):
        if values[section][key]:
            values[section][key] = Path(values[section][key]).expanduser().resolve().name or section
    return Settings.model_validate(values)


def write_new(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` in one piece. Raise :class:`StudyError` if the file exists; it stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.stem[:60]}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        _publish(name, path)
    except FileExistsError:
        raise StudyError(f"{path.name}: this record exists already and is kept") from None
    finally:
        Path(name).unlink(missing_ok=True)


def _publish(temporary: str, path: Path) -> None:
    """Give the complete file its name. Unlike a rename, a link fails if the name is taken."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if path.exists():
            raise FileExistsError from None
        Path(temporary).rename(path)


def read_record(path: Path) -> Record:
    """Return the record in a file, checked. Raise :class:`StudyError` if it is not valid."""
    try:
        return Record.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise StudyError(f"{path.name}: not a valid record ({reason}); move it away to repeat that run") from None


def last_session(folder: Path) -> int:
    """Return the highest session among a study's records, superseded ones included; 0 without records."""
    sessions = [0]
    for path in folder.rglob("*.json"):
        match = re.search(r'"session":\s*(\d+)', path.read_text(encoding="utf-8", errors="replace"))
        if match:
            sessions.append(int(match.group(1)))
    return max(sessions)


def retire(folder: Path, chosen: Callable[[Record], bool]) -> list[str]:
    """Move the chosen records to ``superseded``, so that their runs are made again, and return their names.

    A damaged record is of no use to an analysis and is moved with them.
    """
    paths = []
    for path in sorted(folder.glob("*.json")):
        try:
            if chosen(read_record(path)):
                paths.append(path)
        except StudyError:
            paths.append(path)
    return [move_aside(path).name for path in paths]


def move_aside(path: Path) -> Path:
    """Move a file into the folder ``superseded`` beside it, under a free name, and return its new path.

    The telemetry of a record moves to ``superseded`` in its own folder.
    """
    target = path.parent / "superseded" / path.name
    target.parent.mkdir(exist_ok=True)
    number = 1
    while target.exists():
        number += 1
        target = path.parent / "superseded" / f"{path.stem}.{number}.json"
    samples = path.parent.parent / "telemetry" / f"{path.stem}.parquet"
    if samples.is_file():
        kept = samples.parent / "superseded" / f"{target.stem}.parquet"
        kept.parent.mkdir(exist_ok=True)
        samples.rename(kept)
    return path.rename(target)
