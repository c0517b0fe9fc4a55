"""How many times as fast one level of the study's contrast is as another, everything else equal."""

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from study.analysis.answers.context import Context, bounds, capital
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.groups import GroupFit
from study.analysis.stats.ratios import Overall, Ratio, sides_of
from study.analysis.words import at_setting, device_words, listed, short, with_key
from study.artifacts.setting import Setting, setting_of
from study.base.strict import Strict
from study.config.study import Study


class Contrast(Strict):
    """The time at one level of the contrast over that at another: the smallest and the largest of
    the ratios."""

    kind: Literal["contrast"] = "contrast"
    contrast: str = Field(description="Dotted key of the factor.")
    slower: str
    faster: str
    least: Ratio
    most: Ratio
    overall: Estimate
    """The mean of the ratios over all settings, with the block as the unit."""
    machine: bool
    """Whether the machine's change within blocks may be the difference: no ratio has bounds
    then."""
    equal: bool = False
    """Whether `overall` lies within the study's margin, and no setting is told to differ by
    more."""

    @property
    def one_way(self) -> bool:
        """Whether one side is the faster one at every setting."""
        return (self.least.ratio.value < 1) == (self.most.ratio.value < 1)

    @property
    def decided(self) -> bool:
        """Whether one side is told to be faster over all settings, or each at some, or both to be
        equal.

        What the machine may explain is not told.
        """
        if self.equal or self.machine:
            return self.equal
        ratios = [self.overall] if self.one_way else [self.least.together, self.most.together]
        return all(one.excludes_one for one in ratios)

    def text(self, context: Context) -> str:
        """Return the answer in words: the faster side first, one ratio or the smallest and the
        largest."""
        names = [side(context.study, self.contrast, level) for level in (self.slower, self.faster)]
        shown = [self.least] if self.least == self.most else [self.least, self.most]
        if all(one.ratio.value < 1 for one in shown):
            names, ratios = names[::-1], [one.together.inverse for one in shown][::-1]
            shown = shown[::-1]
        else:
            ratios = [one.together for one in shown]
        slower, faster = names
        mean = self.overall.inverse if self.overall.value < 1 else self.overall
        where = " in the mean" * (len(shown) > 1)
        if self.equal:
            told = (
                f"{short(mean.value)} times as long{where}{bounds(mean, context.scope, apart=())}"
            )
            return f"{capital(faster)} and {slower} are **equal within {context.margin}**: {told}."
        if self.machine or all(one.low is None for one in ratios):
            times = f"{' and '.join(short(one.value) for one in ratios)} times as fast as {slower}"
            why = "machine's change within blocks may explain it"
            return (
                f"**Not decided**: {faster} was {times}, but the "
                f"{why if self.machine else 'runs are too few for an interval'}."
            )
        if self.one_way and self.decided and not all(one.excludes_one for one in ratios):
            told = (
                f"**{short(mean.value)} times as fast** as {slower} in the "
                f"mean{bounds(mean, context.scope)}"
            )
            return f"{capital(faster)} {context.verb} {told}."
        both = f"{capital(faster)} and {slower} are"
        if self.one_way and not self.decided and any(one.excludes_one for one in ratios):
            if self.overall.low is None:
                unit = f"times as fast as {slower}"
                return (
                    f"**Not decided** over all: {faster} was "
                    f"{self._told(context, ratios, shown, unit)}."
                )
            return (
                f"{both} **tied**{where}: {short(mean.value)} times as "
                f"long{bounds(mean, context.scope)}."
            )
        if not (self.decided or any(one.excludes_one for one in ratios)):
            return f"{both} **tied**: {self._told(context, ratios, shown, 'times as long')}."
        told = self._told(context, ratios, shown, f"times as fast** as {slower}", "**")
        return f"{capital(faster)} {context.verb} {told}."

    @staticmethod
    def _told(
        context: Context,
        ratios: Sequence[Estimate],
        shown: Sequence[Ratio],
        unit: str,
        bold: str = "",
    ) -> str:
        """Return the ratios with their settings; the first has the words of the unit, and names the
        interval."""
        told = [
            f"{bold}{short(one.value)} {unit if not place else f'times{bold}'}"
            f"{' ' * bool(at_setting(at.at))}{at_setting(at.at)}"
            f"{bounds(one, '' if place else context.scope)}"
            for place, (one, at) in enumerate(zip(ratios, shown, strict=True))
        ]
        return ", and ".join(told)


class NoRatio(Strict):
    """Runs count on both sides of a contrast, and no two of them met in one block at one
    setting."""

    kind: Literal["no_ratio"] = "no_ratio"
    decided: ClassVar[bool] = False
    contrast: str = Field(description="Dotted key of the factor.")
    slower: str
    faster: str

    def text(self, context: Context) -> str:
        """Return the answer in words."""
        names = [side(context.study, self.contrast, level) for level in (self.slower, self.faster)]
        return (
            f"**Not decided** between {listed(names)}: no block holds a run of each at one setting."
        )


def side(study: Study, contrast: str, level: str) -> str:
    """Return one side of a contrast in words: ``the GPU``, ``bf16``, ``batch size 64``."""
    setting = setting_of(study, {contrast: level})
    if contrast == "device" and not setting.named:
        return device_words(level, article=True)
    return setting.label if setting.named else with_key(contrast, setting.label)


def contrasts_of(
    study: Study,
    groups: Sequence[GroupFit],
    overalls: Sequence[Overall],
    ratios: Sequence[Ratio],
) -> list[Contrast | NoRatio]:
    """Return what the ratios say of the study's contrast: a finding for each of its levels that the
    first one is set beside; nothing in a study without a contrast."""
    if study.contrast is None:
        return []
    sides = list(sides_of(groups, study, study.contrast))
    met = {overall.faster: overall for overall in overalls}
    found: list[Contrast | NoRatio] = []
    for level in sides[1:]:
        if level in met:
            mine = [ratio for ratio in ratios if ratio.faster == level]
            found.append(contrast_of(study, mine, met[level]))
        else:
            found.append(NoRatio(contrast=study.contrast, slower=sides[0], faster=level))
    return found


def contrast_of(study: Study, ratios: Sequence[Ratio], overall: Overall) -> Contrast:
    """Return the smallest and the largest of the ratios over one level, and what makes them
    doubtful."""
    least = min(ratios, key=lambda ratio: ratio.ratio.value)
    most = max(ratios, key=lambda ratio: ratio.ratio.value)
    margin = study.equivalence_margin
    differ = any(
        ratio.together.excludes_one and not ratio.together.within(margin) for ratio in ratios
    )
    return Contrast(
        contrast=least.contrast,
        slower=least.slower,
        faster=least.faster,
        least=least,
        most=most,
        overall=overall.ratio,
        machine=overall.machine,
        equal=overall.ratio.within(margin) and not differ,
    )


class NullControl(Strict):
    """Each configuration, run twice as if it were two, over itself: what this study finds where
    nothing is."""

    kind: Literal["null_control"] = "null_control"
    at: Setting
    ratio: float
    intervals: int = Field(description="0 without replicates.")
    outside: int = Field(description="Intervals that exclude 1.")

    @property
    def decided(self) -> bool:
        """Whether the control could fail."""
        return self.intervals > 0

    def text(self, context: Context) -> str:
        """Return what the control shows, in words."""
        furthest = f"the furthest ratio is {short(self.ratio, like=1.0)}"
        if not self.intervals:
            return f"Null control, each setting against itself: {furthest}, without an interval."
        return (
            f"Null control, each setting against itself: {self.outside} of {self.intervals} "
            f"intervals exclude 1, where one in twenty is expected; {furthest}."
        )


def control_of(ratios: Sequence[Ratio]) -> NullControl:
    """Return what the null control shows: the differences that this study finds where there is
    none."""
    furthest = max(ratios, key=lambda ratio: abs(math.log(ratio.ratio.value)))
    return NullControl(
        at=furthest.at,
        ratio=furthest.ratio.value,
        intervals=sum(ratio.ratio.low is not None for ratio in ratios),
        outside=sum(ratio.ratio.excludes_one for ratio in ratios),
    )
