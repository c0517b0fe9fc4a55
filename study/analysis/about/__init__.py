"""What was run on what, as the records tell it: facts, and epoch by epoch.

Times and losses of an epoch are medians over the runs of a setting, accuracy is the mean, as everywhere.
"""

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean, median

import pandas as pd
from pydantic import Field

from study.analysis.about.facts import facts_of
from study.analysis.stats.usable import counted
from study.analysis.words import number, setting_words
from study.artifacts.checked import Records
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.samples import Epoch
from study.artifacts.setting import setting_of
from study.base.strict import Strict
from study.config.study import TOTALS_OF_INFERENCE, shown


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

    facts: dict[str, str] = Field({}, description="By name; a fact that differs between runs has all of its values.")
    epochs: list[EpochGroup] = Field([], description="Times, losses and accuracies of each epoch, of runs that count.")


def about(plan: Plan, frame: pd.DataFrame, found: Records, warm_up_runs: Sequence[Record]) -> About:
    """Return what the records of a plan, and the warm-up runs of every start, tell; ``frame`` is the plan's table."""
    records = found.included
    return About(
        facts=facts_of(plan, records, warm_up_runs), epochs=epochs_of(plan, records, set(counted(frame)["run"]))
    )


QUANTITIES = (
    ("training (s)", "train_seconds"),
    ("validation (s)", "valid_seconds"),
    ("training loss, mean over images", "train_loss"),
    ("training loss, sum over steps", "loss_sum"),
    ("validation loss", "valid_loss"),
    ("accuracy", "accuracy"),
)


def epochs_of(plan: Plan, records: Mapping[str, Record], counted: Collection[str]) -> list[EpochGroup]:
    """Return the quantities of each setting, each with a cell for every epoch.

    ``counted`` are the names of the runs that count.
    """
    if plan.study.total in TOTALS_OF_INFERENCE:
        return []
    by_setting = _by_setting(plan, {name: records[name] for name in records if name in counted})
    # A run that reached its target has fewer epochs than others.
    longest, found = max((len(run) for runs in by_setting.values() for run in runs), default=0), []
    for setting, runs in by_setting.items():
        rows = []
        for quantity, name in QUANTITIES:
            columns = [[getattr(run[at], name) for run in runs if at < len(run)] for at in range(longest)]
            cells = [_cell(name, [value for value in column if value is not None]) for column in columns]
            rows += [EpochRow(quantity=quantity, cells=cells)] if any(cells) else []
        found += [EpochGroup(setting=setting, rows=rows)] if rows else []
    return found


def _cell(name: str, values: list[float]) -> str | None:
    """Return the median in words, of an accuracy the mean; None without values, or for no validation's time."""
    if not values or (name == "valid_seconds" and not any(values)):
        return None
    return f"{100 * fmean(values):.1f}%" if name == "accuracy" else number(median(values))


def _by_setting(plan: Plan, records: Mapping[str, Record]) -> dict[str, list[list[Epoch]]]:
    found: dict[str, list[list[Epoch]]] = {}
    keys, factors = plan.study.compared, plan.study.factors
    for run in sorted(plan.runs, key=lambda run: [factors[key].index(run.setting.levels[key]) for key in keys]):
        record = records.get(run.name)
        if record is None or record.measurement is None:
            continue
        levels = {key: shown(plan.study, key, run.setting.levels[key]) for key in keys}
        words = setting_words(setting_of(plan.study, levels)) or "the run"
        found.setdefault(words, []).append(record.measurement.epochs)
    return found
