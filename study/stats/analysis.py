"""From the table of timings to an answer: means with intervals, the best set, the curve, the contrast, warnings."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from study.config import Strict, Study, shown
from study.stats import machine
from study.stats.curve import CurveFit, fit_curve
from study.stats.limits import limits_of
from study.stats.optimum import Optimum, optimum_of
from study.stats.summary import SIGNIFICANCE, Interval, LogModel, fit_log_model, level_test
from study.stats.warnings import warnings_of
from study.words import TOTALS, device_words, listed, seconds_words, short_key

RESOURCES = (
    "peak_device_allocated_bytes",
    "peak_device_used_bytes",
    "peak_host_resident_bytes",
    "peak_tree_resident_bytes",
    "cpu_percent",
    "gpu_utilisation_percent",
    "energy_joules",
    "images_per_joule",
    "idle_watts",
    "parameters",
    "epoch_seconds",
    "valid_seconds",
    "flop_per_image",
    "steady_images_per_second",
    "flop_per_second",
    "ceiling_share",
    "first_batch_seconds",
    "loader_start_seconds",
    "warm_up_extra_seconds",
    "compile_seconds",
)
"""Columns of the table of timings that the report shows beside the times."""


class Estimate(Strict):
    """A geometric mean or a ratio, with its 95% interval; null bounds where the data give none."""

    value: float
    low: float | None
    high: float | None


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
    images_per_second: float | None = Field(description="Images over the whole training time; median over the runs.")
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


class Ratio(Strict):
    """Time of one level of the contrast over another's, everything else equal, paired within blocks."""

    label: str
    x: float | None
    others: str = Field(description="Levels of the factors that are neither the contrast nor the curve's.")
    slower: str
    faster: str
    ratio: Estimate
    adjusted: Estimate | None = Field(
        description="With the machine's change accounted for; null where it did not change."
    )
    follows_machine: bool | None = Field(
        description="Whether these ratios are shown to follow the yardstick; null where it did not change."
    )
    same_work: bool = Field(description="Whether both trained on equally many images.")


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
    ratios = _ratios(study, frame, y, x, study.contrast) if study.contrast else []
    control = _ratios(study, frame, y, x, "control") if "control" in study.factors else []
    return Analysis(
        y=y,
        groups=groups,
        ratios=ratios,
        control=control,
        answer=[
            *_answer(groups, ratios, study, y),
            *limits_of(study, _usable(frame, y)),
            *([_control_answer(control)] if control else []),
        ],
        warnings=warnings_of(study, frame, y, x),
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
    parts.sort(key=lambda item: [_place(order, name) for order, name in zip(orders, item[0], strict=True)])
    return [(", ".join(map(str, level)), part) for level, part in parts]


def _place(levels: list[Any], level: Any) -> int:
    """The place of a level among the study's: a table hands 1 back as 1.0, and True as text."""
    return next(place for place, other in enumerate(levels) if other == level or str(other) == str(level))


def _usable(frame: pd.DataFrame, y: str) -> pd.DataFrame:
    """The successful runs, with the block of the analysis: session and replicate."""
    if y not in frame:
        return frame.iloc[:0].assign(session_block="")
    usable = frame[(frame["outcome"] == "ok") & frame[y].notna()]
    session = usable["session"].astype(int).astype(str)
    usable = usable.assign(session_block=session + "." + usable["block"].astype(int).astype(str))
    return machine.with_machine(usable)


def _group(study: Study, label: str, part: pd.DataFrame, x: str | None, y: str) -> Group:
    keys = [x] if x else [key for key in study.compared if key != "device"]
    names = part.apply(lambda row: _level_label(row, keys), axis=1)
    part = part.assign(level=names)
    usable = _usable(part, y)
    times = usable[y].tolist() if len(usable) else []
    blocks = usable["session_block"].tolist()
    names_of_runs = usable["level"].tolist() if times else []
    model = fit_log_model(times, names_of_runs, blocks) if times else None
    yardstick = machine.covariate(usable)
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
        curve = fit_curve(usable[x].tolist(), times, blocks)
    return Group(
        label=label,
        levels=levels,
        best=best,
        indistinguishable=same,
        optimum=optimum,
        machine_change=machine.change(usable),
        explained=shows and gone and follows,
        unclear=shows and yardstick is not None and not follows and (adjusted is None or gone),
        curve=curve,
    )


def _levels_in_order(part: pd.DataFrame, keys: list[str], study: Study) -> list[str]:
    """The labels of the levels as the study lists them, and not as the runs were executed."""
    orders = [[shown(study, key, level) for level in study.factors[key]] for key in keys]
    rows = part.drop_duplicates("level")
    places = [[_place(order, row[key]) for key, order in zip(keys, orders, strict=True)] for _, row in rows.iterrows()]
    labels = rows["level"].tolist()
    return [labels[at] for at in sorted(range(len(labels)), key=places.__getitem__)]


def names_in(levels: list[Level]) -> list[str]:
    """The labels of the levels that have a time."""
    return [level.label for level in levels if level.time]


def _level_label(row: "pd.Series[Any]", keys: list[str]) -> str:
    return ", ".join(f"{row[key]:g}" if isinstance(row[key], float) else str(row[key]) for key in keys) or "the run"


def _ratio_label(row: "pd.Series[Any]", keys: list[str], x: str | None) -> str:
    """The other factors' levels in words, the curve's with its name: ``batch size 64, bf16``."""
    ordered = sorted(keys, key=lambda key: key != x)
    return ", ".join(f"{short_key(key)} {row[key]:g}" if key == x else str(row[key]) for key in ordered)


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
        time=_estimate(time) if time else None,
        time_adjusted=_estimate(level_adjusted) if level_adjusted else None,
        accuracy=_mean(usable, "accuracy"),
        images_per_second=_median(usable, "images_per_second"),
        data_wait_share=_median(usable, "data_wait_share"),
        images_per_epoch=_mean(usable, "images_per_epoch"),
        resources={column: value for column in RESOURCES if (value := _median(usable, column)) is not None},
        outcomes={str(key): int(value) for key, value in rows["outcome"].value_counts().items()},
    )


def _mean(frame: pd.DataFrame, column: str) -> float | None:
    return float(frame[column].mean()) if column in frame and frame[column].notna().any() else None


def _median(frame: pd.DataFrame, column: str) -> float | None:
    return float(frame[column].median()) if column in frame and frame[column].notna().any() else None


def _estimate(interval: Interval) -> Estimate:
    return Estimate(value=interval.value, low=interval.low, high=interval.high)


def _best(levels: list[Level]) -> str | None:
    """The level with the smallest mean."""
    timed = [level for level in levels if level.time]
    return min(timed, key=lambda level: level.time.value if level.time else 0.0).label if timed else None


def _same(levels: list[Level], optimum: Optimum | None, differs_p: float | None) -> list[str]:
    """The levels that cannot be told from the fastest.

    Where no difference between the levels shows at all (the F test), none is told from the best: without that
    protection one in five studies of equal levels would single one out.
    """
    names = names_in(levels)
    if optimum is None or differs_p is None or differs_p >= SIGNIFICANCE:
        return names
    return [name for name in names if name in optimum.indistinguishable]


def _ratios(study: Study, frame: pd.DataFrame, y: str, x: str | None, contrast: str) -> list[Ratio]:
    """The contrast's first level over each other one, at each combination of the other factors."""
    usable = _usable(frame, y)
    others = [key for key in study.compared if key != contrast]
    twins = ["control"] if "control" in study.factors and contrast != "control" else []
    names = [str(shown(study, contrast, level)) for level in study.factors[contrast]]
    levels = [name for name in names if (usable[contrast].astype(str) == name).any()]
    orders = {key: [shown(study, key, level) for level in study.factors[key]] for key in others}
    result: list[Ratio] = []
    for other in levels[1:]:
        first, second = (usable[usable[contrast].astype(str) == level] for level in (levels[0], other))
        pairs = first.merge(second, on=[*others, *twins, "session_block"], suffixes=("_a", "_b"))
        if pairs.empty:
            continue
        places = [[_place(orders[key], row[key]) for key in others] for _, row in pairs.iterrows()]
        pairs = pairs.iloc[sorted(range(len(pairs)), key=places.__getitem__)]
        labels = pairs.apply(lambda row: _ratio_label(row, others, x), axis=1)
        quotients = pairs[f"{y}_a"] / pairs[f"{y}_b"]
        # The ratio of the means within blocks: a block's own factor cancels, what is left is the noise.
        pair_blocks = pairs["session_block"].tolist()
        model = fit_log_model(quotients.tolist(), labels.tolist(), pair_blocks)
        adjusted = _adjusted_ratios(pairs, quotients.tolist(), labels.tolist(), pair_blocks)
        for label in dict.fromkeys(labels):
            at = pairs[labels == label]
            result.append(
                Ratio(
                    label=label,
                    x=float(at[x].iloc[0]) if x and x in at else None,
                    others=_ratio_label(at.iloc[0], [key for key in others if key != x], x) if x else "",
                    slower=levels[0],
                    faster=other,
                    ratio=_estimate(model.mean(label)),
                    adjusted=_estimate(adjusted.mean(label)) if adjusted and adjusted.degrees > 0 else None,
                    follows_machine=_follows(adjusted),
                    same_work=bool((at["images_processed_a"] == at["images_processed_b"]).all()),
                )
            )
    return sorted(result, key=lambda ratio: (ratio.faster, ratio.x or 0))


def _adjusted_ratios(
    pairs: pd.DataFrame, quotients: list[float], labels: list[str], blocks: list[str]
) -> LogModel | None:
    """The ratios as they would be where both runs of a pair met the same machine; None where it did not change."""
    columns = ("machine_a", "machine_b")
    if any(column not in pairs or pairs[column].isna().any() for column in columns):
        return None
    relative = pairs["machine_a"] / pairs["machine_b"]
    if max(relative.max(), 1.0) / min(relative.min(), 1.0) < machine.CHANGE_LIMIT:
        return None
    return fit_log_model(quotients, labels, blocks, relative.tolist(), centred=False)


def _follows(adjusted: LogModel | None) -> bool | None:
    """Whether the times follow the yardstick; None where it did not change, False where that cannot be shown."""
    return None if adjusted is None else adjusted.covariate_p is not None and adjusted.covariate_p < SIGNIFICANCE


def _answer(groups: list[Group], ratios: list[Ratio], study: Study, y: str) -> list[str]:
    keys = [study.curve.x] if study.curve else [key for key in study.compared if key != "device"]
    sentences = [_group_answer(group, short_key(keys[0]) if len(keys) == 1 else None, y) for group in groups]
    for faster in dict.fromkeys(ratio.faster for ratio in ratios):
        sentences.append(_ratio_answer([ratio for ratio in ratios if ratio.faster == faster], str(study.contrast)))
    return sentences or ["No run has succeeded yet, so there is no answer."]


def _group_answer(group: Group, factor: str | None, y: str) -> str:
    where = f"{'On' if group.label in ('cpu', 'cuda') else 'With'} {device_words(group.label, article=True)}"
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


def _control_answer(ratios: list[Ratio]) -> str:
    """What the null control shows: how much this study tells apart where there is nothing to tell."""
    told = [ratio for ratio in ratios if _differs(ratio.ratio)]
    widest = max(ratios, key=lambda ratio: abs(math.log(ratio.ratio.value)))
    at = f" at {widest.label}" if widest.label else ""
    text = (
        "Null control: each configuration was run twice as if it were two. The ratio of the two is furthest from "
        f"1{at}, with {widest.ratio.value:.3g}; "
    )
    if all(ratio.ratio.low is None for ratio in ratios):
        return f"{text}without replicates there is no interval."
    many = f"{len(told)} of {len(ratios)} intervals leave out 1"
    return text + (f"{many}, where one in twenty is to be expected." if told else "no interval leaves out 1.")


def is_explained(ratio: Ratio) -> bool:
    """Whether a difference shows only until the machine's change is accounted for, which the times follow."""
    gone = ratio.adjusted is not None and not _differs(ratio.adjusted)
    return bool(ratio.follows_machine) and _differs(ratio.ratio) and gone


def is_unclear(ratio: Ratio) -> bool:
    """Whether the machine changed, and the runs are too few to tell its part in the difference."""
    gone = ratio.adjusted is None or not _differs(ratio.adjusted)
    return ratio.follows_machine is False and _differs(ratio.ratio) and gone


def _differs(ratio: Estimate) -> bool:
    return ratio.low is not None and ratio.high is not None and not ratio.low <= 1 <= ratio.high


def _ratio_answer(ratios: list[Ratio], contrast: str) -> str:
    low = min(ratios, key=lambda ratio: ratio.ratio.value)
    high = max(ratios, key=lambda ratio: ratio.ratio.value)

    def words(ratio: Ratio) -> str:
        bounds = f" (95%: {ratio.ratio.low:.3g} to {ratio.ratio.high:.3g})" if ratio.ratio.low is not None else ""
        at = f" at {ratio.label}" if ratio.label else ""
        return f"{ratio.ratio.value:.3g}{bounds}{at}"

    spread = words(high) if low is high else f"between {words(low)} and {words(high)}"
    work = "" if all(ratio.same_work for ratio in ratios) else " They did not train on equally many images."
    gone = [ratio for ratio in ratios if is_explained(ratio)]
    if gone:
        at = f" at {listed([ratio.label for ratio in gone])}" if gone[0].label else ""
        work += f" No difference is left{at} once the yardstick accounts for the machine's own change."
    if doubtful := [ratio for ratio in ratios if is_unclear(ratio)]:
        at = f" at {listed([ratio.label for ratio in doubtful])}" if doubtful[0].label else ""
        work += f" The machine itself changed{at}, and the runs are too few to tell its part: no conclusion."
    if contrast == "device":
        slower, faster = device_words(low.slower, article=True), device_words(low.faster, article=True)
        return f"The time on {slower} over the time on {faster} is {spread}.{work}"
    return f"The time with {short_key(contrast)} {low.slower} over that with {low.faster} is {spread}.{work}"
