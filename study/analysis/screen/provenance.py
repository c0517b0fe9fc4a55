"""What was run on what: the job line (what was trained, on how many images, on which machine, in
how many runs, and when), and the fields of the records."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from textwrap import shorten
from typing import Any

import pandas as pd

from study.analysis.stats.usable import counted
from study.analysis.words import bytes_words, device_words, listed, number
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.base.errors import quantity
from study.base.privacy import plain
from study.config.sections import is_own, short_name
from study.config.settings import DEFAULTS, flat, get
from study.config.study import Study

LONGEST_COMMAND = 40
"""Letters of a command in the job line; the whole line is among the facts."""


def job_of(plan: Plan, records: Mapping[str, Record]) -> list[str]:
    """Return the parts of the job line; what the study varies is in its question and its chart, and
    not here."""
    used = [record for record in records.values() if record.outcome == "ok"]
    size = "reduced size" if plan.study.full else ""
    if plan.study.rung:
        size = "shortened for this machine by its ladder"
    images = dict[str, None]()
    for record in used:
        if record.data:
            data = record.settings.dataset
            words = f"{record.data.train_images} {data.images_words} of {data.image_size} px"
            images[words] = None
    told = [
        _training(plan.study, used),
        size,
        listed(list(images)[:2]) if images else "",
        *_machines(used),
        runs_of(plan, records),
    ]
    days = sorted({day for record in records.values() if (day := _day(record.started))})
    if days:
        first = f"{days[0]:%-d %b} to " if len(days) > 1 else ""
        told.append(f"{first}{days[-1]:%-d %b %Y}")
    return [*filter(None, told)]


def _training(study: Study, used: Sequence[Record]) -> str:
    if study.command:
        words = " ".join(Path(word).name or word for word in study.command.line.split())
        return shorten(words, LONGEST_COMMAND, placeholder=" …")
    told = []
    if "model.name" not in study.factors:
        found = re.fullmatch(r"resnet(\d+)", study.model.name)
        told.append(f"ResNet-{found[1]}" if found else short_name(study.model.name))
    kinds = {
        record.weights.kind
        for record in used
        if record.weights and not is_own(record.settings.model.name)
    }
    if len(kinds) == 1:
        told.append("random weights" if kinds == {"random"} else "ImageNet weights")
    if "training.epochs" not in study.factors:
        most = "at most " * bool(study.training.target_accuracy)
        told.append(f"{most}{quantity(study.training.every_epoch, 'epoch')}")
    for key, words in (("training.batch_size", "batch size {}"), ("training.precision", "{}")):
        level = get(study, key)
        if key not in study.factors and level not in ("auto", "fp32"):
            told.append(words.format(level))
    return ", ".join(told)


def _machines(used: Sequence[Record]) -> list[str]:
    beside = any(record.settings.device != "cpu" for record in used)
    told: dict[str, None] = {}
    for record in sorted(used, key=lambda one: one.settings.device == "cpu"):
        machine = record.machine
        if machine and record.settings.device != "cpu":
            told[machine.device_name] = None
        elif machine:
            # without marks, clock and the word: ``AMD EPYC 7B13``
            marks = r"\((R|TM)\)|@.*|\b(Processor|CPU)\b|\b\d+-Core\b"
            name = " ".join(re.sub(marks, " ", machine.cpu_name).split())
            cores = machine.cpu_cores or 1
            measured, share = record.measurement, ""
            if measured and record.settings.training.threads == "auto" and measured.threads < cores:
                share = f"{measured.threads} of "  # torch itself chose fewer: it may use no others
            brief = f"{share}{cores} {name.partition(' ')[2] or name} core{'s' * (cores != 1)}"
            told[brief if beside else f"{name}, {share}{quantity(cores, 'core')}"] = None
    return list(told)


def runs_of(plan: Plan, records: Mapping[str, Record]) -> str:
    """Return the number of runs, of each setting, and of those that failed or that no device is
    there for."""
    done = [record for record in records.values() if record.outcome == "ok"]
    failed = Counter(
        record.outcome for record in records.values() if record.outcome not in ("ok", "unavailable")
    )
    planned = sum(not run.unavailable for run in plan.runs)
    if not done:
        told = ["no run"]
    elif len(records) < planned:
        told = [f"{len(done)} of {planned} runs"]
    else:
        told = [f"{quantity(len(done), 'run')}, {plan.study.runs_a_setting} each"]
    why = {"out_of_memory": "out of memory"}
    told += [
        f"{count} failed{f': {why[kind]}' if kind in why else ''}" for kind, count in failed.items()
    ]
    made = {record.settings.device for record in done}
    away = {run.settings.device for run in plan.runs if run.unavailable} - made
    told += [f"no {device_words(device)} here" for device in sorted(away)]
    return "; ".join(told)


def _day(started: str) -> date | None:
    """Return the day of a time, or None for a text that is none: a record may come from
    anywhere."""
    try:
        return datetime.fromisoformat(started).date()
    except ValueError:
        return None


PARTS = ("data", "weights", "fp32", "machine", "software")
"""Parts of a record whose fields are facts, beside its settings."""
MEASURED = ("images_processed", "threads", "workers")
"""Columns of the table of timings that are facts."""


def facts_of(plan: Plan, frame: pd.DataFrame, records: Mapping[str, Record]) -> dict[str, str]:
    """Return each field of the successful records by its name, with all of its values, or with the
    range of numbers; and why runs could not be made.

    Of the settings these are the ones that are not the default of every run. ``frame`` is the
    plan's table.
    """
    study, frame, usual = plan.study, counted(frame), dict(flat("", DEFAULTS.model_dump()))
    values: dict[str, list[Any]] = {}
    for record in records.values():
        if record.outcome == "ok":
            for name, value in _fields(record):
                values.setdefault(name, []).append(value)
    for column in MEASURED:
        values[column] = frame[column].dropna().astype(int).tolist()
    if not study.command:
        values["precision"] = frame["precision"].dropna().tolist()
    reduced = [
        f"{key} {study.reduced[key]}, not {value}"
        for key, value in study.full.items()
        if key in study.reduced
    ]
    facts = {"reduced size": "; ".join(reduced)} if reduced else {}
    for name, every in values.items():
        known = [value for value in every if value not in (None, [])]
        if known and any(value != usual.get(name) for value in known):
            facts[name] = _range(name, known)
    absent = [run for run in plan.runs if run.name not in records]
    reasons = {run.unavailable for run in absent if run.unavailable}
    if reasons:
        facts["unavailable"] = "; ".join(sorted(reasons))
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
    if record.command:
        yield "command.program", record.command.program
        yield "command.copied_files", record.command.files
    yield "started_as", record.started_as


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
