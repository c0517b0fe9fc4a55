"""From the table of timings to an answer: means with intervals, the best set, the curve, the contrast, warnings."""

from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import Field

from study.config import Strict, Study, shown
from study.stats.curve import CurveFit, fit_curve
from study.stats.summary import SIGNIFICANCE, Interval, LogModel, fit_log_model, level_test
from study.stats.warnings import warnings_of
from study.words import device_words, listed, seconds_words, short_key


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
    accuracy: float | None = Field(description="Mean over the runs, 0 to 1.")
    images_per_second: float | None = Field(description="Median of the steady steps' rate.")
    data_wait_share: float | None = Field(description="Share of the training time spent waiting for data; median.")
    images_per_epoch: float | None = Field(description="Images really trained on, mean over epochs.")
    outcomes: dict[str, int]


class Group(Strict):
    """Levels that differ in the curve's factor alone (in a study without a curve: all levels on one device)."""

    label: str
    levels: list[Level]
    best: str | None = Field(description="The level with the smallest mean.")
    indistinguishable: list[str] = Field(description="Levels whose time cannot be told from the best one's.")
    curve: CurveFit | None


class Ratio(Strict):
    """Time of one level of the contrast over another's, everything else equal, paired within blocks."""

    label: str
    x: float | None
    others: str = Field(description="Levels of the factors that are neither the contrast nor the curve's.")
    slower: str
    faster: str
    ratio: Estimate
    same_work: bool = Field(description="Whether both trained on equally many images.")


class Analysis(Strict):
    """All that the report says about one study's numbers."""

    y: str
    groups: list[Group]
    ratios: list[Ratio]
    answer: list[str] = Field(description="The answer, sentence by sentence.")
    warnings: list[str]


def analyse(study: Study, frame: pd.DataFrame) -> Analysis:
    """Analyse one study's table of timings (a row a planned run)."""
    y = study.curve.y if study.curve else "fit_seconds"
    x = study.curve.x if study.curve else None
    group_keys = [key for key in study.factors if key != x] if x else [key for key in study.factors if key == "device"]
    groups = [
        _group(study, label, part, x, y)
        for label, part in _split(frame, group_keys, study)
        if (part["outcome"] != "unavailable").any()
    ]
    ratios = _ratios(study, frame, y, x) if study.contrast else []
    return Analysis(
        y=y,
        groups=groups,
        ratios=ratios,
        answer=_answer(groups, ratios, x, y, study.contrast),
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
    orders = [[str(shown(study, key, level)) for level in study.factors[key]] for key in keys]
    parts.sort(key=lambda item: [order.index(str(name)) for order, name in zip(orders, item[0], strict=True)])
    return [(", ".join(map(str, level)), part) for level, part in parts]


def _usable(frame: pd.DataFrame, y: str) -> pd.DataFrame:
    """The successful runs, with the block of the analysis: session and replicate."""
    if y not in frame:
        return frame.iloc[:0].assign(session_block="")
    usable = frame[(frame["outcome"] == "ok") & frame[y].notna()]
    session = usable["session"].astype(int).astype(str)
    return usable.assign(session_block=session + "." + usable["block"].astype(int).astype(str))


def _group(study: Study, label: str, part: pd.DataFrame, x: str | None, y: str) -> Group:
    keys = [x] if x else list(study.factors)
    names = part.apply(lambda row: _level_label(row, keys), axis=1)
    part = part.assign(level=names)
    usable = _usable(part, y)
    times = usable[y].tolist() if len(usable) else []
    blocks = usable["session_block"].tolist()
    model = fit_log_model(times, usable["level"].tolist(), blocks) if times else None
    levels = [
        _level(name, rows, usable[usable["level"] == name], model, x)
        for name, rows in part.groupby("level", sort=False)
    ]
    if x:
        levels.sort(key=lambda level: level.x or 0)
    differs = level_test(times, usable["level"].tolist(), blocks) if times else None
    best, same = _best(levels, model, differs)
    curve = None
    if x and usable["level"].nunique() >= 3:
        curve = fit_curve(usable[x].tolist(), times, blocks)
    return Group(label=label, levels=levels, best=best, indistinguishable=same, curve=curve)


def _level_label(row: "pd.Series[Any]", keys: list[str]) -> str:
    return ", ".join(f"{row[key]:g}" if isinstance(row[key], float) else str(row[key]) for key in keys) or "the run"


def _ratio_label(row: "pd.Series[Any]", keys: list[str], x: str | None) -> str:
    """The other factors' levels in words, the curve's with its name: ``batch size 64, bf16``."""
    ordered = sorted(keys, key=lambda key: key != x)
    return ", ".join(f"{short_key(key)} {row[key]:g}" if key == x else str(row[key]) for key in ordered)


def _level(name: Any, rows: pd.DataFrame, usable: pd.DataFrame, model: LogModel | None, x: str | None) -> Level:
    time = model.mean(name) if model and len(usable) else None
    return Level(
        label=str(name),
        x=float(rows[x].iloc[0]) if x else None,
        runs=len(usable),
        time=_estimate(time) if time else None,
        accuracy=_mean(usable, "accuracy"),
        images_per_second=_median(usable, "steady_images_per_second"),
        data_wait_share=_median(usable, "data_wait_share"),
        images_per_epoch=_mean(usable, "images_per_epoch"),
        outcomes={str(key): int(value) for key, value in rows["outcome"].value_counts().items()},
    )


def _mean(frame: pd.DataFrame, column: str) -> float | None:
    return float(frame[column].mean()) if column in frame and frame[column].notna().any() else None


def _median(frame: pd.DataFrame, column: str) -> float | None:
    return float(frame[column].median()) if column in frame and frame[column].notna().any() else None


def _estimate(interval: Interval) -> Estimate:
    return Estimate(value=interval.value, low=interval.low, high=interval.high)


def _best(levels: list[Level], model: LogModel | None, differs_p: float | None) -> tuple[str | None, list[str]]:
    """The level with the smallest mean, and every level whose ratio to it includes one.

    Where no difference between the levels shows at all (the F test), none is told from the best: without
    that protection (Fisher's) the least of five equal levels would often beat some other by chance.
    """
    timed = [level for level in levels if level.time]
    if not timed or model is None:
        return None, []
    best = min(timed, key=lambda level: level.time.value if level.time else 0.0).label
    same = []
    for level in timed:
        low = model.ratio(level.label, best).low
        if level.label == best or low is None or low <= 1 or differs_p is None or differs_p >= SIGNIFICANCE:
            same.append(level.label)
    return best, same


def _ratios(study: Study, frame: pd.DataFrame, y: str, x: str | None) -> list[Ratio]:
    """The contrast's first level over each other one, at each combination of the other factors."""
    contrast = str(study.contrast)
    usable = _usable(frame, y)
    others = [key for key in study.factors if key != contrast]
    names = [str(shown(study, contrast, level)) for level in study.factors[contrast]]
    levels = [name for name in names if (usable[contrast].astype(str) == name).any()]
    result: list[Ratio] = []
    for other in levels[1:]:
        first, second = (usable[usable[contrast].astype(str) == level] for level in (levels[0], other))
        pairs = first.merge(second, on=[*others, "session_block"], suffixes=("_a", "_b"))
        if pairs.empty:
            continue
        labels = pairs.apply(lambda row: _ratio_label(row, others, x), axis=1)
        quotients = pairs[f"{y}_a"] / pairs[f"{y}_b"]
        # The ratio of the means within blocks: a block's own factor cancels, what is left is the noise.
        model = fit_log_model(quotients.tolist(), labels.tolist(), pairs["session_block"].tolist())
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
                    same_work=bool((at["images_processed_a"] == at["images_processed_b"]).all()),
                )
            )
    return sorted(result, key=lambda ratio: (ratio.faster, ratio.x or 0))


def _answer(groups: list[Group], ratios: list[Ratio], x: str | None, y: str, contrast: str | None) -> list[str]:
    sentences = [_group_answer(group, x, y) for group in groups]
    for faster in dict.fromkeys(ratio.faster for ratio in ratios):
        sentences.append(_ratio_answer([ratio for ratio in ratios if ratio.faster == faster], str(contrast)))
    return sentences or ["No run has succeeded yet, so there is no answer."]


def _group_answer(group: Group, x: str | None, y: str) -> str:
    where = f"{'On' if group.label in ('cpu', 'cuda') else 'With'} {device_words(group.label, article=True)}"
    best = next((level for level in group.levels if level.label == group.best), None)
    if best is None or best.time is None:
        return f"{where} no run has succeeded."
    name = f"{short_key(x)} {best.label}" if x else best.label
    time = seconds_words(best.time.value, best.time.low, best.time.high)
    if len(group.levels) == 1:
        return f"{where} it takes {time}."
    if best.runs < 2:
        return f"{where} the smallest {y} is that of {name}, {time}: one run a setting cannot tell which is fastest."
    rest = [label for label in group.indistinguishable if label != best.label]
    told = (
        f"{listed(rest)} cannot be told from it"
        if rest
        else "every other one is slower by more than the noise between runs"
    )
    verdict = f" {group.curve.verdict}" if group.curve else ""
    return f"{where} the fastest is {name}, {time}; {told}.{verdict}"


def _ratio_answer(ratios: list[Ratio], contrast: str) -> str:
    low = min(ratios, key=lambda ratio: ratio.ratio.value)
    high = max(ratios, key=lambda ratio: ratio.ratio.value)

    def words(ratio: Ratio) -> str:
        bounds = f" (95%: {ratio.ratio.low:.3g} to {ratio.ratio.high:.3g})" if ratio.ratio.low is not None else ""
        at = f" at {ratio.label}" if ratio.label else ""
        return f"{ratio.ratio.value:.3g}{bounds}{at}"

    spread = words(high) if low is high else f"between {words(low)} and {words(high)}"
    work = "" if all(ratio.same_work for ratio in ratios) else " They did not train on equally many images."
    if contrast == "device":
        slower, faster = device_words(low.slower, article=True), device_words(low.faster, article=True)
        return f"The time on {slower} over the time on {faster} is {spread}.{work}"
    return f"The time with {short_key(contrast)} {low.slower} over that with {low.faster} is {spread}.{work}"
