"""A group of settings that are compared with each other: the time of each level, and which may be the fastest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pydantic import Field

from study.analysis.answers.curve import CurveFit, curve_of_model
from study.analysis.stats import gate, machine_change
from study.analysis.stats.equivalence import Sensitivity, equivalent_to, sensitivity_of
from study.analysis.stats.groups import Fits, GroupFit
from study.analysis.stats.optimum import level_test
from study.analysis.stats.usable import Estimate, mean_of, place_of
from study.analysis.table.exclusions import BY_RULE, keys_of
from study.artifacts.setting import Levels, Setting
from study.artifacts.timing import resources
from study.base.strict import Strict
from study.config.names import level_words
from study.config.settings import get
from study.config.study import Study, shown


class Level(Strict):
    """The runs of one level: their time, and what else was measured."""

    setting: Setting = Field(description="The level on the curve's axis, or the levels of all factors but the device.")
    x: float | None = Field(description="The curve's factor; null in a study without a curve.")
    runs: int = Field(description="Runs that count: they succeeded, and none is excluded.")
    excluded: dict[str, int] = Field(description="Number of successful runs that a rule excludes, by reason.")
    time: Estimate | None
    """Seconds; null where no run counts, and without bounds where the mean is not determined."""
    undetermined: gate.Undetermined | None = Field(description="Why the mean is not determined; null where it is.")
    time_without_far: float | None
    """Mean seconds without the far runs; null where no run is far."""
    accuracy: float | None = Field(description="Mean over the runs, 0 to 1.")
    images_per_second: float | None
    """Images over the whole training time, or over the time of all timed batches of inference; median over the runs."""
    data_wait_share: float | None = Field(description="Share of the training time spent waiting for data; median.")
    images_per_epoch: float | None = Field(description="Images trained on, mean over epochs.")
    resources: dict[str, float]
    """Medians over the runs of columns of the table of timings: phases, memory, energy and arithmetic."""
    outcomes: dict[str, int] = Field(description="Number of runs by outcome.")

    @property
    def label(self) -> str:
        """The name by which its group, and what is found of it, refer to the level."""
        return self.setting.label


class Group(Strict):
    """Levels that differ in the curve's factor alone (in a study without a curve: all levels on one device).

    Where no run succeeded, all but the setting and the levels is empty. Levels are referred to by their labels.
    """

    setting: Setting = Field(description="The levels that all of its runs share.")
    levels: list[Level]
    best: str | None = None
    """The candidate with the smallest mean; null where nothing can be said of it: one that is not determined may be
    faster, or the machine's change may be the differences."""
    indistinguishable: list[str] = []
    """Candidates that hold the truly fastest one with 95% probability: all without replicates."""
    machine_change: float | None = None
    """The slowest reference workload over the fastest: how far the machine changed; null without a reference
    workload."""
    machine: bool = False
    """Whether the machine's change within blocks may be what tells the two candidates apart."""
    curve: CurveFit | None = None
    """Null with fewer than three levels whose time is determined, or without a curve."""
    unfair: dict[str, gate.Unfair] = Field(default={}, description="Levels that are no candidates, with the reason.")
    equivalent: list[str] = []
    """Levels whose time is shown to be that of the fastest, within the study's margin."""
    sensitivity: Sensitivity | None = Field(None, description="Null without replicates, or with a single level.")

    @property
    def label(self) -> str:
        """Its setting in words."""
        return self.setting.label


@dataclass(frozen=True)
class End:
    """One setting that has a time."""

    place: int
    group: Group
    level: Level
    time: Estimate

    @property
    def levels(self) -> Levels:
        """Its levels, and those that its group shares."""
        return self.group.setting.levels | self.level.setting.levels


def ends_with(study: Study, groups: Sequence[Group], *chosen: Mapping[str, object]) -> list[End]:
    """Return the settings that have these levels, as they are or as tables show them.

    A key that no factor varies has the study's own level.
    """

    def words(key: str, level: object) -> str:
        return level_words(key, shown(study, key, level))

    def has(end: End, key: str, wanted: str) -> bool:
        return words(key, end.levels.get(key, get(study, key))) == wanted

    wanted = {key: words(key, level) for levels in chosen for key, level in levels.items()}
    levels = [(place, group, level) for place, group in enumerate(groups) for level in group.levels]
    ends = (End(place, group, level, level.time) for place, group, level in levels if level.time)
    return [end for end in ends if all(has(end, *one) for one in wanted.items())]


def group_of(study: Study, group: GroupFit, y: str) -> Group:
    """Return the analysis of one group."""
    x = study.curve.x if study.curve else None
    levels = _levels(study, group, y)
    fits = group.fits
    if fits is None:
        return Group(setting=group.setting, levels=levels)
    clean = group.clean
    best = None if fits.machine else smallest(levels, group.unfair)
    timed = [level.label for level in levels if level.time]
    return Group(
        setting=group.setting,
        levels=levels,
        best=best,
        indistinguishable=_tied([level for level in timed if level not in group.unfair], fits),
        unfair={level.label: group.unfair[level.label] for level in levels if level.label in group.unfair},
        machine_change=machine_change.change(clean),
        machine=fits.machine,
        curve=_curve(levels, fits) if x else None,
        equivalent=equivalent_to(fits.raw, best, study.equivalence_margin) if best else [],
        sensitivity=sensitivity_of(fits.raw, study.equivalence_margin),
    )


def _curve(levels: Sequence[Level], fits: Fits) -> CurveFit | None:
    """Return the curve through the levels whose time is determined (where none is, through all); None below three."""
    timed = [level for level in levels if level.time]
    sizes = {level.label: level.x for level in [level for level in timed if not level.undetermined] or timed}
    if len(sizes) < 3:
        return None
    told, model = list(sizes), fits.raw
    return curve_of_model(
        model, [sizes.get(level) for level in model.levels], fits.optimum_among(told), level_test(model, told)
    )


def _tied(levels: list[str], fits: Fits) -> list[str]:
    """Return the levels that cannot be told from the fastest: all where there is no noise to tell them by."""
    tied = fits.fair_optimum.indistinguishable if fits.fair_optimum and not fits.machine else levels
    return [level for level in levels if level in tied]


def smallest(levels: Sequence[Level], unfair: Mapping[str, object]) -> str | None:
    """Return the candidate with the smallest mean; None where one that is not determined may be faster."""
    timed = [(level, level.time) for level in levels if level.time and level.label not in unfair]
    told = [(time.value, level.label, time.high or time.value) for level, time in timed if not level.undetermined]
    if not told:
        return None
    _, label, high = min(told)
    return None if any(time.value <= high for level, time in timed if level.undetermined) else label


def _levels(study: Study, group: GroupFit, y: str) -> list[Level]:
    """Return the levels of a group along the curve's factor, or as the study lists those of its other factors."""
    without_far = _without_far(group)
    x = study.curve.x if study.curve else None
    typical = _medians(group.clean)
    levels = [
        _level(str(name), rows, group, without_far.get(str(name)), typical.get(str(name), {}), x)
        for name, rows in group.part.groupby("level", sort=False)
    ]
    order = _levels_in_order(group.part, keys_of(study)[0], study)
    return sorted(levels, key=lambda level: level.x or 0 if x else order.index(level.label))


def _without_far(group: GroupFit) -> dict[str, float]:
    """Return the mean of each level that has a far run without these."""
    if group.fits is None:
        return {}
    far, model = set(group.clean.loc[group.clean["far"] != 0, "level"]), group.fits.raw
    return {
        str(level): float(np.exp(mean)) for level, mean in zip(model.levels, model.effects, strict=True) if level in far
    }


def _levels_in_order(part: pd.DataFrame, keys: list[str], study: Study) -> list[str]:
    """Return the labels of the levels as the study lists them; the runs were executed in another order."""
    orders = [[shown(study, key, level) for level in study.factors[key]] for key in keys]
    rows = part.drop_duplicates("level")
    places = [
        [place_of(order, row[key]) for key, order in zip(keys, orders, strict=True)] for _, row in rows.iterrows()
    ]
    labels = rows["level"].tolist()
    return [labels[at] for at in sorted(range(len(labels)), key=places.__getitem__)]


def _medians(clean: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return the median of each measured column by level; a level has no column that no run of it has."""
    medians = clean.groupby("level")[["images_per_second", "data_wait_share", *resources()]].median()
    return {
        str(level): {str(name): float(value) for name, value in row.dropna().items()}
        for level, row in medians.iterrows()
    }


def _level(
    name: str,
    rows: pd.DataFrame,
    group: GroupFit,
    without_far: float | None,
    typical: Mapping[str, float],
    x: str | None,
) -> Level:
    """Return one level, from all of its ``rows`` and from those that count, of which ``typical`` are the medians."""
    clean = group.clean[group.clean["level"] == name]
    left = rows[(rows["outcome"] == "ok") & rows["excluded"].isin(BY_RULE)]
    recorded = rows[rows["excluded"].isna() | rows["excluded"].isin(BY_RULE)]
    return Level(
        setting=group.levels[name],
        x=float(rows[x].iloc[0]) if x else None,
        runs=len(clean),
        excluded={str(reason): int(count) for reason, count in left["excluded"].value_counts().items()},
        time=group.times.get(name),
        undetermined=group.undetermined.get(name),
        time_without_far=without_far,
        accuracy=mean_of(clean, "accuracy"),
        images_per_second=typical.get("images_per_second"),
        data_wait_share=typical.get("data_wait_share"),
        images_per_epoch=mean_of(clean, "images_per_epoch"),
        resources={column: typical[column] for column in resources() if column in typical},
        outcomes={str(key): int(value) for key, value in recorded["outcome"].value_counts().items()},
    )
