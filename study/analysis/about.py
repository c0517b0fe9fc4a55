"""What was run on what, as the fields of the records tell it."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from study.analysis.stats.usable import counted
from study.analysis.words import bytes_words, number
from study.artifacts.checked import Records
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.base.privacy import plain
from study.config import names
from study.config.keys import as_yaml
from study.config.names import level_words
from study.config.settings import Settings, description, in_words
from study.config.study import Study, shown


def about(plan: Plan, frame: pd.DataFrame, found: Records) -> dict[str, str]:
    """Return what the records of a plan tell; ``frame`` is the plan's table."""
    records, rows = found.included, counted(frame)
    facts = facts_of(plan.study, rows, records)
    absent = [run for run in plan.runs if run.name not in records]
    reasons = {run.unavailable for run in absent if run.unavailable}
    if reasons:
        facts["unavailable"] = "; ".join(sorted(reasons))
    return facts


PARTS = ("data", "weights", "fp32", "machine", "software")
"""Parts of a record whose fields are facts, beside its settings."""
MEASURED = ("images_processed", "threads", "workers")
"""Columns of the table of timings that are facts."""


def facts_of(study: Study, frame: pd.DataFrame, records: Mapping[str, Record]) -> dict[str, str]:
    """Return each field of the successful records by its name, with all of its values, or with the
    range of numbers.

    Of the settings these are the ones that are not the default of every run. ``frame`` holds the
    rows that count.
    """
    values: dict[str, list[Any]] = {}
    for record in records.values():
        if record.outcome == "ok":
            for name, value in _fields(record):
                values.setdefault(name, []).append(value)
    for column in MEASURED:
        values[column] = frame[column].dropna().astype(int).tolist()
    values["precision"] = frame["precision"].dropna().tolist()
    full = {key: value for key, value in study.full.items() if key in study.reduced}
    reduced = [f"{key} {study.reduced[key]}, not {value}" for key, value in full.items()]
    facts = {"reduced size": "; ".join(reduced)} if reduced else {}
    for name, every in values.items():
        known = [value for value in every if value is not None]
        if known and any(value != DEFAULTS.get(name) for value in known):
            facts[name] = _range(name, known)
    return facts


def _fields(record: Record) -> Iterator[tuple[str, Any]]:
    """Yield the dotted name and the value of each field that is a fact."""
    yield from flat("", record.settings.model_dump())
    for part in PARTS:
        values = getattr(record, part)
        if values is not None:
            yield from flat(f"{part}.", values.model_dump(exclude={"libraries"}))
    if record.machine:
        yield "machine.software", record.machine.software
    yield "started_as", record.started_as


def flat(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each value of nested mappings with its dotted key after ``prefix``."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from flat(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}", value


DEFAULTS = dict(flat("", Settings.model_validate({}).model_dump()))


def _range(name: str, values: list[Any]) -> str:
    """Return the smallest and the largest of numbers, and of other values each that there is."""
    words = (
        bytes_words if name.endswith("_bytes") else number if isinstance(values[0], float) else str
    )
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        ends = dict.fromkeys([words(min(values)), words(max(values))])
        return " to ".join(ends)
    lists = [value if isinstance(value, list) else [value] for value in values]
    told = {", ".join(plain(str(one)) for one in several) for several in lists}
    return "; ".join(sorted(text[:12] if "sha256" in name else text for text in told))


def glossary(study: Study) -> list[tuple[str, str]]:
    """Return each name that the study gives with its levels, and each factor with its levels and
    what it is.

    Where a setting has a level of one factor there are only the names.
    """
    whole = names.whole(study.names, study.factors, study.only)
    told = [
        (name, ", ".join(f"{key}: {as_yaml(level)}" for key, level in own.items()))
        for name, own in whole.items()
    ]
    if len(study.compared) < 3:
        return told
    keys = [key for key in study.compared if key != "device"]
    return [
        *told,
        *((f"{in_words(key)} ({_shown(study, key)})", description(key)) for key in keys),
    ]


def _shown(study: Study, key: str) -> str:
    """Return the levels of a factor in words, each with what the study's file has where that is
    something else."""
    told = []
    for level in study.factors[key]:
        word, short = level_words(key, level), str(shown(study, key, level))
        plain = short if word == str(level) else word
        alike = isinstance(level, bool) or key == "device" or plain == short
        told.append(plain if alike else f"{word} = {short}")
    return ", ".join(told)
