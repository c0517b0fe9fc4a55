"""Settings of no study, and records with planted measurements."""

from typing import Any

from study.artifacts.record import Record
from study.artifacts.setting import Level, Setting, joined, level_words

KEYS = {
    "size": "training.batch_size",
    "loop": "training.loop",
    "precision": "training.precision",
    "strategy": "training.strategy",
    "kind": "loader.kind",
}


def setting(**levels: Level) -> Setting:
    """The setting with these levels; a key of two parts has a short name here."""
    named = {KEYS.get(key, key): level for key, level in levels.items()}
    words = [level_words(key, level) for key, level in named.items()]
    return Setting(levels=named, label=joined(words), short="-".join(words))


def with_measured(record: Record, **changes: Any) -> Record:
    """The record, whose measurement has these values."""
    assert record.measurement is not None
    return record.model_copy(update={"measurement": record.measurement.model_copy(update=changes)})
