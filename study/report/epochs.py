"""Epoch by epoch: how long each trained, and the losses that a document prints. From records, medians over runs."""

from dataclasses import dataclass
from statistics import median

from study.config import get, shown
from study.measure.samples import Epoch
from study.plan import Plan
from study.records import Record
from study.words import device_words, number, short_key


@dataclass(frozen=True)
class EpochRow:
    """One quantity of one setting, a cell an epoch."""

    setting: str
    quantity: str
    cells: list[str | None]
    """None where an epoch has none of it."""


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
