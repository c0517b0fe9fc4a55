"""Which setting of a group is the fastest: that one, those tied for it, or why it cannot be
said."""

from collections.abc import Sequence
from math import log
from typing import ClassVar, Literal

from study.analysis.answers.context import (
    FEW,
    Becomes,
    Context,
    Lack,
    LevelKey,
    Means,
    Statement,
    bounds,
    capital,
)
from study.analysis.answers.group import Group, LevelSummary, smallest
from study.analysis.stats.estimate import Estimate, Ineligible, Undetermined
from study.analysis.words import listed, short
from study.artifacts.setting import Setting
from study.base.errors import quantity


class NothingSucceeded(Statement):
    """No run succeeded."""

    kind: Literal["nothing_succeeded"] = "nothing_succeeded"
    about = "times"
    decided: ClassVar[bool] = False
    group: Setting | None
    """Null: in the whole study."""
    made: bool
    """False where no device was there that could have made a run."""

    @property
    def lacks(self) -> Lack:
        """A device, or runs that do not fail."""
        return Lack("good runs" if self.made else "device")

    def text(self, context: Context) -> str:
        """Return the answer in words."""
        where = f" {context.where(self.group)}" if self.group else ""
        return f"No answer: no run{where.rstrip()} {'has succeeded' if self.made else 'was made'}."


class OnlyLevel(Statement):
    """The time of a group with one level."""

    kind: Literal["only_level"] = "only_level"
    about = "times"
    decided: ClassVar[bool] = True
    group: Setting
    time: Estimate
    accuracy: float | None = None
    """Mean accuracy of its runs, 0 to 1; null where not known."""

    def text(self, context: Context) -> str:
        """Return the answer in words."""
        where = context.where(self.group)
        reached = "" if self.accuracy is None else f", at {self.accuracy:.0%} accuracy"
        lead = f"{capital(where)} {context.takes}" if where else capital(context.takes)
        return f"{lead} **{short(self.time.value)} s**{bounds(self.time, context.scope)}{reached}."

    def ends(self, context: Context) -> list[LevelKey]:
        """Return its level."""
        return [(self.group, level.label) for level in context.group(self.group).levels]


WHY = {
    "not_learned": "no setting is shown to have learned, and speed counts only with learning",
    "censored": "runs of every setting missed the target or their time limit",
    "wide_interval": "runs of one setting differ too much",
    "one_block": "all runs of a setting are in one block",
    "few_runs": "a setting has fewer than two clean runs",
    "ended_early": "runs of a setting ended before they were done",
}
"""Why nothing is called the fastest, the weightiest reason first."""


class CannotSay(Statement):
    """The means of some levels are not determined, and one of these may be the fastest; or none is
    a candidate."""

    kind: Literal["cannot_say"] = "cannot_say"
    about = "times"
    decided: ClassVar[bool] = False
    group: Setting
    reasons: dict[str, Undetermined | Ineligible]
    """By the label of the level."""
    more_runs: int | None
    """More runs a level that could decide it; null where runs cannot."""
    only: bool = False
    """Whether the group has a single level."""

    @property
    def lacks(self) -> Lack:
        """Clean runs, or learning."""
        return Lack("runs", self.more_runs) if self.more_runs else Lack("learning")

    def text(self, context: Context) -> str:
        """Return what the runs show, and what they lack."""
        where = f" {context.where(self.group)}".rstrip()
        group = context.group(self.group)
        seconds = group.seconds
        first = sorted(seconds, key=seconds.__getitem__)[:2]
        why = WHY[min(self.reasons.values(), key=list(WHY).index)]
        told = f"Not decided: {why}{where}"
        if len(first) == 2 and not self.only:
            times = listed([short(seconds[label]) for label in first])
            told = f"**Not decided** between {context.settings(first)}, {times} s{where}: {why}"
        elif first and group.levels[0].runs == 1:
            told = f"One run: **{short(seconds[first[0]])} s**{where}"
        more = quantity(self.more_runs or 0, "more block").capitalize()
        return f"{told}.{f' {more} can tell.' if self.more_runs else ''}"


class Fastest(Statement):
    """The level with the smallest mean, and whether it can be told from the others; no answer with
    ``drift_confounded``."""

    kind: Literal["fastest"] = "fastest"
    about = "times"
    group: Setting
    level: Setting
    time: Estimate
    tied: list[str]
    """Labels of the levels that cannot be told from the fastest; those below are labels, too."""
    equivalent: list[str]
    """Those of them whose time is the same within the study's margin."""
    left_out: list[str]
    """Levels whose means are not determined, and which are slower."""
    ineligible: dict[str, Ineligible]
    """Levels that are no candidates, with the reason."""
    slower: list[str]
    """Candidates that are slower by more than the noise."""
    drift_confounded: bool
    """Whether the machine's drift within blocks may be what tells the two settings apart."""
    machine_change: float | None
    """Slowest reference workload over the fastest; null without a reference workload."""

    @property
    def decided(self) -> bool:
        """Whether one setting is told from all others."""
        return not self.drift_confounded and set(self.tied) <= set(self.equivalent)

    @property
    def lacks(self) -> Lack | None:
        """A calm machine, or two settings that are told apart."""
        if self.decided:
            return None
        rivals = [one for one in self.tied if one not in self.equivalent]
        labels = (self.level.label, *rivals)
        return Lack("calm" if self.drift_confounded else "tie", group=self.group, labels=labels)

    def title(self, context: Context) -> str:
        """Return which settings are slower."""
        if self.drift_confounded or not self.slower:
            return ""
        lead = capital(context.setting(self.level.label))
        return f"{lead} is faster than {context.settings(self.slower)}"

    def ends(self, context: Context) -> list[LevelKey]:
        """Return the fastest level and the slowest."""
        slowest = sorted(
            self.slower, key=lambda one: context.seconds(self.group, one) or 0.0, reverse=True
        )
        return [(self.group, label) for label in (self.level.label, *slowest[:1])]

    def becomes(self, context: Context, means: Means) -> Becomes | None:
        """Return the setting that leads, where it is another or its first digit changes."""
        own = means.get(self.group, {})
        eligible = {
            label: seconds for label, seconds in own.items() if label not in self.ineligible
        }
        if self.drift_confounded or not eligible:
            return None
        best = min(eligible, key=eligible.__getitem__)
        change = abs(log(eligible[best] / self.time.value))
        new = short(eligible[best])
        if best != self.level.label:
            return True, change, f"{context.setting(best)} leads at {new} s."
        if short(self.time.value)[0] == new[0] and change < log(2):
            return None
        return False, change, f"{context.setting(best)} takes {new} s."

    @property
    def leaders(self) -> list[str]:
        """The level with the smallest mean, and those that are tied with it and whose own time is
        known."""
        return [
            self.level.label,
            *([one for one in self.tied if one not in self.left_out] or self.tied),
        ]

    def text(self, context: Context) -> str:
        """Return the answer in words."""
        where = f" {context.where(self.group)}".rstrip()
        if self.drift_confounded:
            change = f"the machine's own speed changed {self.machine_change or 1:.1f}-fold"
            return (
                f"**Not decided**{where}: {change}, and within blocks by as much as the "
                "settings differ."
            )
        if not self.tied:
            lead = (
                f"{capital(context.setting(f'**{self.level.label}**'))} is the fastest{where}, at "
            )
            return (
                f"{lead}{short(self.time.value)} "
                f"s{bounds(self.time, context.scope)}{self._behind(context)}"
                f"{self._unlearned(context)}."
            )
        times = context.group(self.group).seconds
        leaders = [label for label in times if label in self.leaders] or self.leaders
        equal = set(self.tied) <= set(self.equivalent)
        verdict = f"equal within {context.margin}" if equal else "tied for the fastest"
        return (
            f"{capital(context.settings(leaders, bold=True))} are **{verdict}**{where}, "
            f"{self._times(context, leaders)}{self._cost(context)}{self._behind(context)}"
            f"{self._unlearned(context)}."
        )

    def _unlearned(self, context: Context) -> str:
        """Return the fastest of the settings that take less time and learned less, too."""
        faster = [
            (seconds, label)
            for label, why in self.ineligible.items()
            if why == "not_learned"
            and (seconds := context.seconds(self.group, label))
            and seconds < self.time.value
        ]
        if not faster:
            return ""
        seconds, label = min(faster)
        return f"; {context.setting(label)} takes {short(seconds)} s and learned less"

    def _cost(self, context: Context) -> str:
        """Return how much longer than the fastest the tied settings may take."""
        ratios = context.group(self.group).ratios
        known = [ratios.get(one) for one in self.tied]
        told = [one for one in known if one and one.bounds]
        if len(told) < len(self.tied):
            return ""
        last = max(told, key=lambda one: one.high or 0.0)
        low, high = (short(end or 0.0, last.value) for end in (last.low, last.high))
        if len(told) == 1:
            return f" ({context.scope}: {self.tied[0]} takes {low} to {high} times as long)"
        return f" ({context.scope}: at most {high} times as long as {self.level.label})"

    def _times(self, context: Context, leaders: Sequence[str]) -> str:
        seconds = [context.seconds(self.group, label) or self.time.value for label in leaders]
        told = [short(one) for one in seconds]
        if len(set(told)) == 1:
            return f"at {told[0]} s"
        if len(told) <= FEW:
            return f"at {listed(told)} s"
        return f"at {short(min(seconds))} to {short(max(seconds))} s"

    def _behind(self, context: Context) -> str:
        """Return how many times as long the next and the last of the slower settings take."""
        known = [
            (seconds, label)
            for label in self.slower
            if (seconds := context.seconds(self.group, label))
        ]
        if not known:
            return ""
        (least, label), (most, other) = min(known), max(known)
        times = short(least / self.time.value)
        told = f"; {context.setting(label)} takes **{times} times as long**"
        told += f" as {self.level.label}" if len(self.leaders) > 1 else ""
        if other == label:
            return told
        return f"{told}, and {other} {short(most / self.time.value)} times"


def group_answer(group: Group) -> Fastest | CannotSay | OnlyLevel | NothingSucceeded:
    """Return the fastest level of a group with what can be said of it."""
    timed = group.timed
    if not timed:
        return NothingSucceeded(group=group.setting, made=True)
    only = len(group.levels) == 1
    if only and timed[0].time and not timed[0].undetermined:
        return OnlyLevel(group=group.setting, time=timed[0].time, accuracy=timed[0].accuracy)
    best = next(
        (level for level in timed if level.label == smallest(timed, group.ineligible)), None
    )
    open_levels = {
        level.label: level.undetermined
        for level in timed
        if level.undetermined and (only or level.label not in group.ineligible)
    }
    if only or best is None or best.time is None:
        return CannotSay(
            group=group.setting,
            reasons=open_levels | ({} if only else group.ineligible),
            more_runs=1 if open_levels else None,
            only=only,
        )
    others = [level.label for level in timed if level.label != best.label]
    near = {*group.indistinguishable, *group.equivalent}
    out = {*open_levels, *group.ineligible}
    return Fastest(
        group=group.setting,
        level=best.setting,
        time=best.time,
        tied=[one for one in others if one in near],
        equivalent=group.equivalent,
        left_out=list(open_levels),
        ineligible=group.ineligible,
        slower=[one for one in others if one not in near | out],
        drift_confounded=group.drift_confounded,
        machine_change=group.machine_change,
    )


def level_verdict(level: LevelSummary, group: Group, margin: float) -> str:
    """Return what the runs determine of a level beside the fastest, in a few words; nothing where
    it is alone."""
    if level.time is None:
        outcomes = [name.replace("_", " ") for name in level.outcomes]
        return listed(outcomes) if outcomes else "no run"
    if level.label in group.ineligible:
        return {
            "not_learned": "did not learn as well",
            "censored": "missed the target or the limit",
        }[group.ineligible[level.label]]
    if len(group.levels) == 1:
        return ""
    if level.label in group.equivalent or (
        level.label == group.best and group.equivalent and group.tied_are_equal
    ):
        return f"equal within {margin:.0%}"
    behind = level.label not in group.indistinguishable
    if group.best is None or (level.undetermined and not behind):
        return "not decided"
    if level.label == group.best:
        return "tied" if len(group.indistinguishable) > 1 else "fastest"
    return ("slower, no interval" if level.undetermined else "slower") if behind else "tied"
