"""A group of settings that are compared with each other: the time of each level, and which may be
the fastest."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from study.analysis.answers.curve import CurveFit, curve_of_model
from study.analysis.answers.phases import phases_of
from study.analysis.groups import GroupFit
from study.analysis.stats.estimate import Estimate, Ineligible, Undetermined
from study.analysis.stats.optimum import Noise, equivalent_to, noise_of, ratios_to
from study.analysis.stats.usable import mean_of
from study.analysis.table.exclusions import BY_RULE
from study.artifacts.setting import Levels, Setting
from study.artifacts.timing import resources
from study.base.strict import Strict
from study.config.names import level_words
from study.config.settings import get
from study.config.study import Study, display_level


class LevelSummary(Strict):
    """The runs of one level: their time, and what else was measured."""

    setting: Setting
    """The level on the curve's axis, or the levels of all factors but the device."""
    x: float | None
    """The curve's factor; null in a study without a curve."""
    runs: int
    """Runs that count: they succeeded, and none is excluded."""
    excluded: dict[str, int]
    """Number of successful runs that a rule excludes, by reason."""
    time: Estimate | None
    """Seconds; null where no run counts, and without bounds where the mean is not determined, or
    beside its runs."""
    undetermined: Undetermined | None
    """Why the mean is not determined; null where it is."""
    time_without_outliers: float | None
    """Mean seconds without the outliers; null where no run is one."""
    accuracy: float | None
    """Mean over the runs, 0 to 1."""
    resources: dict[str, float]
    """Medians over the runs of columns of the table of timings: phases, memory, energy and
    arithmetic."""
    phases: dict[str, float] = {}
    """Seconds of each phase, which add up to the mean; empty where they are not known."""
    outcomes: dict[str, int]
    """Number of runs by outcome."""

    @property
    def label(self) -> str:
        """The name by which its group, and what is found of it, refer to the level."""
        return self.setting.label


class Group(Strict):
    """Levels that differ in the curve's factor alone (in a study without a curve: all levels on one
    device).

    Where no run succeeded, all but the setting and the levels is empty. Levels are referred to by
    their labels.
    """

    setting: Setting
    """The levels that all of its runs share."""
    levels: list[LevelSummary]
    best: str | None = None
    """The candidate with the smallest mean; null where nothing can be said of it: one that is not
    determined may be faster, or the machine's drift may be the differences."""
    indistinguishable: list[str] = []
    """Candidates that hold the truly fastest one with 95% probability: all without replicates."""
    machine_change: float | None = None
    """The slowest reference workload over the fastest: how far the machine changed; null without a
    reference workload."""
    drift_confounded: bool = False
    """Whether the machine's drift within blocks may be what tells the two candidates apart."""
    curve: CurveFit | None = None
    """Null with fewer than three levels whose time is determined, or without a curve."""
    ineligible: dict[str, Ineligible] = {}
    """Levels that are no candidates, with the reason."""
    equivalent: list[str] = []
    """Levels whose time is shown to be that of the fastest, within the study's margin."""
    ratios: dict[str, Estimate] = {}
    """Time of every other level over that of the best, with the bounds by which it is told to be
    slower; none where its mean is not determined."""
    noise: Noise | None = None
    """Null without replicates, or with a single level."""

    @property
    def label(self) -> str:
        """Its setting in words."""
        return self.setting.label

    @property
    def timed(self) -> list[LevelSummary]:
        """The levels that have a time."""
        return [level for level in self.levels if level.time]

    @property
    def seconds(self) -> dict[str, float]:
        """The mean seconds of each level that has a time, by its label."""
        return {level.label: level.time.value for level in self.levels if level.time}

    def ratio(self, slower: str, faster: str) -> Estimate | None:
        """Return the time of one level over that of another, of which one is the best; else
        None."""
        if faster == self.best:
            return self.ratios.get(slower)
        found = self.ratios.get(faster) if slower == self.best else None
        return found.inverse if found else None

    @property
    def tied_are_equal(self) -> bool:
        """Whether each level that may be as fast as the best one is shown to be equal to it."""
        return {*self.indistinguishable} - {self.best} <= {*self.equivalent}


class TimedSetting(NamedTuple):
    """One setting that has a time."""

    place: int
    group: Group
    level: LevelSummary
    time: Estimate

    @property
    def levels(self) -> Levels:
        """Its levels, and those that its group shares."""
        return self.group.setting.levels | self.level.setting.levels

    def rest(self, named: Collection[str]) -> Levels:
        """Return its levels without the ``named`` keys."""
        return {key: level for key, level in self.levels.items() if key not in named}


def ends_with(
    study: Study, groups: Sequence[Group], chosen: Mapping[str, object]
) -> list[TimedSetting]:
    """Return the settings that have these levels, as they are or as tables show them.

    A key that no factor varies has the study's own level.
    """

    def words(levels: Mapping[str, object]) -> list[str]:
        own = {key: levels.get(key, get(study, key)) for key in chosen}
        return [level_words(key, display_level(study, key, level)) for key, level in own.items()]

    wanted = words(chosen)
    ends = []
    for place, group in enumerate(groups):
        ends += [
            TimedSetting(place, group, level, level.time) for level in group.levels if level.time
        ]
    return [end for end in ends if words(end.levels) == wanted]


def group_of(study: Study, group: GroupFit) -> Group:
    """Return the analysis of one group."""
    model = group.model
    levels = [_level(study, name, group) for name in group.levels]
    if study.curve:  # along the curve's factor, or as the study lists those of its other factors
        levels.sort(key=lambda level: level.x or 0)
    if model is None:
        return Group(setting=group.setting, levels=levels)
    best = None if group.drift_confounded else smallest(levels, group.ineligible)
    drift = group.clean["drift"]
    timed = [level for level in levels if level.time]
    eligible = [level.label for level in timed if level.label not in group.ineligible]
    optimum = None if group.drift_confounded else group.optimum_among(eligible)
    # The curve is through the levels whose time is determined; where none is, through all.
    known = [level for level in timed if not level.undetermined] or timed
    sizes, curve = {level.label: level.x for level in known}, None
    if study.curve and len(sizes) >= 3:
        along = [sizes.get(level) for level in model.levels]
        best_of_curve = group.optimum_among(sizes)
        curve = curve_of_model(model, along, best_of_curve, study.equivalence_margin)
    return Group(
        setting=group.setting,
        levels=levels,
        best=best,
        indistinguishable=[one for one in eligible if one in optimum.indistinguishable]
        if optimum
        else eligible,
        ineligible=group.ineligible,
        machine_change=None if drift.isna().any() else float(drift.max() / drift.min()),
        drift_confounded=group.drift_confounded,
        curve=curve,
        equivalent=equivalent_to(model, best, study.equivalence_margin) if best else [],
        ratios={
            label: ratio.bare if label in group.undetermined else ratio
            for label, ratio in ratios_to(model, best, eligible).items()
        }
        if best and optimum
        else {},
        noise=noise_of(model),
    )


def smallest(levels: Sequence[LevelSummary], ineligible: Mapping[str, object]) -> str | None:
    """Return the candidate with the smallest mean; None where one that is not determined may be
    faster."""
    timed = [
        (level, level.time) for level in levels if level.time and level.label not in ineligible
    ]
    told = [
        (time.value, level.label, time.high or time.value)
        for level, time in timed
        if not level.undetermined
    ]
    if not told:
        return None
    _, label, high = min(told)
    return None if any(time.value <= high for level, time in timed if level.undetermined) else label


def _level(study: Study, name: str, group: GroupFit) -> LevelSummary:
    rows, x = group.part[group.part["level"] == name], study.curve_key
    clean = group.clean[group.clean["level"] == name]
    left = rows[(rows["outcome"] == "ok") & rows["excluded"].isin(BY_RULE)]
    typical = clean[[*resources()]].median().dropna()
    model = group.model
    time = group.times.get(name)
    when = group.levels[name].levels.get("training.validation", study.training.validation)
    validations = 1 if when == "end" else None
    recorded = rows[rows["excluded"].isna() | rows["excluded"].isin(BY_RULE)]
    return LevelSummary(
        setting=group.levels[name],
        x=float(rows[x].iloc[0]) if x else None,
        runs=len(clean),
        excluded=dict(Counter(left["excluded"]).most_common()),
        time=time,
        undetermined=group.undetermined.get(name),
        time_without_outliers=float(np.exp(model.effects[model.levels.index(name)]))
        if model and clean["outlier"].any()
        else None,
        accuracy=mean_of(clean, "accuracy"),
        resources={str(column): float(value) for column, value in typical.items()},
        phases=phases_of(clean, study.total, time.value, validations) if time else {},
        outcomes=dict(Counter(recorded["outcome"]).most_common()),
    )
