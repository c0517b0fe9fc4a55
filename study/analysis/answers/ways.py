"""The fastest of several ways to train: the best setting of each group, beside those of the others.

Which way is the fastest is told by one number for each way and block, the mean over its settings: a
way may shift in a block as one. So it can be told from two blocks, and before its best setting is.
"""

from collections.abc import Sequence
from math import log
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from study.analysis.answers.context import (
    Becomes,
    Context,
    LevelKey,
    Means,
    Statement,
    bounds,
    capital,
)
from study.analysis.answers.group import Group
from study.analysis.groups import GroupFit
from study.analysis.ratios import quotient_of
from study.analysis.stats.critical_values import against_one
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.log_model import LogModel, fit_log_model, together
from study.analysis.stats.optimum import has_noise, may_be_fastest
from study.analysis.words import agreeing, listed, short
from study.artifacts.setting import Setting
from study.base.strict import Strict
from study.config.study import Study


class Way(Strict):
    """The fastest level of a group."""

    group: Setting
    level: Setting
    seconds: float
    times: Estimate | None
    """Its time over that of the fastest of all, with bounds that hold for all groups at once; null
    for that one itself."""
    mean: Estimate | None = None
    """The same in the mean over the settings that all ways have, with bounds for all ways at
    once."""
    slower: bool = False
    """Whether it is told to be slower than another way."""


class Ways(Statement):
    """The fastest level of each group beside those of the others, the fastest of all first."""

    kind: Literal["ways"] = "ways"
    about = "ways"
    base: Setting
    """The study's first group: the others are named by what they do otherwise."""
    ways: list[Way] = Field(min_length=2)
    margin: float = 0.0
    """The study's margin of equivalence."""

    @property
    def decided(self) -> bool:
        """Whether the fastest way is told from every other, or to be equal to it."""
        return not self.ways[0].slower and all(
            way.slower or self.equal(way) for way in self.ways[1:]
        )

    def equal(self, way: Way) -> bool:
        """Return whether the ratio that tells of a way lies within the margin."""
        times = self.told(way)
        return times is not None and times.within(self.margin)

    def told(self, way: Way) -> Estimate | None:
        """Return the ratio that tells of a way: that of the best settings, or else of the mean."""
        known = [one for one in (way.times, way.mean) if one]
        return next(
            (one for one in known if one.excludes_one or one.within(self.margin)), way.times
        )

    @property
    def beside(self) -> Way:
        """The way that the fastest is compared with: the study's first, or the next where that one
        is the fastest."""
        return next((way for way in self.ways[1:] if way.group == self.base), self.ways[1])

    def title(self, context: Context) -> str:
        """Return the fastest way, and those that are equal to it."""
        if not self.decided:
            return ""
        first = context.who(self.ways[0].group)
        if equal := [context.who(way.group) for way in self.ways[1:] if self.equal(way)]:
            return f"{capital(listed([first, *equal]))} are equal within {context.margin}"
        others = context.who(self.beside.group) if len(self.ways) == 2 else "every other way"
        return f"{capital(first)} is faster than {others}"

    def ends(self, context: Context) -> list[LevelKey]:
        """Return the fastest way, and the one beside it."""
        return [(way.group, way.level.label) for way in (self.ways[0], self.beside)]

    def becomes(self, context: Context, means: Means) -> Becomes | None:
        """Return the way that leads, where it is another, or its ratio."""
        times = {}
        for way in self.ways:
            ineligible = context.group(way.group).ineligible
            own = means.get(way.group, {}).items()
            eligible = [seconds for label, seconds in own if label not in ineligible]
            times[way.group] = min(eligible, default=way.seconds)
        leader = min(times, key=times.__getitem__)
        other = self.beside
        now = times[other.group] / times[leader]
        before = other.seconds / self.ways[0].seconds
        change = abs(log(now / before))
        if leader != self.ways[0].group:
            return True, change, f"{context.who(leader)} leads at {short(times[leader])} s."
        if short(now) == short(before):
            return None
        return False, change, f"it is {short(now)} times as fast."

    def text(self, context: Context) -> str:
        """Return the answer in words."""
        first, other = self.ways[0], self.beside
        preposition, _, who = context.where(first.group).partition(" ")
        lead = f"{capital(preposition)} **{who}** {context.takes} {short(first.seconds)} s, "
        times, end = self.told(other), f", {short(other.seconds)} s{self._others(context)}."
        if times is None or times.bounds is None:
            return (
                f"{lead}{context.where(other.group)} {short(other.seconds)} s: **not "
                "decided**, there is no interval."
            )
        mean = " in the mean" * (times is not other.times)
        if self.equal(other):
            return (
                f"{lead}**equal within {context.margin}**{mean} to {context.who(other.group)}{end}"
            )
        if not other.slower:
            return f"{lead}**tied** with {context.who(other.group)}{end}"
        told = (
            f"**{short(times.value)} times as fast** as "
            f"{context.where(other.group).removeprefix('with ')}"
        )
        return f"{lead}{told}{mean}{bounds(times, context.scope)}{self._others(context)}."

    def _others(self, context: Context) -> str:
        """Return the other ways that are equal to the first or tied with it, or else the settings
        of the first."""
        others = [way for way in self.ways[1:] if way != self.beside]
        equal = [context.who(way.group) for way in others if self.equal(way)]
        tied = [context.who(way.group) for way in others if not way.slower and not self.equal(way)]
        if equal or tied:
            kinds = (
                (equal, f"**equal within {context.margin}** to it"),
                (tied, "**tied** with it"),
            )
            return "".join(
                f"; {listed(one)} {agreeing(len(one), 'is', 'are')} {words}"
                for one, words in kinds
                if one
            )
        group = context.group(self.ways[0].group)
        if len(group.indistinguishable) < 2:
            return ""
        words = f"equal within {context.margin}" if group.tied_are_equal else "tied"
        return f"; {context.settings(group.indistinguishable)} are **{words}**"


def ways_of(study: Study, fitted: Sequence[GroupFit], groups: Sequence[Group]) -> list[Ways]:
    """Return the fastest level of each group side by side; nothing where switches compare the
    groups."""
    bests = {index: group.best for index, group in enumerate(groups) if group.best}
    if study.effects or len(bests) < 2:
        return []
    first, *others = sorted(bests, key=lambda index: fitted[index].times[bests[index]].value)
    model = _model([fitted[index] for index in bests], study.total)
    places = {index: place for place, index in enumerate(bests)}
    kept = (
        may_be_fastest(model, model.levels) if model and has_noise(model) else list(places.values())
    )

    def way(index: int) -> Way:
        ends = (index, bests[index]), (first, bests[first])
        return Way(
            group=groups[index].setting,
            level=fitted[index].levels[bests[index]],
            seconds=fitted[index].times[bests[index]].value,
            times=None
            if index == first
            else quotient_of(fitted, *ends, study.total, together(len(others))),
            mean=model.ratio(places[index], places[first], against_one(len(bests)))
            if model and index != first
            else None,
            slower=places[index] not in kept,
        )

    ways = [*map(way, (first, *others))]
    return [Ways(base=groups[0].setting, ways=ways, margin=study.equivalence_margin)]


def _model(groups: Sequence[GroupFit], y: str) -> LogModel | None:
    """Return the model of one number for each way and block; None where the ways share no setting.

    That is the mean of what the block's runs lie above their settings' means, and of the means of
    the settings that all ways have.
    """
    shared = set.intersection(*(set(group.times) for group in groups))
    if not shared:
        return None
    parts = []
    for place, group in enumerate(groups):
        logs = np.log(group.clean[y])
        levels = logs.groupby(group.clean["level"])
        over = logs - levels.transform("mean") + float(levels.mean()[sorted(shared)].mean())
        blocks = over.groupby([group.clean["session"], group.clean["session_block"]]).mean()
        parts.append(blocks.rename("y").reset_index().assign(way=place))
    runs = pd.concat(parts)
    columns = (runs[name].tolist() for name in ("way", "session_block", "session"))
    return fit_log_model(np.exp(runs["y"]).tolist(), *columns)
