"""Ratios of times between two levels of a factor: quotients of their means, with the noise of pairs
in blocks."""

from collections.abc import Hashable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import pandas as pd

from study.analysis.groups import GroupFit
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.log_model import Critical, LogModel, fit_log_model, one_sided, together
from study.analysis.stats.usable import mean_drift_bias, survives_drift
from study.artifacts.setting import Setting, setting_of
from study.base.strict import Strict
from study.config.study import Study, display_level


class Ratio(Strict):
    """The time at one level of the contrast over that at another, everything else equal, paired
    within blocks."""

    contrast: str
    """Dotted key of the factor whose levels are compared."""
    at: Setting
    """Levels of the other factors, as far as they differ between the ratios."""
    x: float | None
    """Level of the curve's factor; null in a study without a curve."""
    slower: str
    faster: str
    ratio: Estimate
    """The quotient of the two means; no bounds where one is not determined, or where the machine's
    drift within blocks may be the difference."""
    together: Estimate
    """The same with bounds that hold for all settings of this contrast at once, with 95%
    probability: an extreme of several ratios is read with these."""
    one_sided: Estimate
    """The same with bounds of which each holds by itself with 95%: a claim is judged by these."""
    slower_seconds: float
    """Mean time at `slower`, as in its group."""
    faster_seconds: float
    """Mean time at `faster`, as in its group."""


class Overall(NamedTuple):
    """The ratio over all settings of a contrast, with the block as the unit, for a side may shift
    in a block as one."""

    contrast: str
    slower: str
    faster: str
    ratio: Estimate
    """Without bounds where a mean is not determined, or where drift confounds the difference: what
    the machine does within blocks is no noise that the blocks tell of."""
    drift_confounded: bool
    """Whether the machine's drift within blocks may be what tells the sides apart in the mean;
    never of a null control."""
    pairs: pd.DataFrame
    """The pairs of runs that differ in the contrast alone and met in one block; columns end in
    ``_a`` and ``_b`` for the runs of the two sides."""
    settings: list[Setting]
    """The setting of each pair, of the factors that tell the ratios apart."""


def overalls_of(study: Study, groups: Sequence[GroupFit], contrast: str | None) -> list[Overall]:
    """Return the contrast's first level over each other that it met in a block; none where it is no
    factor."""
    if contrast not in study.factors:
        return []
    slower, *others = [*sides_of(groups, study, contrast)] or [""]
    found = (overall_of(study, groups, contrast, slower, other) for other in others)
    return [overall for overall in found if overall]


def overall_of(
    study: Study, groups: Sequence[GroupFit], contrast: str, slower: str, faster: str
) -> Overall | None:
    """Return the geometric mean of the ratios over the settings that both sides have; None where no
    two runs met.

    A block has one number: the mean of what its settings lie above their own means, and their mean.
    """
    sides = sides_of(groups, study, contrast)
    keys = [key for key in study.compared if key != contrast]
    if "control" in study.factors and contrast != "control":
        keys.append("control")
    keys += ["session", "session_block"]
    pairs = sides[slower].merge(sides[faster], on=keys, suffixes=("_a", "_b"))
    if pairs.empty:
        return None
    y = study.total
    known = _settings(study, groups, contrast)
    settings = [known[end] for end in zip(pairs["place_a"], pairs["level_a"], strict=True)]
    block = pairs["session_block"]
    quotients = _logs(pairs, y)
    over = quotients.groupby([setting.label for setting in settings])
    left = (quotients - over.transform("mean") + float(over.mean().mean())).groupby(block).mean()
    starts = pairs.groupby(block)["session"].first()[left.index]
    model = fit_log_model(
        np.exp(left).tolist(), ["all"] * len(left), left.index.tolist(), starts.tolist()
    )
    ends = chain.from_iterable(_ends(rows) for _, rows in pairs.groupby(["place_a", "level_a"]))
    undetermined = any(level in groups[place].undetermined for place, level in ends)
    ratio = model.mean("all")
    biases = _by_block(pairs, "drift_covariate")
    drift_confounded = contrast != "control" and not survives_drift(left, biases)
    told = (
        ratio.bare if undetermined or drift_confounded else ratio.widened(mean_drift_bias(biases))
    )
    return Overall(contrast, slower, faster, told, drift_confounded, pairs, settings)


def ratios_of(study: Study, groups: Sequence[GroupFit], overalls: Sequence[Overall]) -> list[Ratio]:
    """Return the ratio of every setting, from the pairs that its ``overalls`` have."""
    found = chain.from_iterable(_ratios(study, groups, overall) for overall in overalls)
    return sorted(found, key=lambda ratio: (ratio.faster, ratio.x or 0))


LevelIndex = tuple[int, str]
"""The place of a group among all, and one of its levels."""


def quotient_of(
    groups: Sequence[GroupFit],
    slower: LevelIndex,
    faster: LevelIndex,
    y: str,
    critical: Critical | None = None,
) -> Estimate:
    """Return the mean time of one level over that of one of another group, with the noise of their
    pairs in blocks.

    The other levels of both groups are paired, too, for they tell of the noise. ``critical`` is
    that of :meth:`LogModel.interval`. There are no bounds where a mean is not determined, or
    without replicates.
    """
    (first, level), (second, other) = slower, faster
    # From the level of the second group to that of the first one: the two in question meet.
    partners = {name: name for name in groups[second].times} | {level: other, other: level}
    sides = [
        groups[first].clean.assign(place=first, pair=groups[first].clean["level"]),
        groups[second].clean.assign(place=second, pair=groups[second].clean["level"].map(partners)),
    ]
    pairs = sides[0].merge(sides[1], on=["pair", "session", "session_block"], suffixes=("_a", "_b"))
    times = groups[first].times[level].value, groups[second].times[other].value
    if level not in set(pairs["pair"]):
        return Estimate(value=times[0] / times[1])
    paired = _model_of_pairs(pairs, y, pairs["pair"].tolist())
    known = _has_noise(pairs[pairs["pair"] == level], groups, paired)
    return _quotient(times, paired if known else None, level, critical)


def _model_of_pairs(pairs: pd.DataFrame, y: str, levels: Sequence[Hashable]) -> LogModel:
    """Return the model of the quotients of pairs of runs, each of one of the ``levels``. Within a
    block its own factor cancels; what is left is the noise.

    A quotient is an outlier on the side of its outlier; one of two outliers is none.
    """
    quotients = (pairs[f"{y}_a"] / pairs[f"{y}_b"]).tolist()
    outliers = np.sign(pairs["outlier_a"] - pairs["outlier_b"]).tolist()
    blocks, starts = (pairs[name].tolist() for name in ("session_block", "session"))
    return fit_log_model(quotients, levels, blocks, starts, outliers)


def sides_of(groups: Sequence[GroupFit], study: Study, contrast: str) -> dict[str, pd.DataFrame]:
    """Return the runs that count at each level of the contrast, as the study lists these, with the
    place of their group; a level without such a run is left out."""
    sides = {}
    for name in (str(display_level(study, contrast, level)) for level in study.factors[contrast]):
        parts = [
            group.clean[group.clean[contrast].astype(str) == name].assign(place=place)
            for place, group in enumerate(groups)
        ]
        known = [part for part in parts if len(part)]
        if known:
            sides[name] = pd.concat(known)
    return sides


def _settings(study: Study, groups: Sequence[GroupFit], contrast: str) -> dict[LevelIndex, Setting]:
    """Return the setting of each level of each group, of the factors that tell the ratios apart,
    the curve's first: one with a single level tells none."""
    varied = []
    for key in study.compared:
        levels = set().union(*(group.clean[key].dropna() for group in groups))
        if key != contrast and len(levels) > 1:
            varied.append(key)
    varied.sort(key=lambda key: key != study.curve_key)
    found = {}
    for place, group in enumerate(groups):
        for label, own in group.levels.items():
            every = group.setting.levels | own.levels
            found[place, label] = setting_of(study, {key: every[key] for key in varied})
    return found


def _ratios(study: Study, groups: Sequence[GroupFit], overall: Overall) -> list[Ratio]:
    """Return one ratio for each distinct setting of the pairs."""
    y, x = study.total, study.curve_key
    pairs, settings = overall.pairs, overall.settings
    paired = _model_of_pairs(pairs, y, settings)
    parts = {
        setting: pairs[[other == setting for other in settings]]
        for setting in dict.fromkeys(_settings(study, groups, overall.contrast).values())
        if setting in settings
    }
    known = {
        setting: paired if _has_noise(at, groups, paired) else None for setting, at in parts.items()
    }
    critical = together(max(sum(model is not None for model in known.values()), 1))
    found = []
    for setting, at in parts.items():
        ends = _ends(at)
        times = [groups[place].times[level].value for place, level in ends]
        if ends[0] == ends[1]:  # a null control: the pairs' own means, for both are one level
            times = [float(np.exp(np.log(at[f"{y}_{side}"]).mean())) for side in "ab"]
        biases = _by_block(at, "drift_covariate")
        bias = 0.0 if overall.contrast == "control" else mean_drift_bias(biases)
        # Where sides change places their mean may be as small as the drift, and no ratio of them.
        if overall.drift_confounded and not survives_drift(_by_block(at, y), biases):
            known[setting] = None
        own, joint, alone = (
            _quotient(times, known[setting], setting, reach).widened(bias)
            for reach in (None, critical, one_sided(1))
        )
        found.append(
            Ratio(
                contrast=overall.contrast,
                at=setting,
                x=float(at[x].iloc[0]) if x and x in at else None,
                slower=overall.slower,
                faster=overall.faster,
                ratio=own,
                together=joint,
                one_sided=alone,
                slower_seconds=times[0],
                faster_seconds=times[1],
            )
        )
    return found


def _logs(pairs: pd.DataFrame, column: str) -> "pd.Series[float]":
    """Return the logarithm of the first side's value over the second's, for each pair."""
    return (pairs[f"{column}_a"].astype(float) / pairs[f"{column}_b"].astype(float)).apply(np.log)


def _by_block(pairs: pd.DataFrame, column: str) -> "pd.Series[float]":
    """Return the mean of these logarithms in each block that has some. Of the drift covariate it is
    the drift bias: what the machine alone adds to the difference of the sides."""
    return _logs(pairs, column).groupby(pairs["session_block"]).mean().dropna()


def _ends(at: pd.DataFrame) -> list[LevelIndex]:
    """Return both ends of the pairs of one setting."""
    return [(int(at[f"place_{side}"].iloc[0]), str(at[f"level_{side}"].iloc[0])) for side in "ab"]


def _has_noise(at: pd.DataFrame, groups: Sequence[GroupFit], paired: LogModel) -> bool:
    """Return whether the pairs of a setting tell the noise of its ratio: its means are determined,
    with replicates."""
    undetermined = any(level in groups[place].undetermined for place, level in _ends(at))
    return not undetermined and len(at) > 1 and paired.residual_df > 0


def _quotient(
    times: Sequence[float], model: LogModel | None, at: Hashable, reach: Critical | None
) -> Estimate:
    """Return the quotient of two means with the noise of the pairs of a setting within blocks,
    where that is known."""
    value = times[0] / times[1]
    if model is None:
        return Estimate(value=value)
    found = model.mean(at, reach)
    return found.times(value / found.value)
