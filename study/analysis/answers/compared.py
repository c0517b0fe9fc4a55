"""What a claim is set beside: the settings that it is about, with their ratios, and the word for
its number.

One quotient decides, ours over theirs, and one margin both ways. A claim is the same here where
two tests of one side show that the quotient lies within the margin (Schuirmann 1987), less or more
where one test shows that it lies beyond. A claim of several parts is the same where each part is
(Berger 1982), and less or more by bounds that hold for all parts at once. So each word is wrong in
at most one of twenty studies, and noise makes all of them rarer.
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from scipy import special

from study.analysis.answers.group import Group, TimedSetting, ends_with
from study.analysis.groups import GroupFit
from study.analysis.ratios import Overall, Ratio, quotient_of
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.log_model import Critical, one_sided, together
from study.analysis.words import device_words, number, short, with_key
from study.artifacts.setting import Levels
from study.config.claims import Claim
from study.config.names import level_words
from study.config.study import Study, display_level

TINY = 1e-300
"""A bound of 0 stands this far below all numbers."""
MOST_BLOCKS = 200


@dataclass(frozen=True)
class MeasuredStudy:
    """The settings of a study that have a time."""

    study: Study
    fitted: Sequence[GroupFit]
    groups: list[Group]
    overalls: Sequence[Overall]
    """Of the study's contrast, as are the ratios."""
    ratios: list[Ratio]

    def left_out(self, claim: Claim) -> list[str]:
        """Return the levels that a claim names, and that the study neither varies a key over nor
        has it fixed at: ``the CPU``, ``batch size 64``."""
        left = []
        for _, key, level in claim.levels():
            told = self.words(key, level)
            if told not in [self.words(key, one) for one in self.study.levels_of(key)]:
                left.append(device_words(with_key(key, told), article=True))
        return left

    def words(self, key: str, level: object) -> str:
        """Return a level in words."""
        return level_words(key, display_level(self.study, key, level))

    def ends(self, chosen: Levels) -> list[TimedSetting]:
        """Return the settings that have these levels. A level that the study does not vary is its
        own."""
        return ends_with(self.study, self.groups, chosen)

    def others(self, own: TimedSetting, at: Levels, named: Levels) -> list[TimedSetting]:
        """Return the settings that differ from ``own`` in the ``named`` keys alone."""
        same = [end for end in self.ends(at) if end.rest(named) == own.rest(named)]
        return [end for end in same if end.levels != own.levels]

    def name(self, end: TimedSetting, named: Collection[str]) -> str:
        """Return what the claim tells a setting by, in words."""
        return ", ".join(
            device_words(self.words(key, end.levels[key])) for key in named if key in end.levels
        )

    def over(self, slower: TimedSetting, faster: TimedSetting, tests: int) -> "Quantity":
        """Return the time of one setting over that of another, one of so many parts of a claim;
        without bounds where the machine may explain it."""
        for one in self.ratios:
            sides = [
                str(display_level(self.study, one.contrast, end.levels[one.contrast]))
                for end in (slower, faster)
            ]
            same = slower.rest([one.contrast]) == faster.rest([one.contrast])
            is_there = one.at.levels.items() <= slower.levels.items()
            if same and is_there and sides == [one.slower, one.faster]:
                joint = one.together if tests > 1 else one.one_sided
                return Quantity(one.together, one.one_sided, joint)
        if any(end.level.undetermined or end.group.drift_confounded for end in (slower, faster)):
            return Quantity.without_bounds(slower.time.value / faster.time.value)
        model = self.fitted[slower.place].model
        first, second = ((end.place, end.level.label) for end in (slower, faster))
        if slower.place == faster.place and model:
            return Quantity.of(partial(model.ratio, first[1], second[1]), tests)
        total = self.study.total
        return Quantity.of(partial(quotient_of, self.fitted, first, second, total), tests)


Word = Literal[
    "same here", "less here", "more here", "not here", "contradicted", "cannot tell", "another job"
]
"""What is said of a claim. `not here` is of a setting, or an order, that another one beats;
`contradicted` is said only where the source's machine is this one."""


class Quantity(NamedTuple):
    """What was measured of one part of a claim, with three intervals."""

    here: Estimate
    """With the 95% interval, which holds for all parts at once."""
    alone: Estimate
    """With bounds of which each holds by itself with 95%: the 90% interval."""
    joint: Estimate
    """With bounds of which each holds for all parts at once with 95%."""

    @classmethod
    def of(cls, told: Callable[[Critical], Estimate], tests: int) -> "Quantity":
        """Return the quantity that is ``told`` with a critical value, one of so many parts."""
        return cls(told(together(tests)), told(one_sided(1)), told(one_sided(tests)))

    @classmethod
    def without_bounds(cls, value: float) -> "Quantity":
        """Return a quantity of which nothing tells how well it is known."""
        bare = Estimate(value=value)
        return cls(bare, bare, bare)


class Claimed(NamedTuple):
    """A claimed number, or a range of them, and how near to it counts as the same."""

    low: float
    high: float | None
    """None: it is meant as at least ``low``."""
    margin: float
    """A share of the number, or a difference with ``points``."""
    points: bool = False
    """Whether ours less theirs is told, not ours over theirs."""
    ratio: bool = False
    """Whether 1 says that there is no gain."""

    @property
    def reach(self) -> float:
        """How far a quantity may lie beyond the number, in log units or as a difference. No gain
        never counts as a gain: half way to 1 is the most."""
        if self.points:
            return self.margin
        ends = [self.low, self.high or self.low] if self.ratio else []
        half_gains = [abs(math.log(end)) / 2 for end in ends if end != 1]
        return min([math.log1p(self.margin), *half_gains])

    @property
    def within(self) -> float:
        """The margin that decides, as a share, or as a difference with ``points``."""
        return self.margin if self.points else math.expm1(self.reach)

    def off(self, value: float) -> float:
        """Return how far a value lies beyond the claim, in log units or as a difference: below 0
        below it, 0 within a range."""
        claimed = max(self.low, value if self.high is None else min(value, self.high))
        return value - claimed if self.points else math.log(max(value, TINY) / claimed)

    def over(self, found: Estimate) -> Estimate:
        """Return ours over theirs, or ours less theirs; of a range the end counts beyond which a
        value lies."""

        def beside(value: float) -> float:
            if self.points:
                return self.off(value)
            return value / self.low if self.high is None else math.exp(self.off(value))

        low, high = map(beside, found.bounds) if found.bounds else (None, None)
        return Estimate(value=beside(found.value), low=low, high=high)

    def word(self, found: Quantity) -> Word:
        """Return the word for what was measured."""
        alone, joint = found.alone.bounds, found.joint.bounds
        if alone is None or joint is None:
            return "cannot tell"
        if all(abs(self.off(one)) <= self.reach for one in alone):
            return "same here"
        if self.off(joint[1]) < -self.reach:
            return "less here"
        return "more here" if self.off(joint[0]) > self.reach else "cannot tell"

    def blocks(self, noise: float, levels: int) -> int | None:
        """Return about how many blocks tell a ratio that is exactly as claimed, in four studies of
        five; None where it would take too many. ``noise`` is that of a run's log seconds."""
        for blocks in range(2, MOST_BLOCKS):
            degrees = (max(levels, 2) - 1) * (blocks - 1)
            # both one-sided tests must pass: each side with half of what may fail
            reach = sum(special.stdtrit(degrees, share) for share in (0.95, 0.9))
            if blocks >= 2 * (noise * reach / self.reach) ** 2:
                return blocks
        return None


def told_of(here: Estimate, unit: str, first: bool = True, decimals: int | None = None) -> str:
    """Return what was measured, with its interval. Documents print accuracies with one of the
    ``decimals``, and shares with none."""
    known = [here.value, *(here.bounds or ())]
    value, *ends = (
        short(one, like=here.value) if decimals is None else f"{one:.{decimals}f}" for one in known
    )
    if len({*ends}) == 1:  # so narrow that two digits tell nothing of it
        value, *ends = map(number, known)
    interval = f"{'95%: ' * first}{' to '.join(ends)}" if ends else "no interval"
    return f"{value}{unit} ({interval})"
