"""What each switch buys: the effect of every factor by itself, averaged over the settings of the
others.

The design is a full factorial, so each effect uses every run, and none is mixed up with another
(Box, Hunter and Hunter, Statistics for Experimenters, 2005, chapter 5).
"""

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from study.analysis.answers.context import (
    FEW,
    Becomes,
    Context,
    LevelKey,
    Means,
    Statement,
    bounds,
    capital,
)
from study.analysis.groups import GroupFit
from study.analysis.stats.critical_values import against_one
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.log_model import together
from study.analysis.table.exclusions import keys_of
from study.analysis.words import listed, number, short, with_key
from study.artifacts.setting import Setting
from study.base.strict import Strict
from study.config.names import level_words
from study.config.study import Study, display_level


class Effect(Strict):
    """One level of a switch against its first one, everything else equal: means over the settings
    of the others."""

    factor: str
    base: str
    level: str
    settings: int
    """Number of settings of the other switches over which this is a mean."""
    times_as_fast: Estimate
    """Time at `base` over time at `level`; the bounds hold for all effects of the group at once."""
    starts: list[float] = []
    """The same in each start that has these settings; empty with one start."""


class Combination(Statement):
    """The best setting of all switches, against the one with the first level of each."""

    kind: Literal["combination"] = "combination"
    about = "switches"
    group: Setting
    base: Setting
    best: Setting
    times_as_fast: Estimate
    """Time of `base` over that of `best`."""

    @property
    def decided(self) -> bool:
        """Whether the best setting is told from the base."""
        return self.times_as_fast.excludes_one

    def text(self, context: Context) -> str:
        """Return the answer in words."""
        times = self.times_as_fast
        where = f" {context.where(self.group)}".rstrip()
        told = f"**{short(times.value)} times as fast**{where}{bounds(times, context.scope)}"
        return f"**{self.best.label}** together: {told}."

    def ends(self, context: Context) -> list[LevelKey]:
        """Return the best setting and the base."""
        return [(self.group, self.best.label), (self.group, self.base.label)]

    def becomes(self, context: Context, means: Means) -> Becomes | None:
        """Return how many times as fast they are together."""
        before = self.times_as_fast.value
        now = self.times(context, means)
        if now is None or short(now) == short(before):
            return None
        return False, abs(math.log(now / before)), f"the best is {short(now)} times as fast."


class Switches(Statement):
    """The effects of all switches in one group."""

    about = "switches"
    group: Setting
    effects: list[Effect]
    combination: Combination | None
    """Null where the first or the best setting is not determined."""
    blocks: int
    """Of two, bounds do not tell what a further one shifts."""

    @property
    def decided(self) -> bool:
        """Whether a switch is shown to gain."""
        return any(effect.times_as_fast.excludes_one for effect in self.effects)

    def ends(self, context: Context) -> list[LevelKey]:
        """Return those of the combination."""
        return self.combination.ends(context) if self.combination else []

    def becomes(self, context: Context, means: Means) -> Becomes | None:
        """Return what the combination becomes."""
        return self.combination.becomes(context, means) if self.combination else None

    def label(self, effect: Effect) -> str:
        """Return the name of the level of one of the effects; with its first level where the
        switch has several others."""
        key = effect.factor
        name = with_key(key, level_words(key, effect.level))
        several = sum(one.factor == key for one in self.effects) > 1
        return f"{name} over {level_words(key, effect.base)}" if several else name

    def text(self, context: Context) -> str:
        """Return which switch buys most, and what the best setting of all buys."""
        where = f" {context.where(self.group)}".rstrip()
        faster = [one for one in self.effects if (one.times_as_fast.low or 0) > 1]
        gains = [
            one for one in faster if not one.times_as_fast.within(context.study.equivalence_margin)
        ]
        scope, together = context.scope, ""
        if self.blocks == 2:
            scope = scope.replace("this start", "these two blocks")
        on = self.combination
        changed = on.best.levels.items() - on.base.levels.items() if on else ()
        # one switch alone has its own effect
        if on and on.decided and len(changed) > 1:
            times = on.times_as_fast
            interval = bounds(times, "" if gains else scope)
            together = f"; {on.best.label} together **{short(times.value)} times**{interval}"
        if not gains:
            gain = f"gain more than {context.margin}" if faster else "gain"
            return f"**No switch** is shown to {gain} by itself{where}{together}."
        most = max(gains, key=lambda one: one.times_as_fast.value)
        times = most.times_as_fast
        interval = bounds(times, scope)
        if starts := most.starts:
            each = listed(list(map(number, starts)))
            if len(starts) > FEW:
                each = f"{number(min(starts))} to {number(max(starts))}"
            interval = f"{interval.removesuffix(')')}; {each} in {len(starts)} starts)"
        return (
            f"**{capital(self.label(most))}** buys most{where}, "
            f"**{short(times.value)} times**{interval}{together}."
        )


def switches_of(study: Study, group: GroupFit, best: str | None) -> Switches | None:
    """Return what each switch buys in a group, whose fastest candidate is ``best``; None where no
    run counts."""
    if group.model is None:
        return None
    keys = keys_of(study)[0]
    model = group.model
    levels = {
        key: [display_level(study, key, level) for level in study.factors[key]] for key in keys
    }
    cells = {}  # by the place of the level of each switch, in the order of the study's factors
    for label in group.times.keys() - group.ineligible.keys():
        at_label = group.levels[label].levels
        places = [levels[key].index(display_level(study, key, at_label[key])) for key in keys]
        cells[tuple(places)] = label
    base, combination = cells.get((0,) * len(levels)), None
    if base and best and base not in group.undetermined and best != base:
        # The best of many is fast by chance, too: the bounds are Dunnett's, of all settings
        # against the base (1955).
        combination = Combination(
            group=group.setting,
            base=group.levels[base],
            best=group.levels[best],
            times_as_fast=model.ratio(base, best, against_one(len(model.levels))),
        )
    clean = group.clean
    logs = clean[study.total].astype(float).apply(np.log)
    by_start = logs.groupby([clean["session"], clean["level"]]).mean().unstack()[model.levels]
    effects = []
    count = sum(len(own) - 1 for own in levels.values())
    for place, (key, own) in enumerate(levels.items()):
        for at in range(1, len(own)):
            if pairs := _pairs(cells, place, at):
                weights = model.weights_of(pairs)
                known = by_start.loc[:, weights != 0].dropna()
                starts = np.exp(known @ weights[weights != 0]).tolist()
                effects.append(
                    Effect(
                        factor=key,
                        base=str(own[0]),
                        level=str(own[at]),
                        settings=len(pairs),
                        times_as_fast=model.with_units(weights).interval(weights, together(count)),
                        starts=starts if len(by_start) > 1 else [],
                    )
                )
    return Switches(
        group=group.setting,
        effects=effects,
        combination=combination,
        blocks=clean["session_block"].nunique(),
    )


def _pairs(cells: Mapping[tuple[int, ...], str], place: int, at: int) -> list[tuple[str, str]]:
    """Return the labels of each two settings that differ in one switch alone, that at ``place``:
    its first level, and the one ``at`` another place."""
    pairs = []
    for cell, label in cells.items():
        changed = (*cell[:place], at, *cell[place + 1 :])
        if cell[place] == 0 and changed in cells:
            pairs.append((label, cells[changed]))
    return pairs
