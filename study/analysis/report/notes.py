"""What the page says of a study's runs before any number: how many there are, of what, and on which machine."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime

from study.analysis.words import device_words
from study.artifacts.plan import Plan
from study.artifacts.prepared import fell_back
from study.artifacts.record import Record
from study.base.durations import duration_words, quantity
from study.config.sections import is_own
from study.config.study import Study


def counts(plan: Plan, records: Mapping[str, Record]) -> str:
    """Return how many of the planned runs succeeded, by device, and why the others did not."""
    told = []
    by_device = Counter(run.settings.device for run in plan.runs)
    done = Counter(record.settings.device for record in records.values() if record.outcome == "ok")
    away = {run.settings.device: run.unavailable for run in plan.runs if run.unavailable}
    for device, planned in by_device.items():
        if device in away and not done[device]:
            told.append(f"{planned} {device_words(device)} runs skipped: {away[device]}")
        else:
            told.append(f"{done[device]} of {planned} {device_words(device)} runs")
    return "; ".join(told)


def summary(plan: Plan, records: Mapping[str, Record], wall: float, in_means: int) -> list[str]:
    """Return the parts of the line below the title: machine, runs, date, ``wall`` seconds, images and weights.

    ``in_means`` of the runs that succeeded are in the means; the others were excluded.
    """
    used = [record for record in records.values() if record.outcome == "ok"]
    machines = dict.fromkeys(record.machine.device_name for record in used if record.machine)
    told = [*machines, counts(plan, records) + (f", {in_means} of them count" if in_means < len(used) else "")]
    if plan.study.runs_a_setting != "1":
        told.append(f"{plan.study.runs_a_setting} a setting")
    told += _when(list(records.values()))
    told += [f"{duration_words(wall)} in all"] if wall else []
    if any(record.data and record.data.generated for record in used):
        told.append("generated images")
    if any(record.weights and record.weights.kind == "random" and not is_own(_model(record)) for record in used):
        told.append("random weights")
    return told


def _model(record: Record) -> str:
    return record.settings.model.name


def _when(records: Sequence[Record]) -> list[str]:
    """Return the first and the last day of the runs."""
    days = sorted({day for record in records if (day := _day(record.started))})
    if not days:
        return []
    return [f"{days[0]:%-d %b %Y}" if len(days) == 1 else f"{days[0]:%-d %b} to {days[-1]:%-d %b %Y}"]


def _day(started: str) -> date | None:
    """Return the day of a time, or None for a text that is none: a record may come from anywhere."""
    try:
        return datetime.fromisoformat(started).date()
    except ValueError:
        return None


def reduced(study: Study) -> list[str]:
    """Return a note that lists the keys of a reduced size with their full values; none at full size."""
    if not study.full:
        return []
    keys = [
        f"{key} {_plain(value)} in place of {_plain(study.full[key])}"
        for key, value in study.reduced.items()
        if key in study.full
    ]
    return [f"Reduced size: {'; '.join(keys)}. The full size: --config size=full"]


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "its default" if value is None else str(value)


def origins(records: Sequence[Record]) -> list[str]:
    """Return notes on images that are no photographs, and on weights that are not pretrained."""
    notes = []
    if any(record.data and record.data.generated for record in records):
        notes.append(
            "The images are generated, not photographs: the times are valid, the accuracies hold for drawn images only."
        )
    # Networks that have no pretrained weights need no note on random ones.
    weighted = [record for record in records if record.weights and not is_own(_model(record))]
    random = [record for record in weighted if record.weights and record.weights.kind == "random"]
    again = (
        f" To look for ImageNet weights again: python -m study retry {records[0].study} --weights" if records else ""
    )
    for reason in sorted({record.weights.reason for record in random if record.weights}):
        who = "Every run starts" if len(random) == len(weighted) else f"{len(random)} of {len(weighted)} runs start"
        sought = any(record.weights and fell_back(record.weights) for record in random)
        notes.append(
            f"{who} from random weights ({_said(reason)}): the times are valid, the accuracies are not those of "
            "transfer learning." + (again if sought else "")
        )
    return notes


def _said(reason: str) -> str:
    """Return a reason without the number of an error, and a name that was not found in plain words."""
    told = re.sub(r"\[Errno -?\d+\] ", "", reason)
    unknown = "Name or service not known|Temporary failure in name resolution|nodename nor servname provided.*"
    return re.sub(unknown, "the server's name was not found, as without a network", told)


def oddities(records: Mapping[str, Record], refused_aside: Mapping[str, str]) -> list[str]:
    """Return notes on files that were left out, and on records that do not fit or carry no checksum."""
    left = {record.data.left_out for record in records.values() if record.data and record.data.left_out}
    bare = sum(record.record_sha256 is None for record in records.values())
    return [
        *([f"The data leave out {quantity(max(left), 'file')}: the manifest names each reason."] if left else []),
        *(f"{name}, excluded before, does not fit: {why}." for name, why in refused_aside.items()),
        *([f"Without a checksum of their own: {quantity(bare, 'record')}. An edit would not show."] if bare else []),
    ]
