"""Epoch by epoch: how long each trained, and the losses that a document prints. From records, medians over runs."""

from dataclasses import dataclass
from statistics import median

import pandas as pd

from study.analysis.words import device_words, number, short_key
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.samples import Epoch
from study.config.settings import get
from study.config.study import shown


@dataclass(frozen=True)
class EpochRow:
    """One quantity of one setting, a cell an epoch."""

    setting: str
    quantity: str
    cells: list[str | None]
    """None where an epoch has none of it."""


PUBLISHED = {"time": "training (s)", "loss_sum": "training loss, sum over steps"}
"""What ``published.csv`` gives an epoch: its metric's end, and the quantity."""
QUANTITIES = (
    ("training (s)", "train_seconds"),
    ("validation (s)", "valid_seconds"),
    ("training loss, mean over images", "train_loss"),
    ("training loss, sum over steps", "loss_sum"),
    ("validation loss", "valid_loss"),
    ("accuracy", "accuracy"),
)


def epoch_rows(plan: Plan, records: dict[str, Record]) -> list[EpochRow]:
    """A row for each setting and each quantity that any of its epochs has."""
    rows = []
    for setting, runs in _by_setting(plan, records).items():
        for words, name in QUANTITIES:
            columns = [[getattr(run[at], name) for run in runs] for at in range(len(runs[0]))]
            cells = [_cell(name, [value for value in column if value is not None]) for column in columns]
            if any(cells):
                rows.append(EpochRow(setting, words, cells))
    return rows


def published_epochs(study: str, published: pd.DataFrame) -> list[EpochRow]:
    """The same of a document that prints its epochs: a row for each of its machines and quantities."""
    parts = published["metric"].str.extract(r"^epoch_(?P<epoch>\d+)_(?P<kind>\w+)$")
    mine = published.join(parts)[(published["study"] == study) & parts["kind"].isin(PUBLISHED)]
    rows = []
    for (source, device, kind), found in mine.groupby(["source", "device", "kind"], sort=False):
        printed = dict(zip(found["epoch"].astype(int), found["value"].astype(float), strict=True))
        hardware = found["hardware"].iloc[0]
        where = device_words(str(device)) if pd.isna(hardware) else str(hardware)
        cells = [number(printed[epoch]) if epoch in printed else None for epoch in range(1, max(printed) + 1)]
        rows.append(EpochRow(f"published ({source}): {where}", PUBLISHED[str(kind)], cells))
    return rows


def padded(rows: list[EpochRow]) -> list[EpochRow]:
    """All as long as the longest."""
    longest = max((len(row.cells) for row in rows), default=0)
    return [EpochRow(row.setting, row.quantity, row.cells + [None] * (longest - len(row.cells))) for row in rows]


def _cell(name: str, values: list[float]) -> str | None:
    """The median in words; of a time without a validation, and of a loss that is no finite number, none."""
    if not values or (name == "valid_seconds" and not any(values)):
        return None
    return f"{100 * median(values):.1f}%" if name == "accuracy" else number(median(values))


def _by_setting(plan: Plan, records: dict[str, Record]) -> dict[str, list[list[Epoch]]]:
    """The epochs of each successful run, by its setting in words."""
    found: dict[str, list[list[Epoch]]] = {}
    keys, factors = plan.study.compared, plan.study.factors
    for run in sorted(plan.runs, key=lambda run: [factors[key].index(run.factors[key]) for key in keys]):
        record = records.get(run.name)
        if record is None or record.measurement is None:
            continue
        words = ", ".join(_words(plan, key, get(run.settings, key)) for key in keys) or "the run"
        found.setdefault(words, []).append(record.measurement.epochs)
    return found


def _words(plan: Plan, key: str, level: object) -> str:
    """A name speaks for itself; a number does not."""
    name = shown(plan.study, key, level)
    return device_words(name) if isinstance(name, str) else f"{short_key(key)} {name}"
