"""From the table of timings to an answer: means with intervals, the best set, the curve, the contrast, warnings."""

from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from study.analysis.stats import machine_change
from study.analysis.stats.bottleneck import limits_of
from study.analysis.stats.caveats import warnings_of
from study.analysis.stats.contrasts import Ratio, control_answer, ratio_answer, ratios_of
from study.analysis.stats.curve import CurveFit, fit_curve
from study.analysis.stats.log_model import SIGNIFICANCE, LogModel, fit_log_model, level_test
from study.analysis.stats.optimum import Optimum, may_be_fastest, optimum_of
from study.analysis.stats.stability import drift_of, power_words
from study.analysis.stats.step_model import StepModel, step_model
from study.analysis.stats.usable import Estimate, estimate, mean_of, place_of, usable_runs
from study.analysis.words import TOTALS, device_words, listed, seconds_words, short_key
from study.artifacts.timing import resources
from study.base.strict import Strict
from study.config.study import Study, shown


class Level(Strict):
    """One configuration."""

    label: str = Field(description="The level on the curve's axis, or all factors in words.")
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
    images_per_epoch: float | None = Field(description="Images really trained on, mean over epochs.")
    resources: dict[str, float] = Field(
        description="Medians over the runs of what the table of timings tells of phases, memory, energy and arithmetic."
    )
    outcomes: dict[str, int]


class Group(Strict):
    """Levels that differ in the curve's factor alone (in a study without a curve: all levels on one device)."""

    label: str
    levels: list[Level]
    best: str | None = Field(description="The level with the smallest mean.")
    indistinguishable: list[str] = Field(
        description="Levels that cannot be told from the fastest: all where the F test finds no difference at all "
        "(Fisher's protection), else those of `optimum`, and those that only the machine's change tells from it."
    )
    optimum: Optimum | None = Field(description="Hsu's comparisons with the best; null without replicates.")
    machine_change: float | None = Field(
        description="The slowest yardstick over the fastest: how far the machine changed; null without a yardstick."
    )
    explained: bool = Field(
        description="Whether the levels differ only until the yardstick is accounted for, and the times follow it."
    )
    unclear: bool = Field(
        description="Whether the machine changed, and the runs are too few to tell its part in the levels' difference."
    )
    curve: CurveFit | None
    power: str | None = Field(description="How many more replicates would tell the best from those that may be it.")
    drift: str | None = Field(description="A sentence where the times drift along the order of execution.")
    step: StepModel | None = Field(description="Null where the curve is not over the batch size, or nothing trains.")


class Analysis(Strict):
    """All that the report says about one study's numbers."""

    y: str
    groups: list[Group]
    ratios: list[Ratio]
    control: list[Ratio] = Field(description="The null control: each configuration over itself.")
    answer: list[str] = Field(description="The answer, sentence by sentence.")
    warnings: list[str]


def analyse(study: Study, frame: pd.DataFrame) -> Analysis:
    """Analyse one study's table of timings (a row a planned run)."""
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
            *_answer(groups, ratios, study, y),
            *limits_of(study, usable_runs(frame, y)),
            *([control_answer(control)] if control else []),
        ],
        warnings=[*warnings_of(study, frame, y, x), *(group.drift for group in groups if group.drift)],
    )


def read_analysis(path: Path) -> Analysis:
    """The analysis that the fit step wrote."""
    return Analysis.model_validate_json(path.read_text(encoding="utf-8"))


def _split(frame: pd.DataFrame, keys: list[str], study: Study) -> list[tuple[str, pd.DataFrame]]:
    """The parts of the table that differ in none of ``keys``, in the order of the study's levels."""
    if not keys:
        return [(str(frame["device"].iloc[0]), frame)]
    parts = [(level, part) for level, part in frame.groupby(keys, sort=False, dropna=False)]
    orders = [[shown(study, key, level) for level in study.factors[key]] for key in keys]
    parts.sort(key=lambda item: [place_of(order, name) for order, name in zip(orders, item[0], strict=True)])
    return [(", ".join(map(str, level)), part) for level, part in parts]


def _group(study: Study, label: str, part: pd.DataFrame, x: str | None, y: str) -> Group:
    keys = [x] if x else [key for key in study.compared if key != "device"]
    names = part.apply(lambda row: _level_label(row, keys), axis=1)
    part = part.assign(level=names)
    usable = usable_runs(part, y)
    times = usable[y].tolist() if len(usable) else []
    blocks = usable["session_block"].tolist()
    names_of_runs = usable["level"].tolist() if times else []
    model = fit_log_model(times, names_of_runs, blocks) if times else None
    yardstick = machine_change.covariate(usable)
    adjusted = fit_log_model(times, names_of_runs, blocks, yardstick) if yardstick else None
    adjusted = adjusted if adjusted and adjusted.degrees > 0 else None
    levels = [
        _level(name, rows, usable[usable["level"] == name], model, adjusted, x)
        for name, rows in part.groupby("level", sort=False)
    ]
    order = _levels_in_order(part, keys, study)
    levels.sort(key=lambda level: level.x or 0 if x else order.index(level.label))
    differs = level_test(times, names_of_runs, blocks) if times else None
    best = _best(levels)
    optimum = optimum_of(model) if model else None
    same = _same(levels, optimum, differs)
    still = level_test(times, names_of_runs, blocks, yardstick) if adjusted else differs
    shows = differs is not None and differs < SIGNIFICANCE
    gone = still is None or still >= SIGNIFICANCE
    follows = adjusted is not None and adjusted.covariate_p is not None and adjusted.covariate_p < SIGNIFICANCE
    if adjusted:
        again = _same(levels, optimum_of(adjusted), still)
        same = [name for name in names_in(levels) if name in same or name in again]
    curve = None
    if x and usable["level"].nunique() >= 3:
        curve = fit_curve(usable[x].tolist(), times, blocks, machine_change.change(usable))
    return Group(
        label=label,
        levels=levels,
        best=best,
        indistinguishable=same,
        optimum=optimum,
        machine_change=machine_change.change(usable),
        explained=shows and gone and follows,
        unclear=shows and yardstick is not None and not follows and (adjusted is None or gone),
        curve=curve,
        power=power_words(model, same, best, _replicates(usable)) if model and best else None,
        drift=drift_of(usable, names_of_runs, y) if times else None,
        step=step_model(usable, _where(label)) if x == "training.batch_size" else None,
    )


def _replicates(usable: pd.DataFrame) -> int:
    return int(usable.groupby("level").size().max())


def _levels_in_order(part: pd.DataFrame, keys: list[str], study: Study) -> list[str]:
    """The labels of the levels as the study lists them, and not as the runs were executed."""
    orders = [[shown(study, key, level) for level in study.factors[key]] for key in keys]
    rows = part.drop_duplicates("level")
    places = [
        [place_of(order, row[key]) for key, order in zip(keys, orders, strict=True)] for _, row in rows.iterrows()
    ]
    labels = rows["level"].tolist()
    return [labels[at] for at in sorted(range(len(labels)), key=places.__getitem__)]


def names_in(levels: list[Level]) -> list[str]:
    """The labels of the levels that have a time."""
    return [level.label for level in levels if level.time]


def _level_label(row: "pd.Series[Any]", keys: list[str]) -> str:
    return ", ".join(f"{row[key]:g}" if isinstance(row[key], float) else str(row[key]) for key in keys) or "the run"


def _level(
    name: Any,
    rows: pd.DataFrame,
    usable: pd.DataFrame,
    model: LogModel | None,
    adjusted: LogModel | None,
    x: str | None,
) -> Level:
    time = model.mean(name) if model and len(usable) else None
    level_adjusted = adjusted.mean(name) if adjusted and len(usable) else None
    return Level(
        label=str(name),
        x=float(rows[x].iloc[0]) if x else None,
        runs=len(usable),
        time=estimate(time) if time else None,
        time_adjusted=estimate(level_adjusted) if level_adjusted else None,
        accuracy=mean_of(usable, "accuracy"),
        images_per_second=_median(usable, "images_per_second"),
        data_wait_share=_median(usable, "data_wait_share"),
        images_per_epoch=mean_of(usable, "images_per_epoch"),
        resources={column: value for column in resources() if (value := _median(usable, column)) is not None},
        outcomes={str(key): int(value) for key, value in rows["outcome"].value_counts().items()},
    )


def _median(frame: pd.DataFrame, column: str) -> float | None:
    return float(frame[column].median()) if column in frame and frame[column].notna().any() else None


def _best(levels: list[Level]) -> str | None:
    """The level with the smallest mean."""
    timed = [level for level in levels if level.time]
    return min(timed, key=lambda level: level.time.value if level.time else 0.0).label if timed else None


def _same(levels: list[Level], optimum: Optimum | None, differs_p: float | None) -> list[str]:
    """The levels that cannot be told from the fastest."""
    names = names_in(levels)
    may = may_be_fastest(optimum, differs_p) if optimum else names
    return [name for name in names if name in may]


def _answer(groups: list[Group], ratios: list[Ratio], study: Study, y: str) -> list[str]:
    keys = [study.curve.x] if study.curve else [key for key in study.compared if key != "device"]
    sentences = [_group_answer(group, short_key(keys[0]) if len(keys) == 1 else None, y) for group in groups]
    for faster in dict.fromkeys(ratio.faster for ratio in ratios):
        sentences.append(ratio_answer([ratio for ratio in ratios if ratio.faster == faster], str(study.contrast)))
    return sentences or ["No run has succeeded yet, so there is no answer."]


def _group_answer(group: Group, factor: str | None, y: str) -> str:
    where = _where(group.label)
    best = next((level for level in group.levels if level.label == group.best), None)
    if best is None or best.time is None:
        return f"{where} no run has succeeded."
    name = f"{factor} {best.label}" if factor else best.label
    time = seconds_words(best.time.value, best.time.low, best.time.high)
    if len(group.levels) == 1:
        return f"{where} it takes {time}."
    if best.runs < 2:
        total = TOTALS[y].replace(" (s)", "")
        return (
            f"{where} the smallest {total} is that of {name}, {time}: one run a setting cannot tell which is fastest."
        )
    rest = [label for label in group.indistinguishable if label != best.label]
    told = (
        f"{listed(rest)} cannot be told from it"
        if rest
        else "every other one is slower by more than the noise between runs"
    )
    verdict = f" {group.curve.verdict}" if group.curve else ""
    if group.explained:
        told = (
            f"but the machine itself changed by {group.machine_change or 1:.1f}x during these runs, and once the "
            "yardstick accounts for that no difference between the settings is left"
        )
        verdict = ""
    if group.unclear:
        told = (
            f"but the machine itself changed by {group.machine_change or 1:.1f}x during these runs, and they are too "
            "few to tell its part in the differences between the settings"
        )
        verdict = ""
    return f"{where} the fastest is {name}, {time}; {told}.{verdict}"


def _where(label: str) -> str:
    words = device_words(label, article=True)
    return f"{'With' if words == label else 'On'} {words}"
