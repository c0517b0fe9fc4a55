"""Ratios of times between two levels of a factor: paired within blocks, with their two times and the work done."""

import math
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field
from scipy import stats

from study.analysis.stats import machine_change
from study.analysis.stats.log_model import SIGNIFICANCE, LogModel, fit_log_model
from study.analysis.stats.usable import Estimate, estimate, mean_of, place_of, usable_runs
from study.analysis.words import device_words, listed, number, short_key
from study.base.strict import Strict
from study.config.study import Study, shown

BOOTSTRAP_MINIMUM, BOOTSTRAP_SEED = 8, 20_240_103
ACCURACY_LIMIT = 0.02
"""Accuracies nearer than this are not told apart: the noise of a validation set of some hundred images."""


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
    slower_seconds: float = Field(description="Geometric mean of the pairs' own times, the ratio's numerator.")
    faster_seconds: float
    slower_images: float | None = Field(description="Images trained on, mean over the pairs; null for inference.")
    faster_images: float | None
    slower_accuracy: float | None = Field(description="Mean accuracy reached, 0 to 1.")
    faster_accuracy: float | None
    bootstrap: Estimate | None = Field(
        description="Bias-corrected bootstrap over the pairs, beside the t interval; null under 8 pairs, where a "
        "bootstrap is too narrow."
    )
    same_work: bool = Field(description="Whether both trained on equally many images.")
    same_precision: bool
    same_accuracy: bool | None = Field(
        description="False where the accuracies reached differ by 2 points or more, and by more than their noise (a t "
        "test of the pairs at 5%); null where not known."
    )


def ratios_of(study: Study, frame: pd.DataFrame, y: str, x: str | None, contrast: str) -> list[Ratio]:
    """The contrast's first level over each other one, at each combination of the other factors."""
    usable = usable_runs(frame, y)
    others = [key for key in study.compared if key != contrast]
    twins = ["control"] if "control" in study.factors and contrast != "control" else []
    names = [str(shown(study, contrast, level)) for level in study.factors[contrast]]
    levels = [name for name in names if (usable[contrast].astype(str) == name).any()]
    orders = {key: [shown(study, key, level) for level in study.factors[key]] for key in others}
    told = [key for key in others if usable[key].nunique() > 1]  # what is the same everywhere tells no ratio apart
    result: list[Ratio] = []
    for other in levels[1:]:
        first, second = (usable[usable[contrast].astype(str) == level] for level in (levels[0], other))
        pairs = first.merge(second, on=[*others, *twins, "session_block"], suffixes=("_a", "_b"))
        if pairs.empty:
            continue
        places = [[place_of(orders[key], row[key]) for key in others] for _, row in pairs.iterrows()]
        pairs = pairs.iloc[sorted(range(len(pairs)), key=places.__getitem__)]
        labels = pairs.apply(lambda row: _label(row, told, x), axis=1)
        quotients = pairs[f"{y}_a"] / pairs[f"{y}_b"]
        # The ratio of the means within blocks: a block's own factor cancels, what is left is the noise.
        pair_blocks = pairs["session_block"].tolist()
        model = fit_log_model(quotients.tolist(), labels.tolist(), pair_blocks)
        adjusted = _adjusted(pairs, quotients.tolist(), labels.tolist(), pair_blocks)
        for label in dict.fromkeys(labels):
            at = pairs[labels == label]
            result.append(
                Ratio(
                    label=label,
                    x=float(at[x].iloc[0]) if x and x in at else None,
                    others=_label(at.iloc[0], [key for key in told if key != x], x) if x else "",
                    slower=levels[0],
                    faster=other,
                    ratio=estimate(model.mean(label)),
                    adjusted=estimate(adjusted.mean(label)) if adjusted and adjusted.degrees > 0 else None,
                    follows_machine=_follows(adjusted),
                    bootstrap=contrast_bootstrap(at[f"{y}_a"] / at[f"{y}_b"]),
                    **_work(at, y),
                )
            )
    return sorted(result, key=lambda ratio: (ratio.faster, ratio.x or 0))


def _work(at: pd.DataFrame, y: str) -> dict[str, Any]:
    """The two times that a ratio divides, and the work that they did."""
    accuracy = [mean_of(at, f"accuracy_{side}") for side in "ab"]
    return {
        "slower_seconds": float(np.exp(np.log(at[f"{y}_a"]).mean())),
        "faster_seconds": float(np.exp(np.log(at[f"{y}_b"]).mean())),
        "slower_images": mean_of(at, "images_processed_a"),
        "faster_images": mean_of(at, "images_processed_b"),
        "slower_accuracy": accuracy[0],
        "faster_accuracy": accuracy[1],
        # Inference counts a thousand images everywhere, and has no images trained on.
        "same_work": not at["images_processed_a"].sub(at["images_processed_b"]).any(),
        "same_precision": bool((at["precision_a"] == at["precision_b"]).all()) if "precision_a" in at else True,
        "same_accuracy": _same_accuracy(at) if None not in accuracy else None,
    }


def _same_accuracy(at: pd.DataFrame) -> bool:
    gaps = (at["accuracy_a"] - at["accuracy_b"]).dropna()
    if len(gaps) < 2 or abs(gaps.mean()) < ACCURACY_LIMIT:
        return True
    return bool(gaps.std() > 0 and stats.ttest_1samp(gaps, 0).pvalue >= SIGNIFICANCE)


def contrast_bootstrap(quotients: "pd.Series[float]") -> Estimate | None:
    """The geometric mean of paired ratios with a BCa interval (Efron 1987); None under 8 pairs or without noise.

    Under 8 it is too narrow: a bootstrap of three replicates covers 73% in place of 95%.
    """
    logs = np.log(quotients.to_numpy(float))
    if len(logs) < BOOTSTRAP_MINIMUM or np.ptp(logs) == 0:
        return None
    found = stats.bootstrap((logs,), np.mean, rng=np.random.default_rng(BOOTSTRAP_SEED)).confidence_interval
    return Estimate(value=float(np.exp(logs.mean())), low=float(np.exp(found.low)), high=float(np.exp(found.high)))


def _adjusted(pairs: pd.DataFrame, quotients: list[float], labels: list[str], blocks: list[str]) -> LogModel | None:
    """The ratios as they would be where both runs of a pair met the same machine; None where it did not change."""
    columns = ("machine_a", "machine_b")
    if any(column not in pairs or pairs[column].isna().any() for column in columns):
        return None
    relative = pairs["machine_a"] / pairs["machine_b"]
    if max(relative.max(), 1.0) / min(relative.min(), 1.0) < machine_change.CHANGE_LIMIT:
        return None
    return fit_log_model(quotients, labels, blocks, relative.tolist(), centred=False)


def _follows(adjusted: LogModel | None) -> bool | None:
    """Whether the times follow the yardstick; None where it did not change, False where that cannot be shown."""
    return None if adjusted is None else adjusted.covariate_p is not None and adjusted.covariate_p < SIGNIFICANCE


def _label(row: "pd.Series[Any]", keys: list[str], x: str | None) -> str:
    """The other factors' levels in words, the curve's with its name: ``batch size 64, bf16``."""
    ordered = sorted(keys, key=lambda key: key != x)
    return ", ".join(f"{short_key(key)} {row[key]:g}" if key == x else device_words(str(row[key])) for key in ordered)


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


def ratio_answer(ratios: list[Ratio], contrast: str) -> str:
    """The ratios over one level in a sentence: the smallest and the largest, with their times, and what to doubt."""
    low = min(ratios, key=lambda ratio: ratio.ratio.value)
    high = max(ratios, key=lambda ratio: ratio.ratio.value)

    def words(ratio: Ratio) -> str:
        bounds = f"95%: {ratio.ratio.low:.3g} to {ratio.ratio.high:.3g}; " if ratio.ratio.low is not None else ""
        at = f" at {ratio.label}" if ratio.label else ""
        times = f"{number(ratio.slower_seconds)} s over {number(ratio.faster_seconds)} s"
        return f"{ratio.ratio.value:.3g} ({bounds}{times}){at}"

    spread = words(high) if low is high else f"between {words(low)} and {words(high)}"
    work = _work_words(ratios, contrast)
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


def _work_words(ratios: list[Ratio], contrast: str) -> str:
    """What makes two times no times of the same work."""
    text = "" if all(ratio.same_work for ratio in ratios) else " They did not train on equally many images."
    if contrast != "training.precision" and not all(ratio.same_precision for ratio in ratios):
        text += " They did not compute in the same precision."
    apart = [ratio for ratio in ratios if ratio.same_accuracy is False]
    if apart:
        worst = max(apart, key=lambda ratio: abs((ratio.slower_accuracy or 0) - (ratio.faster_accuracy or 0)))
        at = f" at {worst.label}" if worst.label else ""
        text += (
            f" They did not reach the same accuracy:{at} {worst.slower_accuracy:.0%} and {worst.faster_accuracy:.0%}."
        )
    return text


def control_answer(ratios: list[Ratio]) -> str:
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
