"""Settings of no study, records with planted measurements, and findings of one kind among all."""

from collections.abc import Iterable
from typing import Any, TypeVar

import pandas as pd
from pydantic import BaseModel

from study.analysis.analysis import Analysis, analyse
from study.analysis.table.tables import as_epochs
from study.artifacts.checked import Records
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.setting import Level, Setting, joined
from study.config.names import level_words
from study.config.study import Study
from tests.timings import labelled

Kind = TypeVar("Kind")
Model = TypeVar("Model", bound=BaseModel)
KEYS = {
    "size": "training.batch_size",
    "loop": "training.loop",
    "precision": "training.precision",
    "strategy": "training.strategy",
    "kind": "loader.kind",
    "layout": "training.memory_format",
}


def setting(**levels: Level) -> Setting:
    """The setting with these levels; a key of two parts has a short name here."""
    named = {KEYS.get(key, key): level for key, level in levels.items()}
    words = [level_words(key, level) for key, level in named.items()]
    return Setting(levels=named, label=joined(words), short="-".join(map(str, levels.values())))


def analysis_of(study: Study, frame: pd.DataFrame) -> Analysis:
    """The analysis of a table of a study, whose first screen knows no record."""
    plan = Plan(name="planted", study=study, runs=[], engine="none", engine_reason="planted")
    labels = labelled(study, frame.assign(message=frame.get("message")))
    return analyse(plan, labels, Records(), as_epochs())


def with_measured(record: Record, **changes: Any) -> Record:
    """The record, whose measurement has these values."""
    assert record.measurement is not None
    return record.model_copy(update={"measurement": record.measurement.model_copy(update=changes)})


def only(kind: type[Kind], found: Iterable[object]) -> list[Kind]:
    """Return the findings of one kind."""
    return [one for one in found if isinstance(one, kind)]


def changed(many: Iterable[Model], **changes: Any) -> list[Model]:
    """The same models with these values."""
    return [one.model_copy(update=changes) for one in many]
