"""Published figures beside those measured here: the same quantity, its ratio to the series' first, and what differs.

A time on other hardware does not check ours, and a ratio of two times comes nearer to that: both are given.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from study.analysis.stats.usable import Estimate, estimate, model_of, usable_runs
from study.analysis.wording.sources import place_words
from study.analysis.words import device_words, listed, short_key
from study.artifacts.published import Figure, PrintedData, Published, Source
from study.config.settings import get
from study.config.study import Study, shown

METRICS: dict[str, tuple[str, str, float]] = {
    "fit_time": ("training time (s)", "fit_seconds", 1.0),
    "epoch_time": ("time of an epoch (s)", "epoch_seconds", 1.0),
    "test_accuracy": ("test accuracy (%)", "accuracy", 100.0),
    "device_memory_peak": ("peak device memory (MiB)", "peak_device_allocated_bytes", 1 / 2**20),
    "parameters": ("parameters", "parameters", 1.0),
}
"""By published metric: its name, the column of the table of timings, and the factor from our unit to the published."""
UNITS = {"million": 1e-6}
"""Factors from our unit to the printed one."""
TIMES = ("fit_time", "epoch_time")
SHARES = ("test_accuracy",)
"""Metrics without ratios: shares of a whole."""


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

    source: Source
    table: str
    place: str
    """Part of the document that prints them, in words."""
    metric: str
    words: str
    setting: str
    """The conditions in which the rows differ."""
    ours_with: str
    """The levels of the study's other factors at which our runs stand beside these rows, in words; else empty."""
    rows: tuple[Row, ...]
    base: str | None
    """Label of the row that the ratios are over, the first that was measured here; None if a metric has no ratios."""
    differs: tuple[str, ...]
    notes: tuple[str, ...]
    """Remarks of the replication on its figures."""
    comparable: str
    """Whether the published figures and ours can be compared, in a sentence."""


Means = Mapping[frozenset[str], Estimate]
"""Times in seconds by the names of the runs that they were estimated from."""


def beside(study: Study, frame: pd.DataFrame, published: Published, means: Means | None = None) -> list[Series]:
    """Return every series of figures that concerns the study, whether measured here or not.

    ``means`` are those of the analysis, of the time that the study compares: a mean of the same runs is this one.
    """
    series: dict[tuple[str, str, str], list[Figure]] = {}
    for figure in published.figures:
        if figure.metric in METRICS and figure.table != "claim":
            series.setdefault((figure.source, figure.table, figure.metric), []).append(figure)
    return [
        _series(study, usable_runs(frame, _column(study, metric)), rows, published.sources[source], means or {})
        for (source, _, metric), rows in series.items()
    ]


def _series(study: Study, usable: pd.DataFrame, rows: Sequence[Figure], source: Source, means: Means) -> Series:
    """Return the published ``rows`` of one metric and table beside the ``usable`` runs at their conditions."""
    metric, table = rows[0].metric, rows[0].table
    words, scale = _unit(metric, rows[0].unit)
    matched = _matched(study, usable, rows, metric)
    measured = any(map(len, matched))
    setting, labels = _labels(rows)
    base = None if metric in SHARES else next((place for place, runs in enumerate(matched) if len(runs)), 0)
    column = _column(study, metric)
    values = _Values(column, scale, bounded=metric in SHARES, means=means if column == study.total else {})
    return Series(
        source=source,
        table=table,
        place=place_words([table]),
        metric=metric,
        words=words,
        setting=setting,
        ours_with=_ours_with(study, rows) if measured and metric != "parameters" else "",
        rows=tuple(_rows(rows, labels, matched, base, values)),
        base=None if base is None else labels[base],
        differs=tuple(_differs(study, usable, rows, source) if measured and metric != "parameters" else []),
        notes=tuple(dict.fromkeys(row.note for row in rows if row.note)),
        comparable=_comparable(study, metric, source.dataset)
        if measured
        else "Not measured here: no run of this study that succeeded is at one of these settings.",
    )


@dataclass(frozen=True)
class _Values:
    """How a metric is read from runs."""

    column: str
    scale: float
    bounded: bool
    """Whether values are shares of a whole."""
    means: Means
    """Means of these values that are known."""

    def known(self, runs: pd.DataFrame) -> Estimate | None:
        """Return the known mean of exactly these runs."""
        return self.means.get(frozenset(map(str, runs["run"]))) if self.means and len(runs) else None


def _unit(metric: str, unit: str) -> tuple[str, float]:
    """Return the metric's name, and the factor from our unit to the published one."""
    words, _, scale = METRICS[metric]
    return (f"{words} ({unit})", scale * UNITS[unit]) if unit in UNITS else (words, scale)


def _matched(study: Study, usable: pd.DataFrame, rows: Sequence[Figure], metric: str) -> list[pd.DataFrame]:
    """Return the runs at the conditions of each published row."""
    conditions, keys = [row.at for row in rows], study.compared
    if metric == "parameters":  # they follow from the network alone, wherever it trains
        conditions = [{key: level for key, level in row.items() if key == "model.name"} for row in conditions]
        keys = [key for key in keys if key == "model.name"]
    return [_matching(study, usable, row, keys, _varying(conditions)) for row in conditions]


def _varying(conditions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys at whose levels some conditions differ, in their order."""
    keys = dict.fromkeys(key for row in conditions for key in row)
    return [key for key in keys if len({row.get(key) for row in conditions}) > 1]


def _rows(
    rows: Sequence[Figure], labels: Sequence[str], matched: Sequence[pd.DataFrame], base: int | None, values: _Values
) -> Iterator[Row]:
    """Yield each published row with its label and ours; ratios are over the row at the place ``base``."""
    for place, (row, runs) in enumerate(zip(rows, matched, strict=True)):
        yield Row(
            line=row.line,
            label=labels[place],
            hardware=row.hardware or device_words(str(row.at.get("device", ""))),
            published=row.value,
            published_ratio=None if base is None else row.value / rows[base].value,
            ours=_mean(runs, values),
            ours_ratio=None if base is None or place == base else _ratio(runs, matched[base], values),
            runs=len(runs),
        )


def _column(study: Study, metric: str) -> str:
    """Return the column to set beside a published metric; for a training time it is the study's own, if it trains."""
    if metric != "fit_time":
        return METRICS[metric][1]
    total = study.total
    return total if total in ("fit_seconds", "blog_seconds", "train_seconds") else "train_seconds"


def _matching(
    study: Study, usable: pd.DataFrame, conditions: Mapping[str, Any], keys: Sequence[str], apart: Sequence[str]
) -> pd.DataFrame:
    """Return the runs at the ``conditions`` of the study's ``keys``, at its own value where none is printed.

    A condition in which the figures of a series differ (``apart``) and which the study does not vary has to be the
    study's own.
    """
    rows = usable
    for key in apart:
        if key not in study.compared and str(conditions.get(key)) != _own(study, key):
            return rows.iloc[:0]
    for key in keys:
        level = conditions.get(key, _own(study, key))
        if key in rows and (key in conditions or level in _levels(study, key)):
            rows = rows[rows[key].astype(str).str.removesuffix(".0") == str(level)]
    return rows


def _ours_with(study: Study, rows: Sequence[Figure]) -> str:
    """Return the levels at which a study's own factors are held beside the rows: ``fastai, contiguous``."""
    told = []
    for key in study.compared:
        levels = {str(row.at.get(key, _own(study, key))) for row in rows}
        if len(study.factors[key]) > 1 and len(levels) == 1 and levels <= set(_levels(study, key)):
            level = levels.pop()
            told.append(f"{short_key(key)} {level}" if level.isdecimal() else device_words(level))
    return ", ".join(told)


def _labels(rows: Sequence[Figure]) -> tuple[str, list[str]]:
    """Return the conditions in which the rows of a series differ, and each row's words for them."""
    told: list[dict[str, Any]] = [{"device": row.at.get("device"), "hardware": row.hardware} | row.at for row in rows]
    varying = _varying(told)
    if varying[:2] == ["device", "hardware"] and _levels_of(told, "device") == _levels_of(told, "hardware"):
        varying.remove("hardware")  # the table has it anyway
    labels = []
    for row in told:
        levels = {key: row[key] for key in varying if row.get(key) is not None}
        parts = [
            device_words(level).replace("_", " ")
            if isinstance(level, str)
            else f"{short_key(key)} {level}" * (len(varying) > 1) or str(level)
            for key, level in levels.items()
        ]
        labels.append(", ".join(parts) or "all")
    return ", ".join(map(short_key, varying)) or "setting", labels


def _levels_of(conditions: Sequence[Mapping[str, Any]], key: str) -> int:
    return len({row.get(key) for row in conditions} - {None})


def _mean(runs: pd.DataFrame, values: _Values) -> Estimate | None:
    """Return the geometric mean with a t interval, in the published unit.

    A share gets its mean alone: an interval of logarithms would reach beyond the whole.
    """
    if runs.empty:
        return None
    if known := values.known(runs):
        return known
    ours = (runs[values.column].astype(float) * values.scale).tolist()
    if min(ours) <= 0:
        return None
    if values.bounded or min(ours) == max(ours):  # equal values are a count, and no measurement
        return Estimate(value=sum(ours) / len(ours), low=None, high=None)
    return estimate(model_of(runs.assign(ours=ours), "ours", ["one"] * len(ours)).mean("one"))


def _ratio(runs: pd.DataFrame, base: pd.DataFrame, values: _Values) -> Estimate | None:
    """Return the geometric mean over that of the base, with bounds from a comparison within blocks."""
    column = values.column
    both = pd.concat([runs, base])
    if runs.empty or runs.index.equals(base.index) or (both[column] <= 0).any():
        return None
    levels = ["row"] * len(runs) + ["base"] * len(base)
    ratio = estimate(model_of(both.assign(both=both[column].astype(float)), "both", levels).ratio("row", "base"))
    mine, other = values.known(runs), values.known(base)
    return ratio.model_copy(update={"value": mine.value / other.value}) if mine and other else ratio


def _differs(study: Study, usable: pd.DataFrame, rows: Sequence[Figure], source: Source) -> list[str]:
    """Return what was not the same here, in words."""
    return [
        *_data_differs(study, source.dataset),
        *_epochs_differ(study, sorted({row.epochs for row in rows if row.epochs})),
        *_conditions_differ(study, rows),
        *_not_printed(study, rows),
        *_processes(study, usable),
        *_hardware(usable, sorted({row.hardware for row in rows if row.hardware})),
    ]


def _data_differs(study: Study, printed: PrintedData | None) -> list[str]:
    """Return how the images differ: their source, number and size."""
    data, drawn = study.dataset, study.dataset.drawn
    there = f"{printed.name}, {printed.images} images of {printed.image_size} px" if printed else "not printed"
    if printed and data.source == printed.name:
        return []
    if printed and drawn and (data.images, data.image_size) == (printed.images, printed.image_size):
        return [f"data: {there} there, the same number of drawn images of that size here"]
    here = f"{data.images} drawn images of {data.image_size} px" if drawn else f"{data.source}, {data.image_size} px"
    return [f"data: {there} there, {here} here"]


def _epochs_differ(study: Study, published: list[str]) -> list[str]:
    here = str(study.training.epochs)
    if study.training.freeze_epochs:
        here = f"{study.training.freeze_epochs} frozen + {study.training.epochs}"
    same = not published or published == [here] or "training.epochs" in study.factors
    return [] if same else [f"epochs: {listed(published)} there, {here} here"]


def _conditions_differ(study: Study, rows: Sequence[Figure]) -> list[str]:
    """Return the printed conditions that the study does not vary, and has at another level."""
    told = []
    for key in dict.fromkeys(key for row in rows for key in row.at):
        levels, own = sorted({str(row.at[key]) for row in rows if key in row.at}), _own(study, key)
        if key not in study.factors and own is not None and levels != [own]:
            told.append(f"{short_key(key)}: {listed(levels)} there, {own} here")
    return told


def _not_printed(study: Study, rows: Sequence[Figure]) -> list[str]:
    return [
        f"{short_key(key)}: not printed there, {_here(study, key)} here"
        for key in ("model.name", "training.batch_size")
        if not any(key in row.at for row in rows)
    ]


def _processes(study: Study, usable: pd.DataFrame) -> list[str]:
    counts = [str(count) for count in sorted(set(usable["replicas"].dropna().astype(int)))]
    if "training.strategy" not in study.compared or not counts:
        return []
    return [f"processes: {listed(counts)} here, that share each batch"]


def _hardware(usable: pd.DataFrame, published: list[str]) -> list[str]:
    ours = sorted(set(usable["device_name"].dropna()))
    there = listed(published) if published else "not printed"
    return [f"hardware: {there} there, {listed(ours)} here"] if ours else []


def _here(study: Study, key: str) -> str:
    return ", ".join(_levels(study, key) if key in study.factors else [str(_own(study, key))])


def _own(study: Study, key: str) -> str | None:
    """Return the study's own level of a key as its table of timings shows it; None where it has no such key."""
    try:
        return str(shown(study, key, get(study, key)))
    except AttributeError:
        return None


def _levels(study: Study, key: str) -> list[str]:
    """Return the levels of a factor as the table of timings shows them."""
    return [str(shown(study, key, level)) for level in study.factors[key]]


def _comparable(study: Study, metric: str, printed: PrintedData | None) -> str:
    """Return whether the published figures of a metric can be compared with ours, in a sentence."""
    if metric in TIMES:
        return "The times come from other hardware and from single runs: only their ratios can be compared."
    if metric in SHARES:
        if study.dataset.drawn:
            return "Not comparable: accuracies on drawn images say nothing about accuracies on photographs."
        if printed is None or study.dataset.source != printed.name:
            return "Not comparable: an accuracy holds for the images on which it was reached."
        return "Comparable where the schedule is the same."
    if metric == "device_memory_peak":
        return "Comparable in kind: the memory of tensors depends on the library's version and its algorithms."
    return "Comparable: it follows from the architecture."
