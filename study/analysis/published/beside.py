"""Published figures beside those measured here: the same quantity, its ratio to the series' first, and what differs.

A time on other hardware is no check of ours, a ratio of two times is the nearer to one: both are given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from study.analysis.stats.log_model import fit_log_model
from study.analysis.stats.usable import Estimate, estimate, usable_runs
from study.analysis.words import device_words, listed, short_key
from study.config.settings import get
from study.config.study import Study

METRICS: dict[str, tuple[str, str, float]] = {
    "fit_time": ("training time (s)", "fit_seconds", 1.0),
    "epoch_time": ("time of an epoch (s)", "epoch_seconds", 1.0),
    "test_accuracy": ("test accuracy (%)", "accuracy", 100.0),
    "device_memory_peak": ("peak device memory (MiB)", "peak_device_allocated_bytes", 1 / 2**20),
    "parameters": ("parameters", "parameters", 1.0),
}
"""What is compared: its words, the column of the table of timings, what turns ours into the published unit."""
UNITS = {"million": 1e-6}
"""Units that a document chose by itself, and what turns ours into them."""
TIMES = ("fit_time", "epoch_time")
STRATEGIES = {"mirrored": "ddp", "multi_worker": "ddp_two_nodes"}
NAMES = {"fp16_amp": "fp16", "small": "lab2_small", "medium": "lab2_medium", "large": "lab2_large"}
"""Published levels that are called otherwise here; of the second lab's networks the sizes alone were printed."""
SETS = {"cifar10": (60_000, 32), "mnist": (70_000, 28), "birds-woodland": (1030, 192)}
"""Published data sets: images in all, and the pixels of a side that the documents trained on."""
CONDITIONS = {
    "device": "device",
    "model": "model.name",
    "batch_size": "training.batch_size",
    "num_workers": "loader.workers",
    "precision": "training.precision",
}


@dataclass(frozen=True)
class Row:
    """One published figure with ours."""

    line: int
    label: str
    hardware: str
    published: float
    published_ratio: float | None
    ours: Estimate | None
    ours_ratio: Estimate | None
    runs: int


@dataclass(frozen=True)
class Series:
    """The figures of one quantity in one table of one document."""

    source: str
    table: str
    metric: str
    words: str
    setting: str
    """What tells the rows apart."""
    rows: tuple[Row, ...]
    base: str | None
    """Label of the row that the ratios are over, the first that was measured here; None of what makes no ratio."""
    differs: tuple[str, ...]
    notes: tuple[str, ...]
    """What ``published.csv`` notes on its figures."""
    comparable: str


def beside(study: Study, frame: pd.DataFrame, published: pd.DataFrame) -> list[Series]:
    """Every series of ``published`` (rows of ``published.csv``) of the study's document, measured here or not."""
    mine = published[(published["study"] == study.published) & published["metric"].isin(METRICS)]
    mine = mine[mine["value"].notna() & (mine["table"] != "claim")]
    return [
        _series(study, usable_runs(frame, _column(study, str(metric))), rows, str(metric))
        for (_, _, metric), rows in mine.groupby(["source", "table", "metric"], sort=False)
    ]


def _series(study: Study, usable: pd.DataFrame, rows: pd.DataFrame, metric: str) -> Series:
    words, _, scale = METRICS[metric]
    unit = str(rows["unit"].iloc[0])
    if unit in UNITS:
        words, scale = f"{words} ({unit})", scale * UNITS[unit]
    column = _column(study, metric)
    lines = [int(str(index)) + 2 for index in rows.index]  # the file's first line is its header
    conditions = [conditions_of(row) for _, row in rows.iterrows()]
    keys = study.compared
    if metric == "parameters":  # they follow from the network alone, wherever it trains
        conditions = [{key: level for key, level in row.items() if key == "model.name"} for row in conditions]
        keys = [key for key in keys if key == "model.name"]
    apart = [key for key in CONDITIONS.values() if len({row.get(key) for row in conditions}) > 1]
    matched = [_matching(study, usable, row, keys, apart) for row in conditions]
    share, measured = metric == "test_accuracy", any(map(len, matched))
    base = None if share else next((place for place, runs in enumerate(matched) if len(runs)), 0)
    values = [float(value) for value in rows["value"]]
    setting, labels = _labels(rows)
    return Series(
        source=str(rows["source"].iloc[0]),
        table=str(rows["table"].iloc[0]),
        metric=metric,
        words=words,
        setting=setting,
        rows=tuple(
            Row(
                line=lines[place],
                label=labels[place],
                hardware=_text(rows["hardware"].iloc[place]) or device_words(_text(rows["device"].iloc[place])),
                published=values[place],
                published_ratio=None if base is None else values[place] / values[base],
                ours=_mean(runs, column, scale, bounded=share),
                ours_ratio=None if base is None or place == base else _ratio(runs, matched[base], column),
                runs=len(runs),
            )
            for place, runs in enumerate(matched)
        ),
        base=None if base is None else labels[base],
        differs=tuple(_differs(study, usable, rows) if measured and metric != "parameters" else []),
        notes=tuple(dict.fromkeys(note for note in map(_text, rows["note"]) if note)),
        comparable=_comparable(study, metric, rows)
        if measured
        else "Not measured here: no run of this study that succeeded is at one of these settings.",
    )


def _column(study: Study, metric: str) -> str:
    """The column to set beside a published metric; of a training time the study's own, if that is one of a training."""
    if metric != "fit_time":
        return METRICS[metric][1]
    total = study.total
    return total if total in ("fit_seconds", "blog_seconds", "train_seconds") else "train_seconds"


def conditions_of(row: "pd.Series[Any]") -> dict[str, Any]:
    """A published row's conditions as keys of a study with their levels; what was not printed is left out."""
    found: dict[str, Any] = {}
    for name, key in CONDITIONS.items():
        if pd.notna(row[name]):
            level = row[name]
            found[key] = int(level) if isinstance(level, float) else NAMES.get(str(level), str(level))
    strategy = _text(row["strategy"])
    if strategy:
        kind, *parts = strategy.split("+")
        found["training.strategy"] = STRATEGIES.get(kind, kind)
        found |= {"training.loop": "torch"} if "custom_loop" in parts else {}
    return found


def _matching(
    study: Study, usable: pd.DataFrame, conditions: Mapping[str, Any], keys: Sequence[str], apart: Sequence[str]
) -> pd.DataFrame:
    """The runs at those conditions of the ``keys`` that the study varies; at its own value where none is printed.

    A condition that tells the figures of a series ``apart`` and that the study does not vary has to be the study's own.
    """
    rows = usable
    for key in apart:
        if key not in study.compared and str(conditions.get(key)) != _own(study, key):
            return rows.iloc[:0]
    for key in keys:
        level = conditions.get(key, _own(study, key))
        if key in rows and (key in conditions or level in map(str, study.factors[key])):
            rows = rows[rows[key].astype(str).str.removesuffix(".0") == str(level)]
    return rows


def _labels(rows: pd.DataFrame) -> tuple[str, list[str]]:
    """What tells the rows of a series apart, and each row's words for it."""
    columns = ("device", "hardware", "model", "batch_size", "num_workers", "precision", "strategy")
    names = {"batch_size": "batch size", "num_workers": "loader workers"}
    varying = [name for name in columns if rows[name].nunique(dropna=False) > 1]
    if varying[:2] == ["device", "hardware"] and rows["device"].nunique() == rows["hardware"].nunique():
        varying.remove("hardware")  # the table has it anyway
    labels = []
    for _, row in rows.iterrows():
        parts = []
        for name in varying:
            value = row[name]
            if pd.isna(value):
                continue
            shown = f"{value:g}" if isinstance(value, float) else device_words(str(value)).replace("_", " ")
            named = name in names and len(varying) > 1
            parts.append(f"{names[name]} {shown}" if named else shown.replace("+", ", "))
        labels.append(", ".join(parts) or "all")
    return ", ".join(names.get(name, name) for name in varying) or "setting", labels


def _mean(runs: pd.DataFrame, column: str, scale: float, bounded: bool) -> Estimate | None:
    """Geometric mean with a t interval, in the published unit; the mean alone of what is ``bounded``, a share of all,
    for which an interval of logarithms would reach beyond it."""
    if runs.empty:
        return None
    values = (runs[column].astype(float) * scale).tolist()
    if min(values) <= 0:
        return None
    if bounded or min(values) == max(values):  # equal values are a count, and no measurement
        return Estimate(value=sum(values) / len(values), low=None, high=None)
    return estimate(fit_log_model(values, ["one"] * len(values), runs["session_block"].tolist()).mean("one"))


def _ratio(runs: pd.DataFrame, base: pd.DataFrame, column: str) -> Estimate | None:
    """Geometric mean over that of the base, compared within blocks."""
    both = pd.concat([runs, base])
    if runs.empty or runs.index.equals(base.index) or (both[column] <= 0).any():
        return None
    levels = ["row"] * len(runs) + ["base"] * len(base)
    model = fit_log_model(both[column].astype(float).tolist(), levels, both["session_block"].tolist())
    return estimate(model.ratio("row", "base"))


def _differs(study: Study, usable: pd.DataFrame, rows: pd.DataFrame) -> list[str]:
    """What was not the same here, in words."""
    told = _data_differs(study, sorted({_text(value) for value in rows["dataset"]} - {""}))
    epochs = sorted({_text(value).removesuffix(".0") for value in rows["epochs"]} - {""})
    here = str(study.training.epochs)
    if study.training.freeze_epochs:
        here = f"{study.training.freeze_epochs} frozen + {study.training.epochs}"
    if epochs and epochs != [here] and "training.epochs" not in study.factors:
        told.append(f"epochs: {listed(epochs)} there, {here} here")
    for key in dict.fromkeys(key for _, row in rows.iterrows() for key in conditions_of(row)):
        levels = sorted({str(conditions_of(row).get(key)) for _, row in rows.iterrows()} - {"None"})
        own = _own(study, key)
        if key not in study.factors and own is not None and levels != [own]:
            told.append(f"{short_key(key)}: {listed(levels)} there, {own} here")
    for column, key in (("model", "model.name"), ("batch_size", "training.batch_size")):
        if rows[column].isna().all():
            told.append(f"{short_key(key)}: not printed there, {_here(study, key)} here")
    many = sorted(set(usable["replicas"].dropna().astype(int)))
    if "training.strategy" in study.compared and many:
        told.append(f"processes: {listed([str(count) for count in many])} here, that share each batch")
    hardware = sorted({_text(value) for value in rows["hardware"]} - {""})
    ours = sorted(set(usable["device_name"].dropna()))
    if ours:
        told.append(f"hardware: {listed(hardware) if hardware else 'not printed'} there, {listed(ours)} here")
    return told


def _data_differs(study: Study, published: list[str]) -> list[str]:
    """How the images differ: their source, how many, how large."""
    data, name = study.dataset, published[0] if published else None
    count, size = SETS.get(str(name), (None, None))
    there = f"{name}, {count} images of {size} px" if count else str(name or "not printed")
    if data.source == name:
        return []
    if data.drawn and (data.images, data.image_size) == (count, size):
        return [f"data: {there} there, as many drawn images of that size here"]
    here = (
        f"{data.images} drawn images of {data.image_size} px" if data.drawn else f"{data.source}, {data.image_size} px"
    )
    return [f"data: {there} there, {here} here"]


def _here(study: Study, key: str) -> str:
    return ", ".join(str(level) for level in study.factors.get(key, [_own(study, key)]))


def _own(study: Study, key: str) -> str | None:
    try:
        return str(get(study, key))
    except AttributeError:
        return None


def _comparable(study: Study, metric: str, rows: pd.DataFrame) -> str:
    if metric in TIMES:
        return "The times are of other hardware and single runs: what can be compared is their ratios."
    if metric == "test_accuracy":
        if study.dataset.drawn:
            return "Not comparable: accuracies on drawn images say nothing of those on photographs."
        if study.dataset.source not in set(rows["dataset"]):
            return "Not comparable: an accuracy holds for the images that it was reached on."
        return "Comparable where the schedule is the same."
    if metric == "device_memory_peak":
        return "Comparable in kind: what tensors need depends on the library's version and its algorithms."
    return "Comparable: it follows from the architecture."


def _text(value: object) -> str:
    return "" if value is None or (isinstance(value, float) and np.isnan(value)) else str(value)


def varied(series: Sequence[Series]) -> list[Series]:
    """Those of several figures, whose ratios can be drawn."""
    return [one for one in series if sum(row.ours_ratio is not None for row in one.rows) > 0]
