"""What was run on what, as the records tell it: their fields, and epoch by epoch.

Times and losses of an epoch are medians over the runs of a setting, accuracy is the mean, as
everywhere.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from statistics import fmean, median
from typing import Any

import pandas as pd
from pydantic import Field

from study.analysis.stats.usable import counted
from study.analysis.words import bytes_words, number, setting_words, short_key
from study.artifacts.checked import Records
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.samples import Epoch
from study.artifacts.setting import setting_of
from study.base.privacy import plain
from study.base.strict import Strict
from study.config import names
from study.config.names import level_words
from study.config.rules import as_yaml
from study.config.settings import Settings, description
from study.config.study import TOTALS_OF_INFERENCE, Study, shown


class EpochRow(Strict):
    """One quantity of one setting, with a cell for each epoch."""

    quantity: str
    cells: list[str | None] = Field(description="In words; null where an epoch was not measured.")


class EpochGroup(Strict):
    """All quantities of one setting."""

    setting: str
    rows: list[EpochRow]


class About(Strict):
    """What was run on what."""

    facts: dict[str, str] = Field(
        {}, description="Fields of the records by name, with their values or their range."
    )
    epochs: list[EpochGroup] = Field(
        [], description="Times, losses and accuracies of each epoch, of runs that count."
    )


def about(plan: Plan, frame: pd.DataFrame, found: Records) -> About:
    """Return what the records of a plan tell; ``frame`` is the plan's table."""
    records, rows = found.included, counted(frame)
    facts = facts_of(plan.study, rows, records)
    reasons = {run.unavailable for run in plan.runs if run.name not in records} - {None}
    if reasons:
        facts["unavailable"] = "; ".join(sorted(map(str, reasons)))
    return About(facts=facts, epochs=epochs_of(plan, records, set(rows["run"])))


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


QUANTITIES = (
    ("training (s)", "train_seconds"),
    ("validation (s)", "valid_seconds"),
    ("training loss, mean over images", "train_loss"),
    ("training loss, sum over steps", "loss_sum"),
    ("validation loss", "valid_loss"),
    ("accuracy", "accuracy"),
)


def epochs_of(
    plan: Plan, records: Mapping[str, Record], counted: Collection[str]
) -> list[EpochGroup]:
    """Return the quantities of each setting, each with a cell for every epoch.

    ``counted`` are the names of the runs that count.
    """
    if plan.study.total in TOTALS_OF_INFERENCE:
        return []
    by_setting = _by_setting(plan, {name: records[name] for name in records if name in counted})
    # A run that reached its target has fewer epochs than others.
    longest = max(map(len, chain.from_iterable(by_setting.values())), default=0)
    found = []
    for setting, runs in by_setting.items():
        rows = []
        for quantity, name in QUANTITIES:
            columns = [
                [getattr(run[at], name) for run in runs if at < len(run)] for at in range(longest)
            ]
            cells = [
                _cell(name, [value for value in column if value is not None]) for column in columns
            ]
            rows += [EpochRow(quantity=quantity, cells=cells)] if any(cells) else []
        found += [EpochGroup(setting=setting, rows=rows)] if rows else []
    return found


def _cell(name: str, values: list[float]) -> str | None:
    """Return the median in words, of an accuracy the mean; None without values, or for no
    validation's time."""
    if not values or (name == "valid_seconds" and not any(values)):
        return None
    return f"{100 * fmean(values):.1f}%" if name == "accuracy" else number(median(values))


def _by_setting(plan: Plan, records: Mapping[str, Record]) -> dict[str, list[list[Epoch]]]:
    found: dict[str, list[list[Epoch]]] = {}
    keys, factors = plan.study.compared, plan.study.factors
    for run in sorted(
        plan.runs, key=lambda run: [factors[key].index(run.setting.levels[key]) for key in keys]
    ):
        record = records.get(run.name)
        if record is None or record.measurement is None:
            continue
        levels = {key: shown(plan.study, key, run.setting.levels[key]) for key in keys}
        words = setting_words(setting_of(plan.study, levels)) or "the run"
        found.setdefault(words, []).append(record.measurement.epochs)
    return found


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
        *((f"{short_key(key)} ({_shown(study, key)})", description(key)) for key in keys),
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
