"""From the table of timings to an answer: means with intervals, the best set, the curve, the contrast, caveats.

The analysis returns values and kinds of findings; ``study.analysis.wording`` makes sentences of them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import Field

from study.analysis.stats import machine_change
from study.analysis.stats.bottleneck import bottlenecks_of
from study.analysis.stats.caveats import warnings_of
from study.analysis.stats.contrasts import Ratio, contrasts_of, control_of, ratios_of
from study.analysis.stats.curve import CurveFit, fit_curve
from study.analysis.stats.findings import (
    Answer,
    Caveat,
    Drift,
    Fastest,
    MoreReplicates,
    NothingSucceeded,
    OnlyLevel,
    Smallest,
)
from study.analysis.stats.log_model import SIGNIFICANCE, LogModel, fit_log_model, level_test
from study.analysis.stats.optimum import Optimum, may_be_fastest, optimum_of
from study.analysis.stats.stability import drift_of, more_replicates
from study.analysis.stats.step_model import StepModel, step_model
from study.analysis.stats.usable import Estimate, estimate, mean_of, place_of, usable_runs
from study.artifacts.timing import resources
from study.base.strict import Strict
from study.config.study import Study, shown

MachinePart = Literal["explains", "unclear"] | None
"""Whether the machine's change explains the differences between levels, or may; None where they stand without it."""


class Level(Strict):
    """The runs of one level: their time, and what else was measured."""

    label: str = Field(description="The level on the curve's axis, or the levels of all factors.")
    x: float | None = Field(description="The curve's factor; null in a study without a curve.")
    runs: int = Field(description="Successful runs.")
    time: Estimate | None = Field(description="Seconds; null where no run succeeded.")
    time_adjusted: Estimate | None = Field(
        description="Seconds with the machine's change accounted for by the yardstick; null where it did not change."
    )
    accuracy: float | None = Field(description="Mean over the runs, 0 to 1.")
    images_per_second: float | None = Field(
        description="Images over the whole training time, or over the time of all timed batches of inference; median "
        "over the runs."
    )
    data_wait_share: float | None = Field(description="Share of the training time spent waiting for data; median.")
    images_per_epoch: float | None = Field(description="Images trained on, mean over epochs.")
    resources: dict[str, float] = Field(
        description="Medians over the runs of columns of the table of timings: phases, memory, energy and arithmetic."
    )
    outcomes: dict[str, int] = Field(description="Number of runs by outcome.")


class Group(Strict):
    """Levels that differ in the curve's factor alone (in a study without a curve: all levels on one device).

    Where no run succeeded, all but the label and the levels is empty.
    """

    label: str
    levels: list[Level]
    best: str | None = Field(None, description="The level with the smallest mean.")
    indistinguishable: list[str] = Field(
        default=[],
        description="Levels that cannot be told from the fastest: all where the F test finds no difference at all "
        "(Fisher's protection), else those of `optimum`, and those that only the machine's change tells from it.",
    )
    optimum: Optimum | None = Field(None, description="Hsu's comparisons with the best; null without replicates.")
    machine_change: float | None = Field(
        None,
        description="The slowest yardstick over the fastest: how far the machine changed; null without a yardstick.",
    )
    machine: MachinePart = Field(
        None,
        description="`explains`: the levels differ only until the yardstick is accounted for, and the times follow "
        "it. `unclear`: the machine changed, and the runs are too few to tell its part in the levels' difference.",
    )
    curve: CurveFit | None = Field(None, description="Null with fewer than three levels, or without a curve.")
    more_replicates: MoreReplicates | None = Field(None, description="Null where no level is tied with the fastest.")
    drift: Drift | None = Field(None, description="Null where the times do not drift along the order of execution.")
    step: StepModel | None = Field(
        None, description="Null where the curve is not over the batch size, or nothing trains."
    )


class Analysis(Strict):
    """The numbers of one study, and the findings in them."""

    y: str = Field(description="Column of the table of timings that is analysed.")
    groups: list[Group]
    ratios: list[Ratio]
    control: list[Ratio] = Field(description="The null control: each configuration over itself.")
    answer: list[Answer] = Field(description="The answer to the study's question.")
    warnings: list[Caveat] = Field(description="What a reader must know before believing the numbers.")


def analyse(study: Study, frame: pd.DataFrame) -> Analysis:
    """Return the analysis of one study's table of timings, which has a row for each planned run."""
    y = study.total
    x = study.curve.x if study.curve else None
    group_keys = [key for key in study.compared if (key != x if x else key == "device")]
    groups = [
        _group(study, label, part, x, y)
        for label, part in _split(frame, group_keys, study)
        if (part["outcome"] != "unavailable").any()
    ]
    ratios = ratios_of(study, frame, y, x, study.contrast) if study.contrast else []
    control = ratios_of(study, frame, y, x, "control") if "control" in study.factors else []
    return Analysis(
        y=y,
        groups=groups,
        ratios=ratios,
        control=control,
        answer=[
            *(_answers(study, groups, ratios) or [NothingSucceeded(group=None)]),
            *bottlenecks_of(study, usable_runs(frame, y)),
            *([control_of(control)] if control else []),
        ],
        warnings=[*warnings_of(study, frame, y, x), *(group.drift for group in groups if group.drift)],
    )


def read_analysis(path: Path) -> Analysis:
    """Return the analysis that the fit step wrote."""
    return Analysis.model_validate_json(path.read_text(encoding="utf-8"))


def _split(frame: pd.DataFrame, keys: list[str], study: Study) -> list[tuple[str, pd.DataFrame]]:
    """Return the parts of the table that differ in none of ``keys``, in the order of the study's levels."""
    if not keys:
        return [(str(frame["device"].iloc[0]), frame)]
    parts = [(level, part) for level, part in frame.groupby(keys, sort=False, dropna=False)]
    orders = [[shown(study, key, level) for level in study.factors[key]] for key in keys]
    parts.sort(key=lambda item: [place_of(order, name) for order, name in zip(orders, item[0], strict=True)])
    return [(", ".join(map(str, level)), part) for level, part in parts]


def _group(study: Study, label: str, part: pd.DataFrame, x: str | None, y: str) -> Group:
    """Return the analysis of one group, from its rows of the table of timings."""
    keys = [x] if x else [key for key in study.compared if key != "device"]
    part = part.assign(level=part.apply(lambda row: _level_label(row, keys), axis=1))
    usable = usable_runs(part, y)
    if usable.empty:
        return Group(label=label, levels=_levels(study, part, usable, None, keys, x))
    fits = _fit(usable, y)
    levels = _levels(study, part, usable, fits, keys, x)
    timed = {level.label: level.time.value for level in levels if level.time}
    best, tied = min(timed, key=timed.__getitem__), _tied(list(timed), fits)
    change = machine_change.change(usable)
    curve = None
    if x and len(timed) >= 3:
        curve = fit_curve(usable[x].tolist(), usable[y].tolist(), usable["session_block"].tolist(), change)
    return Group(
        label=label,
        levels=levels,
        best=best,
        indistinguishable=tied,
        optimum=fits.optimum,
        machine_change=change,
        machine=_verdict(fits),
        curve=curve,
        more_replicates=more_replicates(fits.raw, tied, best, int(usable.groupby("level").size().max())),
        drift=drift_of(usable, usable["level"].tolist(), y),
        step=step_model(usable) if x == "training.batch_size" else None,
    )


@dataclass(frozen=True)
class Fits:
    """A group's times, fitted as they were measured, and with the machine's change accounted for."""

    raw: LogModel
    differs_p: float | None
    """p of the F test that no level differs from another; None without replicates."""
    optimum: Optimum | None
    changed: bool
    """Whether the machine changed by more than the yardstick's own noise."""
    adjusted: LogModel | None
    """Means on an unchanged machine; None where it did not change, or too few runs are left to tell its part."""
    adjusted_differs_p: float | None
    """The same F test with the machine's change accounted for."""


def _fit(usable: pd.DataFrame, y: str) -> Fits:
    """Return the two models of log seconds of a group's successful runs: level + block, and level + block + machine.

    The second one has the yardstick as a covariate, with a slope of its own: the times may follow the machine's
    change in part, or not at all.
    """
    times, levels, blocks = usable[y].tolist(), usable["level"].tolist(), usable["session_block"].tolist()
    raw = fit_log_model(times, levels, blocks)
    yardstick = machine_change.covariate(usable)
    adjusted = fit_log_model(times, levels, blocks, yardstick) if yardstick else None
    adjusted = adjusted if adjusted and adjusted.degrees > 0 else None
    return Fits(
        raw=raw,
        differs_p=level_test(times, levels, blocks),
        optimum=optimum_of(raw),
        changed=yardstick is not None,
        adjusted=adjusted,
        adjusted_differs_p=level_test(times, levels, blocks, yardstick) if adjusted else None,
    )


def _verdict(fits: Fits) -> MachinePart:
    """Return the machine's part in the differences between levels that the raw times show.

    It explains them if they are gone once the machine is accounted for, and the times are shown to follow it. It is
    unclear if the times are not shown to follow it, and no difference is left either, or none can be tested.
    """
    if not fits.changed or not _shows(fits.differs_p):
        return None
    if fits.adjusted is None:
        return "unclear"
    if _shows(fits.adjusted_differs_p):
        return None
    return "explains" if _shows(fits.adjusted.covariate_p) else "unclear"


def _shows(p: float | None) -> bool:
    """Return whether a test finds an effect."""
    return p is not None and p < SIGNIFICANCE


def _tied(levels: list[str], fits: Fits) -> list[str]:
    """Return the levels that cannot be told from the fastest, as measured or with the machine accounted for."""
    tied = may_be_fastest(fits.optimum, fits.differs_p) if fits.optimum else levels
    if fits.adjusted:
        adjusted = optimum_of(fits.adjusted)
        tied = [*tied, *(may_be_fastest(adjusted, fits.adjusted_differs_p) if adjusted else levels)]
    return [level for level in levels if level in tied]


def _levels(
    study: Study, part: pd.DataFrame, usable: pd.DataFrame, fits: Fits | None, keys: list[str], x: str | None
) -> list[Level]:
    """Return the levels of a group along the curve's factor ``x``, or as the study lists those of ``keys``."""
    levels = [
        _level(str(name), rows, usable[usable["level"] == name], fits, x)
        for name, rows in part.groupby("level", sort=False)
    ]
    order = _levels_in_order(part, keys, study)
    return sorted(levels, key=lambda level: level.x or 0 if x else order.index(level.label))


def _levels_in_order(part: pd.DataFrame, keys: list[str], study: Study) -> list[str]:
    """Return the labels of the levels as the study lists them; the runs were executed in another order."""
    orders = [[shown(study, key, level) for level in study.factors[key]] for key in keys]
    rows = part.drop_duplicates("level")
    places = [
        [place_of(order, row[key]) for key, order in zip(keys, orders, strict=True)] for _, row in rows.iterrows()
    ]
    labels = rows["level"].tolist()
    return [labels[at] for at in sorted(range(len(labels)), key=places.__getitem__)]


def _level_label(row: "pd.Series[Any]", keys: list[str]) -> str:
    return ", ".join(f"{row[key]:g}" if isinstance(row[key], float) else str(row[key]) for key in keys) or "the run"


def _level(name: str, rows: pd.DataFrame, usable: pd.DataFrame, fits: Fits | None, x: str | None) -> Level:
    """Return one level, from all of its ``rows`` and from those that are ``usable``."""
    timed = fits if len(usable) else None
    return Level(
        label=name,
        x=float(rows[x].iloc[0]) if x else None,
        runs=len(usable),
        time=estimate(timed.raw.mean(name)) if timed else None,
        time_adjusted=estimate(timed.adjusted.mean(name)) if timed and timed.adjusted else None,
        accuracy=mean_of(usable, "accuracy"),
        images_per_second=_median(usable, "images_per_second"),
        data_wait_share=_median(usable, "data_wait_share"),
        images_per_epoch=mean_of(usable, "images_per_epoch"),
        resources={column: value for column in resources() if (value := _median(usable, column)) is not None},
        outcomes={str(key): int(value) for key, value in rows["outcome"].value_counts().items()},
    )


def _median(frame: pd.DataFrame, column: str) -> float | None:
    return float(frame[column].median()) if frame[column].notna().any() else None


def _answers(study: Study, groups: list[Group], ratios: list[Ratio]) -> list[Answer]:
    """Return the answer of each group, and of each level of the contrast."""
    keys = [study.curve.x] if study.curve else [key for key in study.compared if key != "device"]
    factor = keys[0] if len(keys) == 1 else None
    return [
        *(_group_answer(group, factor, study.total) for group in groups),
        *contrasts_of(ratios, str(study.contrast)),
    ]


def _group_answer(group: Group, factor: str | None, y: str) -> Answer:
    """Return the fastest level of a group with what can be said of it; ``factor`` is what its levels differ in."""
    best = next((level for level in group.levels if level.label == group.best), None)
    if best is None or best.time is None:
        return NothingSucceeded(group=group.label)
    if len(group.levels) == 1:
        return OnlyLevel(group=group.label, time=best.time, accuracy=best.accuracy)
    if best.runs < 2:
        return Smallest(
            group=group.label, total=y, factor=factor, level=best.label, time=best.time, accuracy=best.accuracy
        )
    return Fastest(
        group=group.label,
        factor=factor,
        level=best.label,
        time=best.time,
        accuracy=best.accuracy,
        tied=[label for label in group.indistinguishable if label != best.label],
        machine=group.machine,
        machine_change=group.machine_change,
        curve=group.curve.verdict if group.curve and group.machine is None else None,
    )
