"""What a claim is set beside: the settings that it is about, with their ratios, and the word for
its number.

A claim holds if the whole interval lies within the study's margin around the claimed number, or if
the number lies in an interval whose upper end is at most twice its lower. It is contradicted if the
whole interval lies beyond the margin.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from study.analysis.answers.group import Group, TimedSetting, ends_with
from study.analysis.groups import GroupFit
from study.analysis.ratios import Ratio, quotient_of
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.log_model import together
from study.analysis.words import clear_of, device_words, number, short, with_key
from study.artifacts.setting import Levels
from study.config.names import level_words
from study.config.settings import get
from study.config.study import Study, display_level


@dataclass(frozen=True)
class MeasuredStudy:
    """The settings of a study that have a time."""

    study: Study
    fitted: Sequence[GroupFit]
    groups: Sequence[Group]
    ratios: Sequence[Ratio]
    """Of the study's contrast."""

    def has(self, key: str, level: object) -> bool:
        """Return whether the study varies a key over this level, or has it fixed at it."""
        own = self.study.factors.get(key, [get(self.study, key)])
        return self.words(key, level) in [self.words(key, one) for one in own]

    def name_of(self, key: str, level: object) -> str:
        """Return a level of a setting in words: ``the CPU``, ``batch size 64``."""
        return device_words(with_key(key, self.words(key, level)), article=True)

    def words(self, key: str, level: object) -> str:
        """Return a level in words."""
        return level_words(key, display_level(self.study, key, level))

    def ends(self, chosen: Levels) -> list[TimedSetting]:
        """Return the settings that have these levels. A level that the study does not vary is its
        own."""
        return ends_with(self.study, self.groups, chosen)

    @staticmethod
    def rest(end: TimedSetting, named: Collection[str]) -> Levels:
        """Return the levels of a setting without the ``named`` keys."""
        return {key: level for key, level in end.levels.items() if key not in named}

    def others(self, own: TimedSetting, at: Levels, named: Levels) -> list[TimedSetting]:
        """Return the settings that differ from ``own`` in the ``named`` keys alone."""
        rest, ends = self.rest(own, named), self.ends(at)
        return [end for end in ends if self.rest(end, named) == rest and end.levels != own.levels]

    def name(self, end: TimedSetting, named: Levels) -> str:
        """Return what the claim tells a setting by, in words."""
        return ", ".join(
            device_words(self.words(key, end.levels[key])) for key in named if key in end.levels
        )

    def time(self, end: TimedSetting, tests: int) -> Estimate:
        """Return the time of a setting, with bounds that hold for so many at once."""
        model = self.fitted[end.place].model
        if tests == 1 or end.time.bounds is None or model is None:
            return end.time
        return model.mean(end.level.label, together(tests))

    def over(self, slower: TimedSetting, faster: TimedSetting, tests: int) -> Estimate:
        """Return the time of one setting over that of another; without bounds where the machine may
        explain it."""
        for one in self.ratios:
            sides = [
                str(display_level(self.study, one.contrast, end.levels[one.contrast]))
                for end in (slower, faster)
            ]
            same = self.rest(slower, [one.contrast]) == self.rest(faster, [one.contrast])
            if (
                same
                and sides == [one.slower, one.faster]
                and one.at.levels.items() <= slower.levels.items()
            ):
                return one.together
        if any(end.level.undetermined or end.group.drift_confounded for end in (slower, faster)):
            return Estimate(value=slower.time.value / faster.time.value)
        model = self.fitted[slower.place].model
        if slower.place == faster.place and model:
            return model.ratio(slower.level.label, faster.level.label, together(tests))
        ends = ((slower.place, slower.level.label), (faster.place, faster.level.label))
        return quotient_of(self.fitted, *ends, self.study.total, tests)


Word = Literal["holds", "contradicted", "not decided"]


NARROW = 1.5
"""How many times the lower end the upper end of an interval is at most, where a number in it is
said to hold."""


def word_of(
    low: float,
    high: float,
    here: Estimate,
    margin: float,
    points: bool = False,
    ratio: bool = False,
) -> Word:
    """Return the word for a claimed number, or a range of them, by the interval of what was
    measured.

    The margin is a factor, or a difference with ``points``. A number has to lie in the interval,
    and what was measured in a range: an interval that only reaches into it decides nothing. An
    interval that holds 1 shows no gain and no loss: with ``ratio`` a claimed gain needs one without
    it, and "no gain" one within the margin.
    """
    if here.low is None or here.high is None:
        return "not decided"
    least, most = (
        (low - margin, high + margin) if points else (low / (1 + margin), high * (1 + margin))
    )
    if least <= here.low and here.high <= most:
        return "holds"
    if here.high < least or here.low > most:
        return "contradicted"
    none = ratio and here.low <= 1 <= here.high and not low < 1 < high
    meets = here.low <= low <= here.high if low == high else low <= here.value <= high
    return "holds" if meets and here.high <= NARROW * here.low and not none else "not decided"


def told_of(
    here: Estimate,
    unit: str,
    claimed: Sequence[float],
    first: bool = True,
    decimals: int | None = None,
) -> str:
    """Return what was measured; its digits stand on its side of the numbers ``claimed``, so that
    they bear the word.

    Documents print accuracies with one of the ``decimals``, and shares with none.
    """
    known = [one for one in (here.value, here.low, here.high) if one is not None]
    forms = (
        short(one, like=here.value) if decimals is None else f"{one:.{decimals}f}" for one in known
    )
    value, *ends = (clear_of(one, claimed, form) for one, form in zip(known, forms, strict=True))
    if len(set(ends)) < len(ends):  # so narrow that two digits tell nothing of it
        value, *ends = (clear_of(one, claimed, number(one)) for one in known)
    return (
        f"{value}{unit} ({'95%: ' * first}{' to '.join(ends)})"
        if ends
        else f"{value}{unit} (no interval)"
    )


def against(word: Word, claimed: float) -> tuple[float, ...]:
    """Return the number of which the digits of what was measured must stand clear: none where the
    claim holds."""
    return () if word == "holds" else (claimed,)


def note_of(word: Word, here: Estimate, claimed: float) -> str:
    """Return in which direction a number is contradicted."""
    return f"{'less' if here.value < claimed else 'more'} here" if word == "contradicted" else ""
