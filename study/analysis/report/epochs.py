"""Epoch by epoch: times and losses as medians over the runs of a setting, accuracy as the mean, as everywhere."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from statistics import fmean, median

from study.analysis.words import device_words, number, setting_words
from study.artifacts.plan import Plan
from study.artifacts.published import Published
from study.artifacts.record import Record
from study.artifacts.samples import Epoch
from study.config.study import shown


@dataclass(frozen=True)
class EpochRow:
    """One quantity of one setting, with a cell for each epoch."""

    setting: str
    quantity: str
    cells: list[str | None]
    """None where an epoch was not measured."""


@dataclass(frozen=True)
class EpochGroup:
    """All quantities of one setting, whose name then stands once."""

    setting: str
    rows: list[EpochRow]


PUBLISHED = {"time": "training (s)", "loss_sum": "training loss, sum over steps"}
"""Quantities of an epoch in ``published.csv``, by the end of the metric's name."""
QUANTITIES = (
    ("training (s)", "train_seconds"),
    ("validation (s)", "valid_seconds"),
    ("training loss, mean over images", "train_loss"),
    ("training loss, sum over steps", "loss_sum"),
    ("validation loss", "valid_loss"),
    ("accuracy", "accuracy"),
)


def epoch_rows(plan: Plan, records: dict[str, Record], counted: Collection[str]) -> list[EpochRow]:
    """Return a row for each setting and each quantity that was measured in any of its epochs.

    ``counted`` are the names of the runs that count.
    """
    rows = []
    for setting, runs in _by_setting(plan, {name: records[name] for name in records if name in counted}).items():
        for words, name in QUANTITIES:
            # A run that reached its target has fewer epochs than others of its setting.
            longest = max(map(len, runs))
            columns = [[getattr(run[at], name) for run in runs if at < len(run)] for at in range(longest)]
            cells = [_cell(name, [value for value in column if value is not None]) for column in columns]
            if any(cells):
                rows.append(EpochRow(setting, words, cells))
    return rows


def published_epochs(published: Published) -> list[EpochRow]:
    """Return the rows of a document that prints its epochs: one for each of its machines and quantities."""
    printed: dict[tuple[str, str, str], dict[int, float]] = {}
    for figure in published.figures:
        epoch = re.fullmatch(r"epoch_(\d+)_(\w+)", figure.metric)
        if epoch and epoch[2] in PUBLISHED:
            where = figure.hardware or device_words(str(figure.at.get("device", "")))
            printed.setdefault((figure.source, where, epoch[2]), {})[int(epoch[1])] = figure.value
    rows = []
    for (source, where, kind), values in printed.items():
        cells = [number(values[epoch]) if epoch in values else None for epoch in range(1, max(values) + 1)]
        rows.append(EpochRow(f"published ({published.sources[source].short_name}): {where}", PUBLISHED[kind], cells))
    return rows


def grouped(rows: list[EpochRow]) -> list[EpochGroup]:
    """Return the rows by their settings, each with a cell for every epoch of the longest."""
    longest = max((len(row.cells) for row in rows), default=0)
    groups: dict[str, EpochGroup] = {}
    for row in rows:
        padded = EpochRow(row.setting, row.quantity, row.cells + [None] * (longest - len(row.cells)))
        groups.setdefault(row.setting, EpochGroup(row.setting, [])).rows.append(padded)
    return list(groups.values())


def _cell(name: str, values: list[float]) -> str | None:
    """Return the median in words, of an accuracy the mean; None without values, or for no validation's time."""
    if not values or (name == "valid_seconds" and not any(values)):
        return None
    return f"{100 * fmean(values):.1f}%" if name == "accuracy" else number(median(values))


def _by_setting(plan: Plan, records: dict[str, Record]) -> dict[str, list[list[Epoch]]]:
    """Return the epochs of each successful run, by its setting in words."""
    found: dict[str, list[list[Epoch]]] = {}
    keys, factors = plan.study.compared, plan.study.factors
    for run in sorted(plan.runs, key=lambda run: [factors[key].index(run.setting.levels[key]) for key in keys]):
        record = records.get(run.name)
        if record is None or record.measurement is None:
            continue
        words = setting_words({key: shown(plan.study, key, run.setting.levels[key]) for key in keys}) or "the run"
        found.setdefault(words, []).append(record.measurement.epochs)
    return found
