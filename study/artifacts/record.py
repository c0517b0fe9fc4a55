"""The record of one run: raw samples, and what they were measured with."""

import json
import os
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from study.artifacts.machine import Fp32, Machine, Magnitude, Observed
from study.artifacts.pace import Pace
from study.artifacts.prepared import Weights
from study.artifacts.samples import (
    CommandSamples,
    Count,
    Images,
    Measurement,
    ReferenceWorkload,
    Samples,
    Seconds,
    Timeline,
)
from study.artifacts.setting import Setting
from study.base.errors import StudyError, ValueRefused
from study.base.files import json_sha256
from study.base.privacy import plain
from study.base.strict import LARGEST, Strict, Versioned, without_gone
from study.config.settings import Settings
from study.config.study import Evidence

Outcome = Literal["ok", "out_of_memory", "failed", "unavailable"]
Aside = Literal["superseded", "disturbed", "broken"]
"""The folders beside the records that are included: moved to be made again, disturbed first tries,
blocks broken off."""
TIMED_OUT = "timed out"
"""How the message of a run begins that its time limit ended: it takes longer than that."""


class DataUsed(Strict):
    """The dataset of the run."""

    source: str
    generated: bool
    sha256: str
    """Checksum over names, contents, classes and split."""
    classes: list[str] = Field(min_length=1)
    train_images: Count
    valid_images: Images
    valid_majority_images: Count | None = None
    """Validation images of their most frequent class; null if files hold images of several
    classes."""
    left_out: Count
    """Number of files that could not be used; the manifest gives the reasons."""


class JobResult(Samples):
    """The result that the training process leaves for its launcher."""

    outcome: Outcome
    message: str | None = None
    """Reason for an outcome other than ok; no host, user or path."""
    measurement: Measurement | None = None
    command: CommandSamples | None = None
    """Null without a command."""
    machine: Machine | None = None
    data: DataUsed | None = None
    weights: Weights | None = None
    reference_workload: ReferenceWorkload | None = None
    timeline: Timeline | None = None
    """Null without a training."""
    fp32: Fp32 | None = None
    """Arithmetic of fp32; null if nothing was measured."""
    paces: dict[str, Pace] = {}
    """Of a warm-up run: what a few steps of each of its settings took, by name."""

    @model_validator(mode="after")
    def _a_success_is_measured(self) -> Self:
        if self.outcome == "ok" and self.measurement is None and self.command is None:
            raise ValueRefused(key="measurement", value=None, context="with the outcome ok")
        return self


class Software(Strict):
    """The code that measured, and its environment."""

    study_version: str
    git_commit: str | None
    git_dirty: bool | None
    lock_sha256: str | None
    """Checksum of the lock from which the image, or the environment of packages, was made; null if
    it does not say, and on the host with the start's own packages."""
    engine: str
    """Container engine; `none` means that the run was on the host."""
    engine_reason: str
    engine_version: str | None = None
    image_reference: str | None = None
    """What the image is called; the base name of an archive."""
    image: str | None = None
    """Checksum of the image itself."""
    image_digest: str | None = None
    """Checksum by which a registry knows the image."""


class Allocation(Strict):
    """What a scheduler gave a run."""

    scheduler: Literal["slurm"]
    machine: str | None
    """Class of machine that the study asked for; null if any would do."""
    partition: str | None
    """Partition of the cluster; null if the scheduler does not say."""
    nodes: Count | None
    """Number of nodes."""
    cpus: Count | None
    """Number of CPUs of the node that the run might use."""
    gpus: Count | None
    """Number of GPUs of the node that the run might use."""
    restarts: Count
    """Number of times that the scheduler had begun this job before."""


class Record(JobResult, Versioned):
    """One complete run. It holds raw samples only: every statistic is computed on read."""

    study: str
    run: str
    key: str
    session: int = Field(ge=1, le=10**9)
    """Number of the session: each start of the pipeline that measured something is one."""
    block: int = Field(ge=1, le=2**31)
    position: int = Field(ge=1, le=2**31)
    """Place of the run in the study's seeded order, from 1."""
    started: str
    """Start of the run in UTC, ISO 8601."""
    setting: Setting
    """The run's level of each factor; a path is cut to its base name."""
    settings: Settings
    seed: int
    """Seed of this run, from the study's seed and the run's name without the levels of the factors
    in which the work is the same."""
    process_seconds: Seconds
    """Seconds of the whole process: start-up (also of the container), imports, data, model, fit."""
    other_device_processes: Count | None = None
    """Number of processes that computed on the GPU when this run began; null if unknown."""
    device_percent_before: Count | None = None
    """Utilisation of the GPU in percent when this run began; null if unknown."""
    device_watts_before: Magnitude | None = None
    """Power of the GPU in watts when this run began: its idle power, if nothing else computed."""
    cpu_percent_before: Magnitude | None = None
    """Load of the whole machine in percent before this run began, with no process of the study at
    work."""
    warmed_up: bool = False
    """Whether a warm-up run had run on the device in this start; false without one."""
    quiet: bool | None = None
    """Whether others crossed no limit of the study's `evidence` when this run began; null if
    unknown."""
    waited_seconds: Seconds | None = None
    """Seconds that this run waited for a quiet machine."""
    observed: Observed | None = None
    """What others did during the run; null if unknown."""
    disturbed: list[str] = []
    """Keys of the study's `evidence` whose limit was crossed; a run with any was disturbed."""
    telemetry_sha256: str | None = None
    """Checksum of `telemetry/<run>.<key>.parquet` beside the records; null without samples."""
    started_as: Literal["forked", "fresh"] = "fresh"
    """Whether the run's process was forked from one that had imported torch, or started from
    nothing."""
    node: str | None = Field(default=None, pattern="^[0-9a-f]{8}$")
    """Pseudonym of the machine, which tells runs on several machines apart; null if it is not
    known."""
    allocation: Allocation | None = None
    """What a scheduler gave the run; null where none was at work."""
    software: Software
    record_sha256: str | None = None
    """Checksum of the record without this key; null until it is sealed."""

    @field_validator("disturbed")
    @classmethod
    def _disturbed_by_what_is_watched(cls, kinds: list[str]) -> list[str]:
        for kind in kinds:
            if kind not in Evidence.model_fields:
                raise ValueRefused(value=kind, allowed=Evidence.model_fields)
        return kinds

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Return the record in JSON. Raise :class:`StudyError` if a key, or its own checksum, does
        not fit."""
        record = super().of_text(without_gone(text))
        if record.record_sha256 and record.record_sha256 != checksum(json.loads(text)):
            raise StudyError(
                "record_sha256: it is not the checksum of the other keys: the file was "
                "edited or damaged"
            )
        return record


def sealed(record: Record) -> Record:
    """Return the record with its own checksum."""
    return record.model_copy(
        update={"record_sha256": checksum(json.loads(record.model_dump_json()))}
    )


def checksum(content: dict[str, Any]) -> str:
    """Return the checksum of a record's JSON, whatever its layout, without its own.

    It shows an accident or a careless edit, not a forger, who can compute it anew.
    """
    return json_sha256({key: value for key, value in content.items() if key != "record_sha256"})


def without_paths(settings: Settings) -> Settings:
    """Return the settings with every path cut to its base name, because people share records."""
    values = settings.model_dump()
    for key in ("image", "environment"):
        if values[key] and os.sep in values[key]:
            values[key] = Path(values[key]).name
    if command := values["command"]:
        for key in ("line", "files", "data", "variables"):
            command[key] = plain(command[key])
        values["arguments"] = plain(values["arguments"])
    for section, key in (("dataset", "path"), ("model", "weights")):
        if values[section][key]:
            values[section][key] = Path(values[section][key]).expanduser().resolve().name or section
    return Settings.model_validate(values)


def is_readable(path: Path) -> bool:
    """Return whether the path is a file that can be read whole: a sparse one of a terabyte takes no
    room on a disk."""
    return path.is_file() and path.stat().st_size <= LARGEST
