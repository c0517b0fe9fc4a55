"""Which setting of a group is the fastest: that one, those tied for it, or why it cannot be
said."""

from typing import ClassVar, Literal

from pydantic import Field

from study.analysis.answers.context import FEW, Context, bounds, capital
from study.analysis.answers.group import Group, Level, smallest
from study.analysis.stats.estimate import Estimate, Undetermined, Unfair
from study.analysis.words import listed, short
from study.artifacts.setting import Setting
from study.base.errors import quantity
from study.base.strict import Strict


class NothingSucceeded(Strict):
    """No run succeeded."""

    kind: Literal["nothing_succeeded"] = "nothing_succeeded"
    decided: ClassVar[bool] = False
    group: Setting | None = Field(description="Null: in the whole study.")
    made: bool = Field(description="False where no device was there that could have made a run.")

    def text(self, context: Context) -> str:
        """Return the answer in words."""
        where = f" {context.where(self.group)}" if self.group else ""
        return f"No answer: no run{where.rstrip()} {'has succeeded' if self.made else 'was made'}."


class OnlyLevel(Strict):
    """The time of a group with one level."""

    kind: Literal["only_level"] = "only_level"
    decided: ClassVar[bool] = True
    group: Setting
    time: Estimate
    accuracy: float | None = Field(
        None, description="Mean accuracy of its runs, 0 to 1; null where not known."
    )

    def text(self, context: Context) -> str:
        """Return the answer in words."""
        where = context.where(self.group)
        reached = "" if self.accuracy is None else f", at {self.accuracy:.0%} accuracy"
        lead = f"{capital(where)} {context.takes}" if where else capital(context.takes)
        return f"{lead} **{short(self.time.value)} s**{bounds(self.time, context.scope)}{reached}."


WHY = {
    "not_learned": "no setting is shown to have learned, and speed counts only with learning",
    "censored": "runs of every setting missed the target or their time limit",
    "wide_interval": "runs of one setting differ too much",
    "one_block": "all runs of a setting are in one block",
    "few_runs": "a setting has fewer than two clean runs",
    "ended_early": "runs of a setting ended before they were done",
}
"""Why nothing is called the fastest, the weightiest reason first."""


class CannotSay(Strict):
    """The means of some levels are not determined, and one of these may be the fastest; or none is
    a candidate."""

    kind: Literal["cannot_say"] = "cannot_say"
    decided: ClassVar[bool] = False
    group: Setting
    reasons: dict[str, Undetermined | Unfair] = Field(description="By the label of the level.")
    more_runs: int | None = Field(
        description="More runs a level that could decide it; null where runs cannot."
    )
    only: bool = Field(default=False, description="Whether the group has a single level.")

    def text(self, context: Context) -> str:
        """Return what the runs show, and what they lack."""
        where = context.where(self.group)
        known = context.group(self.group)
        timed = [level for level in known.levels if level.time] if known else []
        why = WHY[min(self.reasons.values(), key=list(WHY).index)]
        if self.only or len(timed) < 2:
            took = [f"{short(level.time.value)} s" for level in timed if level.time]
            once = (
                f"One run: **{took[0]}**" if took and timed[0].runs == 1 else f"Not decided: {why}"
            )
            return f"{once}{f' {where}' if where else ''}.{self._more()}"
        return (
            f"{capital(self._pair(context, timed))}{f' {where}' if where else ''}: "
            f"{why}.{self._more()}"
        )

    def _pair(self, context: Context, timed: list[Level]) -> str:
        """Return the two fastest settings, as far as is known, with their times."""
        first, second = sorted(timed, key=lambda level: level.time.value if level.time else 0)[:2]
        times = [short(level.time.value) for level in (first, second) if level.time]
        pair = context.settings([first.label, second.label])
        return f"**not decided** between {pair}, {times[0]} and {times[1]} s"

    def _more(self) -> str:
        if not self.more_runs:
            return ""
        return f" {quantity(self.more_runs, 'more block').capitalize()} can tell."


class Fastest(Strict):
    """The level with the smallest mean, and whether it can be told from the others; no answer with
    ``machine``."""

    kind: Literal["fastest"] = "fastest"
    group: Setting
    level: Setting
    time: Estimate
    accuracy: float | None = Field(
        None, description="Mean accuracy of its runs, 0 to 1; null where not known."
    )
    tied: list[str]
    """Labels of the levels that cannot be told from the fastest; those below are labels, too."""
    equivalent: list[str] = Field(
        description="Those of them whose time is the same within the study's margin."
    )
    left_out: list[str] = Field(
        description="Levels whose means are not determined, and which are slower."
    )
    unfair: dict[str, Unfair] = Field(description="Levels that are no candidates, with the reason.")
    slower: list[str] = Field(description="Candidates that are slower by more than the noise.")
    missing: list[str] = Field(description="Levels without a run that counts.")
    machine: bool
    """Whether the machine's change within blocks may be what tells the two settings apart."""
    machine_change: float | None
    """Slowest reference workload over the fastest; null without a reference workload."""

    @property
    def decided(self) -> bool:
        """Whether one setting is told from all others."""
        return not self.machine and set(self.tied) <= set(self.equivalent)

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
        if self.machine:
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
                f"s{bounds(self.time, context.scope)}{self._behind(context)}."
            )
        leaders = context.in_order(self.group, self.leaders)
        equal = set(self.tied) <= set(self.equivalent)
        verdict = f"equal within {context.margin}" if equal else "tied for the fastest"
        return (
            f"{capital(context.settings(leaders, bold=True))} are **{verdict}**{where}, "
            f"{self._times(context)}" + (f"{self._behind(context)}.")
        )

    def _times(self, context: Context) -> str:
        leaders = context.in_order(self.group, self.leaders)
        seconds = [context.seconds(self.group, label) or self.time.value for label in leaders]
        told = [short(one) for one in seconds]
        if len(set(told)) == 1:
            return f"at {told[0]} s"
        return (
            f"at {listed(told)} s"
            if len(told) <= FEW
            else f"at {short(min(seconds))} to {short(max(seconds))} s"
        )

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
        told = (
            f"; {context.setting(label)} takes **{short(least / self.time.value)} times as long**"
        )
        return (
            told if other == label else f"{told}, and {other} {short(most / self.time.value)} times"
        )


def group_answer(group: Group) -> Fastest | CannotSay | OnlyLevel | NothingSucceeded:
    """Return the fastest level of a group with what can be said of it."""
    timed = [level for level in group.levels if level.time]
    if not timed:
        return NothingSucceeded(group=group.setting, made=True)
    only = len(group.levels) == 1
    if only and timed[0].time and not timed[0].undetermined:
        return OnlyLevel(group=group.setting, time=timed[0].time, accuracy=timed[0].accuracy)
    best = next((level for level in timed if level.label == smallest(timed, group.unfair)), None)
    open_levels = {
        level.label: level.undetermined
        for level in timed
        if level.undetermined and (only or level.label not in group.unfair)
    }
    if only or best is None or best.time is None:
        return CannotSay(
            group=group.setting,
            reasons=open_levels | ({} if only else group.unfair),
            more_runs=1 if open_levels else None,
            only=only,
        )
    return Fastest(
        group=group.setting,
        level=best.setting,
        time=best.time,
        accuracy=best.accuracy,
        tied=[
            one.label
            for one in timed
            if one.label in {*group.indistinguishable, *group.equivalent} - {best.label}
        ],
        equivalent=group.equivalent,
        left_out=list(open_levels),
        unfair=group.unfair,
        slower=[
            level.label
            for level in timed
            if level.label
            not in {
                best.label,
                *group.indistinguishable,
                *group.equivalent,
                *open_levels,
                *group.unfair,
            }
        ],
        missing=[level.label for level in group.levels if not level.time],
        machine=group.machine,
        machine_change=group.machine_change,
    )


def level_verdict(level: Level, group: Group, margin: float) -> str:
    """Return what the runs determine of a level beside the fastest, in a few words; nothing where
    it is alone."""
    if level.time is None:
        return (
            listed([name.replace("_", " ") for name in level.outcomes])
            if level.outcomes
            else "no run"
        )
    if level.label in group.unfair:
        return {
            "not_learned": "did not learn as well",
            "censored": "missed the target or the limit",
        }[group.unfair[level.label]]
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
