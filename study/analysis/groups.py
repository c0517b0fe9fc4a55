"""The groups of a study: levels that differ in one factor, with the one model from which all their
numbers come."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from study.analysis.stats.estimate import Estimate, Ineligible, Undetermined, printed, undetermined
from study.analysis.stats.learning import CensoredRuns, Learning, learning_by_loss, learning_of
from study.analysis.stats.log_model import LogModel
from study.analysis.stats.noise import ROUNDING
from study.analysis.stats.optimum import Optimum, optimum_of
from study.analysis.stats.usable import drift_covariate, model_of, survives_drift, usable_runs
from study.analysis.table.exclusions import keys_of
from study.artifacts.record import TIMED_OUT
from study.artifacts.setting import Setting, parts_of
from study.config.study import Study


class GroupFit(NamedTuple):
    """One group: its rows of the table, those of them that count, and the models fitted to
    these."""

    setting: Setting
    """The levels that all of its runs share."""
    levels: dict[str, Setting]
    """Each setting of its runs, of the factors in which they differ, by its label, in the study's
    order."""
    part: pd.DataFrame
    """All rows."""
    clean: pd.DataFrame
    """The runs that count."""
    model: LogModel | None = None
    """Of the times; None where no run counts."""
    optimum: Optimum | None = None
    """Of all levels, whether they learned or not: the curve's."""
    drift_confounded: bool = False
    """Whether the machine's drift within blocks may be what tells two candidates apart."""
    times: dict[str, Estimate] = {}
    """The mean of each level with a run that counts, in seconds; without bounds where it is not
    determined, or beside its own runs."""
    undetermined: dict[str, Undetermined] = {}
    learning: dict[str, Learning] = {}
    """Whether each level with a run that counts has learned."""
    censored: dict[str, CensoredRuns] = {}
    """The levels with runs that missed the target accuracy, excluded or not."""
    ineligible: dict[str, Ineligible] = {}
    """The levels that are no candidates for the fastest, with the reason."""

    def optimum_among(self, levels: Collection[str]) -> Optimum | None:
        """Return the optimum among some levels. It takes long for many: that of all is not sought
        twice."""
        if self.model is None or set(levels) >= set(self.model.levels):
            return self.optimum
        return optimum_of(self.model, levels)


def groups_of(study: Study, frame: pd.DataFrame) -> list[GroupFit]:
    """Return the groups of a marked table that have a run which this machine could make, in the
    study's order."""
    level_keys, group_keys = keys_of(study)
    levels = parts_of(study, level_keys)
    found = []
    for label, setting in parts_of(study, group_keys).items():
        part = frame[frame["group"] == label]
        if (part["outcome"] != "unavailable").any():
            own = {name: levels[name] for name in levels if (part["level"] == name).any()}
            found.append(_group(study, setting, own, part))
    return found


def _group(
    study: Study, setting: Setting, levels: dict[str, Setting], part: pd.DataFrame
) -> GroupFit:
    y = study.total
    clean = usable_runs(part, y)
    censored = _censored(part)
    if clean.empty:
        return GroupFit(setting, levels, part, clean, censored=censored)
    clean = clean.assign(drift_covariate=drift_covariate(clean, y))
    learning = _learning(clean, study)
    unlearned = [name for name, one in learning.items() if one.reason not in ("learned", "unknown")]
    ineligible: dict[str, Ineligible] = dict.fromkeys(unlearned, "not_learned")
    ineligible |= dict.fromkeys(censored, "censored")
    model = model_of(clean, y)
    eligible = [level for level in model.levels if level not in ineligible]
    apart = len(eligible) != 2 or survives_drift(
        _differences(clean, y, eligible), _differences(clean, "drift_covariate", eligible)
    )
    times = {}
    reasons = {}
    noise = max(float(np.sqrt(model.fit.variances["noise"])), ROUNDING)
    for name in model.levels:
        rows = clean[clean["level"] == name]
        mean = model.mean(name)
        ratios = (model.ratio(name, other) for other in model.levels if other != name)
        reason = undetermined(mean, ratios, rows["session_block"])
        if name in censored:
            reason = "ended_early"
        if reason:
            reasons[name] = reason
            times[name] = Estimate(value=float(np.exp(np.log(rows[y]).mean())))
        else:
            times[name] = printed(mean, rows[y], noise)
    return GroupFit(
        setting,
        levels,
        part,
        clean,
        model=model,
        optimum=optimum_of(model),
        drift_confounded=not apart,
        times=times,
        undetermined=reasons,
        learning=learning,
        censored=censored,
        ineligible=ineligible,
    )


def _learning(clean: pd.DataFrame, study: Study) -> dict[str, Learning]:
    """Return whether each level has learned: by its accuracy, else by the loss that a command
    prints; empty where no run has either."""

    def by_level(column: str) -> dict[str, list[float]]:
        every = clean.groupby("level", sort=False)[column]
        return {str(level): own.dropna().tolist() for level, own in every}

    margin = study.learning_margin
    if study.command and clean["accuracy"].notna().any():
        return learning_of(by_level("accuracy"), None, None, margin)
    if study.command and clean["loss"].notna().any():
        return learning_by_loss(by_level("loss"), margin)
    known = clean[["accuracy", "chance_accuracy", "valid_images"]].dropna()
    if known.empty:
        return {}
    chance, images = float(known["chance_accuracy"].max()), int(known["valid_images"].min())
    return learning_of(by_level("accuracy"), chance, images, margin)


def _censored(part: pd.DataFrame) -> dict[str, CensoredRuns]:
    """Return the levels with runs that missed their target, or that their time limit ended."""
    done = part["outcome"] == "ok"
    late = ~done & part["message"].astype(str).str.startswith(TIMED_OUT)
    target = part["reached_target"].astype(str)
    missed = late | (done & (target == "False"))
    # Where a limit ended runs, those without a target count, too: they reached their end.
    known = late | (done & (target.isin(["True", "False"]) | bool(late.any())))
    levels = missed[known].groupby(part["level"], sort=False)
    return {
        str(level): CensoredRuns(missed=int(runs.sum()), runs=len(runs))
        for level, runs in levels
        if runs.any()
    }


def _differences(clean: pd.DataFrame, column: str, levels: Sequence[str]) -> "pd.Series[float]":
    """Return the difference of two levels in the mean log of a column, by block that has both."""
    logs = clean.assign(log=np.log(clean[column].astype(float)))
    means = logs.pivot_table("log", "session_block", "level").reindex(columns=list(levels))
    return (means[levels[0]] - means[levels[1]]).dropna()
