"""From the table of timings to an answer: means with intervals, the best set, the curve, the contrast, caveats.

The analysis returns values and kinds of findings; ``study.analysis.wording`` makes sentences of them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import pandas as pd
from pydantic import Field

from study.analysis.about.about import About, about
from study.analysis.answers.bottleneck import bottlenecks_of
from study.analysis.answers.curve import CurveFit, curve_of_model
from study.analysis.answers.step_model import StepModel, step_model
from study.analysis.answers.switches import Switches, switches_of
from study.analysis.stats import gate, machine_change
from study.analysis.stats.caveats import exclusion_caveats, learning_caveats, warnings_of
from study.analysis.stats.equivalence import Sensitivity, equivalent_to, sensitivity_of
from study.analysis.stats.findings import (
    Answer,
    CannotSay,
    Caveat,
    Contrast,
    Drift,
    Fastest,
    NoRatio,
    NothingSucceeded,
    OnlyLevel,
    Way,
    Ways,
)
from study.analysis.stats.groups import Fits, GroupFit, drift_of, groups_of
from study.analysis.stats.log_model import DIFFERENCE, level_test
from study.analysis.stats.optimum import Optimum, may_be_fastest, optimum_of
from study.analysis.stats.ratios import Ratio, contrasts_of, control_of, quotient_of, ratios_of
from study.analysis.stats.usable import (
    Estimate,
    estimate,
    mean_of,
    model_of,
    place_of,
    usable_runs,
    with_true_shares,
)
from study.analysis.table.exclusions import BY_RULE, FAR, keys_of
from study.artifacts.checked import Records
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.setting import Setting
from study.artifacts.timing import resources
from study.base.strict import Strict, Versioned
from study.config.study import Study, shown

MachinePart = Literal["explains", "unclear"] | None
"""Whether the machine's change explains the differences between levels, or may; None where they stand without it."""


class Level(Strict):
    """The runs of one level: their time, and what else was measured."""

    setting: Setting = Field(description="The level on the curve's axis, or the levels of all factors but the device.")
    x: float | None = Field(description="The curve's factor; null in a study without a curve.")
    runs: int = Field(description="Runs that count: they succeeded, and none is excluded.")
    excluded: dict[str, int] = Field(description="Number of successful runs that a rule excludes, by reason.")
    time: Estimate | None = Field(
        description="Seconds; null where no run counts, and without bounds where the mean is not determined."
    )
    undetermined: gate.Undetermined | None = Field(description="Why the mean is not determined; null where it is.")
    time_with_far: Estimate | None = Field(
        description="Seconds with the far runs among the others; null where no far run was excluded."
    )
    time_adjusted: Estimate | None = Field(
        description="Seconds with the machine's change accounted for by the reference workload; null where it did not "
        "change."
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
    best: str | None = Field(
        None,
        description="The candidate with the smallest mean; null where nothing can be said of it: one that is not "
        "determined may be faster, or the machine's change may be the differences.",
    )
    indistinguishable: list[str] = Field(
        default=[],
        description="Levels that cannot be told from the fastest: all where the F test finds no difference at all "
        "(Fisher's protection), else those of `optimum`, and those that only the machine's change tells from it.",
    )
    optimum: Optimum | None = Field(None, description="Hsu's comparisons with the best; null without replicates.")
    machine_change: float | None = Field(
        None,
        description="The slowest reference workload over the fastest: how far the machine changed; null without a "
        "reference workload.",
    )
    machine: MachinePart = Field(
        None,
        description="`explains`: the levels differ only until the reference workload is accounted for, and the times "
        "follow it. `unclear`: the machine changed, and the runs are too few to tell its part in the levels' "
        "difference.",
    )
    curve: CurveFit | None = Field(
        None, description="Null with fewer than three levels whose time is determined, or without a curve."
    )
    unfair: dict[str, gate.Unfair] = Field(default={}, description="Levels that are no candidates, with the reason.")
    equivalent: list[str] = Field(
        default=[], description="Levels whose time is shown to be that of the fastest, within the study's margin."
    )
    sensitivity: Sensitivity | None = Field(None, description="Null without replicates, or with a single level.")
    drift: Drift | None = Field(None, description="Null where the times do not drift along the order of execution.")
    step: StepModel | None = Field(
        None, description="Null where the curve is not over the batch size, or nothing trains."
    )

    @property
    def label(self) -> str:
        """Its setting in words."""
        return self.setting.label


class Analysis(Versioned):
    """The numbers of one study, and the findings in them."""

    y: str = Field(description="Column of the table of timings that is analysed.")
    groups: list[Group]
    ratios: list[Ratio]
    control: list[Ratio] = Field(description="The null control: each configuration over itself.")
    switches: list[Switches] = Field(default=[], description="What each factor buys; empty without `effects`.")
    answer: list[Answer] = Field(description="The answer to the study's question.")
    warnings: list[Caveat] = Field(description="What a reader must know before believing the numbers.")
    about: About = Field(About(), description="What was run on what.")


def analyse(
    plan: Plan, frame: pd.DataFrame, records: Records | None = None, warm_up_runs: Sequence[Record] = ()
) -> Analysis:
    """Return the analysis of a plan's table of timings, which has a row for each planned run.

    Nothing but the facts about the runs is from their ``records`` themselves, and from the ``warm_up_runs`` of every
    start.
    """
    study, y = plan.study, plan.study.total
    fitted = groups_of(study, with_true_shares(frame))
    groups = [_group(study, group, y) for group in fitted]
    ratios = ratios_of(study, fitted, study.contrast) if study.contrast else []
    contrasts = contrasts_of(study, fitted, ratios, study.contrast) if study.contrast else []
    control = ratios_of(study, fitted, "control") if "control" in study.factors else []
    pairs = zip(fitted, groups, strict=True) if study.effects else []
    switches = [found for fit, group in pairs if (found := switches_of(study, fit, group.best))]
    return Analysis(
        y=y,
        groups=groups,
        ratios=ratios,
        control=control,
        switches=switches,
        answer=[
            *(found.combination for found in switches if found.combination),
            *_ways(study, fitted, groups),
            *(_answers(study, groups, contrasts) or [NothingSucceeded(group=None)]),
            *bottlenecks_of(study, usable_runs(frame, y)),
            *([control_of(control)] if control else []),
        ],
        warnings=[
            *learning_caveats(fitted, study.learning_margin),
            *exclusion_caveats(fitted, y),
            *warnings_of(study, frame, y, study.curve.x if study.curve else None),
            *(group.drift for group in groups if group.drift),
        ],
        about=about(plan, frame, records or Records(), warm_up_runs),
    )


def read_analysis(path: Path) -> Analysis:
    """Return the analysis that the fit step wrote. Raise :class:`StudyError` if there is none."""
    return Analysis.read(path, "make it with: python -m study fit")


def _group(study: Study, group: GroupFit, y: str) -> Group:
    """Return the analysis of one group."""
    x = study.curve.x if study.curve else None
    levels = _levels(study, group, y)
    fits = group.fits
    if fits is None:
        return Group(setting=group.setting, levels=levels)
    clean = group.clean
    machine = _verdict(fits)
    best = None if machine else _smallest(levels, group.unfair)
    timed = [level.label for level in levels if level.time]
    drift = drift_of(clean, y)
    return Group(
        setting=group.setting,
        levels=levels,
        best=best,
        indistinguishable=_tied([level for level in timed if level not in group.unfair], fits),
        unfair={level.label: group.unfair[level.label] for level in levels if level.label in group.unfair},
        optimum=_optimum(fits),
        machine_change=machine_change.change(clean),
        machine=machine,
        curve=_curve(levels, fits, drift.change if drift else None) if x else None,
        equivalent=equivalent_to(fits.raw, best, study.equivalence_margin) if best else [],
        sensitivity=sensitivity_of(fits.raw, study.equivalence_margin),
        drift=drift,
        step=step_model(clean) if x == "training.batch_size" else None,
    )


def _optimum(fits: Fits) -> Optimum | None:
    """Return the optimum of all levels, with the chances of those alone that may be called the fastest."""
    if fits.optimum is None or fits.fair_optimum is None:
        return fits.optimum
    return fits.optimum.model_copy(update={"best_probability": fits.fair_optimum.best_probability})


def _curve(levels: Sequence[Level], fits: Fits, drift: float | None) -> CurveFit | None:
    """Return the curve through the levels whose time is determined (where none is, through all); None below three."""
    timed = [level for level in levels if level.time]
    sizes = {level.label: level.x for level in [level for level in timed if not level.undetermined] or timed}
    if len(sizes) < 3:
        return None
    told, model = list(sizes), fits.raw
    return curve_of_model(
        model, [sizes.get(level) for level in model.levels], fits.optimum_among(told), level_test(model, told), drift
    )


def _verdict(fits: Fits) -> MachinePart:
    """Return the machine's part in the differences between levels that the raw times show.

    It explains them if they are gone once the machine is accounted for, and the times are shown to follow it. It is
    unclear if the times are not shown to follow it, and no difference is left either, or none can be tested.
    """
    if not fits.changed or not _shows(fits.fair_differs_p):
        return None
    if fits.adjusted is None:
        return "unclear"
    if _shows(fits.adjusted_differs_p):
        return None
    return "explains" if _shows(fits.adjusted.covariate_p) else "unclear"


def _shows(p: float | None) -> bool:
    """Return whether a test finds an effect."""
    return p is not None and p < DIFFERENCE


def _tied(levels: list[str], fits: Fits) -> list[str]:
    """Return the levels that cannot be told from the fastest, as measured or with the machine accounted for."""
    tied = may_be_fastest(fits.fair_optimum, fits.fair_differs_p) if fits.fair_optimum else levels
    if fits.adjusted:
        adjusted = optimum_of(fits.adjusted, fits.candidates)
        tied = [*tied, *(may_be_fastest(adjusted, fits.adjusted_differs_p) if adjusted else levels)]
    return [level for level in levels if level in tied]


def _smallest(levels: Sequence[Level], unfair: Mapping[str, object]) -> str | None:
    """Return the candidate with the smallest mean; None where one that is not determined may be faster."""
    timed = [(level, level.time) for level in levels if level.time and level.label not in unfair]
    told = [(time.value, level.label, time.high or time.value) for level, time in timed if not level.undetermined]
    if not told:
        return None
    _, label, high = min(told)
    return None if any(time.value <= high for level, time in timed if level.undetermined) else label


def _levels(study: Study, group: GroupFit, y: str) -> list[Level]:
    """Return the levels of a group along the curve's factor, or as the study lists those of its other factors."""
    with_far = _with_far(group, y)
    x = study.curve.x if study.curve else None
    typical = _medians(group.clean)
    levels = [
        _level(str(name), rows, group, with_far.get(str(name)), typical.get(str(name), {}), x)
        for name, rows in group.part.groupby("level", sort=False)
    ]
    order = _levels_in_order(group.part, keys_of(study)[0], study)
    return sorted(levels, key=lambda level: level.x or 0 if x else order.index(level.label))


def _with_far(group: GroupFit, y: str) -> dict[str, Estimate]:
    """Return the mean of each level that has a far run, as it would be with that run."""
    part = group.part
    far = part["excluded"] == FAR
    if not far.any():
        return {}
    every = usable_runs(part.assign(excluded=part["excluded"].where(~far, None)), y)
    model = model_of(every, y, every["level"].tolist())
    return {str(level): estimate(model.mean(level)) for level in part.loc[far, "level"].unique()}


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
    with_far: Estimate | None,
    typical: Mapping[str, float],
    x: str | None,
) -> Level:
    """Return one level, from all of its ``rows`` and from those that count, of which ``typical`` are the medians."""
    clean = group.clean[group.clean["level"] == name]
    adjusted = group.fits.adjusted if group.fits and name in group.times else None
    left = rows[(rows["outcome"] == "ok") & rows["excluded"].isin(BY_RULE)]
    recorded = rows[rows["excluded"].isna() | rows["excluded"].isin(BY_RULE)]
    return Level(
        setting=group.levels[name],
        x=float(rows[x].iloc[0]) if x else None,
        runs=len(clean),
        excluded={str(reason): int(count) for reason, count in left["excluded"].value_counts().items()},
        time=group.times.get(name),
        undetermined=group.undetermined.get(name),
        time_with_far=with_far,
        time_adjusted=estimate(adjusted.mean(name)) if adjusted and name not in group.undetermined else None,
        accuracy=mean_of(clean, "accuracy"),
        images_per_second=typical.get("images_per_second"),
        data_wait_share=typical.get("data_wait_share"),
        images_per_epoch=mean_of(clean, "images_per_epoch"),
        resources={column: typical[column] for column in resources() if column in typical},
        outcomes={str(key): int(value) for key, value in recorded["outcome"].value_counts().items()},
    )


def _answers(study: Study, groups: list[Group], contrasts: list[Contrast | NoRatio]) -> list[Answer]:
    """Return the answer of each group, and of each level of the contrast."""
    return [*(_group_answer(group, _factor(study)) for group in groups), *contrasts]


def _ways(study: Study, fitted: list[GroupFit], groups: list[Group]) -> list[Ways]:
    """Return the fastest level of each group side by side, where no contrast and no switch compares the groups."""
    bests = {place: group.best for place, group in enumerate(groups) if group.best}
    if study.contrast or study.effects or len(bests) < 2:
        return []
    factor = _factor(study)
    first, *others = sorted(bests, key=lambda place: fitted[place].times[bests[place]].value)

    def way(place: int) -> Way:
        ends = (place, bests[place]), (first, bests[first])
        return Way(
            group=groups[place].setting,
            factor=factor,
            level=fitted[place].levels[bests[place]],
            seconds=fitted[place].times[bests[place]].value,
            times=None if place == first else quotient_of(fitted, *ends, study.total, len(others)),
        )

    ways = [*map(way, (first, *others))]
    return [Ways(base=groups[0].setting, ways=ways, without=[group.setting for group in groups if not group.best])]


def _factor(study: Study) -> str | None:
    """Return the only factor in which the levels of a group differ; None where there are several."""
    keys = keys_of(study)[0]
    return keys[0] if len(keys) == 1 else None


def _only_answer(group: Group, level: Level, time: Estimate) -> Answer:
    """Return the time of the single level of a group, whether it learned or not; nothing is compared."""
    if level.undetermined is None:
        return OnlyLevel(group=group.setting, time=time, accuracy=level.accuracy)
    return CannotSay(
        group=group.setting,
        factor=None,
        reasons={level.label: level.undetermined},
        more_runs=gate.more_runs({level.label: level.runs}, {level.label: level.undetermined}),
        only=True,
    )


def _group_answer(group: Group, factor: str | None) -> Answer:
    """Return the fastest level of a group with what can be said of it; ``factor`` is what its levels differ in."""
    timed = [level for level in group.levels if level.time]
    if not timed:
        return NothingSucceeded(group=group.setting)
    if len(group.levels) == 1 and timed[0].time:
        return _only_answer(group, timed[0], timed[0].time)
    best = next((level for level in timed if level.label == _smallest(timed, group.unfair)), None)
    open_levels = {
        level.label: level.undetermined for level in timed if level.undetermined and level.label not in group.unfair
    }
    if best is None or best.time is None:
        counts = {level.label: level.runs for level in timed}
        return CannotSay(
            group=group.setting,
            factor=factor,
            reasons=open_levels | group.unfair,
            more_runs=gate.more_runs(counts, open_levels) if open_levels else None,
        )
    return Fastest(
        group=group.setting,
        factor=factor,
        level=best.setting,
        time=best.time,
        accuracy=best.accuracy,
        tied=[label for label in group.indistinguishable if label != best.label],
        equivalent=group.equivalent,
        left_out=list(open_levels),
        unfair=group.unfair,
        slower=[
            level.label
            for level in timed
            if level.label not in {best.label, *group.indistinguishable, *open_levels, *group.unfair}
        ],
        missing=[level.label for level in group.levels if not level.time],
        machine=group.machine,
        machine_change=group.machine_change,
        curve=group.curve.verdict if group.curve and group.machine is None else None,
    )
