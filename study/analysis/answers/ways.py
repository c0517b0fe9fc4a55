"""The fastest of several ways to train: the best setting of each group, beside those of the others."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from study.analysis.answers.context import Context, bounds, excludes_one
from study.analysis.answers.group import Group
from study.analysis.stats.groups import GroupFit
from study.analysis.stats.ratios import quotient_of
from study.analysis.stats.usable import Estimate
from study.analysis.words import listed, short
from study.artifacts.setting import Setting
from study.base.strict import Strict
from study.config.study import Study


class Way(Strict):
    """The fastest level of a group."""

    group: Setting
    factor: str | None = Field(description="Null where the levels differ in several factors.")
    level: Setting
    seconds: float
    times: Estimate | None
    """Its time over that of the fastest of all, with bounds that hold for all groups at once; null for that one
    itself."""


class Ways(Strict):
    """The fastest level of each group beside those of the others, the fastest of all first."""

    kind: Literal["ways"] = "ways"
    base: Setting = Field(description="The study's first group: the others are named by what they do otherwise.")
    ways: list[Way] = Field(min_length=2)
    without: list[Setting] = Field(description="Groups that have no answer of their own.")

    @property
    def decided(self) -> bool:
        """Whether the fastest way is told from every other."""
        return all(way.times and excludes_one(way.times) for way in self.ways[1:])

    @property
    def beside(self) -> Way:
        """The way that the fastest is compared with: the study's first, or the next where that one is the fastest."""
        return next((way for way in self.ways[1:] if way.group == self.base), self.ways[1])

    def text(self, context: Context) -> str:
        """Return the answer in words."""
        first, other = self.ways[0], self.beside
        where, takes = context.where(first.group), context.takes
        bold = " ".join(f"**{part}**" if at else part for at, part in enumerate(where.split(" ", 1)))
        lead = f"{bold[0].upper()}{bold[1:]} {takes} {short(first.seconds)} s, "
        if other.times is None or other.times.low is None or other.times.high is None:
            return (
                f"{lead}{context.where(other.group)} {short(other.seconds)} s: **not decided**, there is no interval."
            )
        if not excludes_one(other.times):
            return f"{lead}**tied** with {context.who(other.group)}, {short(other.seconds)} s{self._tied(context)}."
        times = f"**{short(other.times.value)} times as fast** as {context.where(other.group).removeprefix('with ')}"
        return f"{lead}{times}{bounds(other.times)}{self._tied(context)}."

    def _tied(self, context: Context) -> str:
        """Return the other ways, or else the settings of the fastest way, that are tied with the first."""
        ways = [context.who(way.group) for way in self.ways[1:] if way.times and not excludes_one(way.times)]
        if ways and self.ways[1:] != [self.beside]:
            others = [name for name in ways if name != context.who(self.beside.group)]
            return f"; {listed(others)} {'is' if len(others) == 1 else 'are'} **tied** with it" if others else ""
        group = context.group(self.ways[0].group)
        tied = group.indistinguishable if group else []
        return f"; {context.settings(tied)} are **tied**" if len(tied) > 1 else ""


def ways_of(study: Study, fitted: Sequence[GroupFit], groups: Sequence[Group], factor: str | None) -> list[Ways]:
    """Return the fastest level of each group side by side; nothing where switches compare the groups."""
    bests = {index: group.best for index, group in enumerate(groups) if group.best}
    if study.effects or len(bests) < 2:
        return []
    first, *others = sorted(bests, key=lambda index: fitted[index].times[bests[index]].value)

    def way(index: int) -> Way:
        ends = (index, bests[index]), (first, bests[first])
        return Way(
            group=groups[index].setting,
            factor=factor,
            level=fitted[index].levels[bests[index]],
            seconds=fitted[index].times[bests[index]].value,
            times=None if index == first else quotient_of(fitted, *ends, study.total, len(others)),
        )

    ways = [*map(way, (first, *others))]
    return [Ways(base=groups[0].setting, ways=ways, without=[group.setting for group in groups if not group.best])]
