"""How many times as fast one level of the study's contrast is as another, everything else equal,
and how that ratio, or the one of two ways, depends on the length of the job, in epochs.

A job that is shorter than the study's is a run without its later epochs. A longer one goes on with
the run's mean epoch, from the third on: the first two hold the start. Each length has the ratio
and the interval of the model that gives the answer's own.
"""

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import pandas as pd

from study.analysis.answers.context import (
    SCOPE,
    Becomes,
    Context,
    Lack,
    LevelKey,
    Means,
    Statement,
    bounds,
    capital,
)
from study.analysis.answers.group import ends_with
from study.analysis.answers.ways import Ways
from study.analysis.groups import GroupFit, groups_of
from study.analysis.ratios import Overall, Ratio, overalls_of, quotient_of, ratios_of, sides_of
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.log_model import together
from study.analysis.stats.usable import counted
from study.analysis.words import at_setting, device_words, listed, short, with_key
from study.artifacts.setting import EVERYWHERE, Setting, setting_of
from study.base.errors import quantity
from study.base.strict import Strict
from study.config.study import Study
from study.config.times import TIMES


class Contrast(Statement):
    """The time at one level of the contrast over that at another: the smallest and the largest of
    the ratios."""

    kind: Literal["contrast"] = "contrast"
    about = "ratios"
    contrast: str
    """Dotted key of the factor."""
    slower: str
    faster: str
    least: Ratio
    most: Ratio
    overall: Estimate
    """The mean of the ratios over all settings, with the block as the unit."""
    drift_confounded: bool
    """Whether the machine's drift within blocks may be the difference: no ratio has bounds
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
        ratios = [self.overall] if self.one_way else [self.least.together, self.most.together]
        return self.equal or all(one.excludes_one for one in ratios)

    @property
    def lacks(self) -> Lack | None:
        """An interval, or a narrower one."""
        if self.decided:
            return None
        return Lack("interval" if self.most.ratio.low is None else "blocks")

    def title(self, context: Context) -> str:
        """Return which side is faster, and whether at every setting."""
        if not self.decided:
            return ""
        names = _sides(context, self)
        if self.equal:
            return f"{capital(listed(names[::-1]))} are equal within {context.margin}"
        if not self.one_way:
            return ""
        slower, faster = names if self.least.ratio.value > 1 else names[::-1]
        ends = (self.least, self.most)
        every = self.least != self.most and all(one.together.excludes_one for one in ends)
        return f"{capital(faster)} is faster than {slower}{' at every setting' * every}"

    def ends(self, context: Context) -> list[LevelKey]:
        """Return both sides where their ratio is the largest."""
        found = []
        for level in (self.faster, self.slower):
            at = self.most.at.levels | {self.contrast: level}
            found += ends_with(context.study, context.groups, at)[:1]
        return [(end.group.setting, end.level.label) for end in found]

    def becomes(self, context: Context, means: Means) -> Becomes | None:
        """Return what the largest ratio becomes: its part is that of the ratio of the means."""
        before = self.times(context, {})
        now = self.times(context, means)
        old = self.most.ratio
        if not before or not now:
            return None
        new = old.value * now / before
        words = f"it is {short(new)} times as fast {at_setting(self.most.at)}".rstrip() + "."
        change = abs(math.log(now / before))
        return (False, change, words) if short(new) != short(old.value) else None

    def text(self, context: Context) -> str:
        """Return the answer in words: the faster side first, one ratio or the smallest and the
        largest."""
        names = _sides(context, self)
        shown = [self.least] if self.least == self.most else [self.least, self.most]
        ratios = [one.together for one in shown]
        if self.most.ratio.value < 1:
            names, shown = names[::-1], shown[::-1]
            ratios = [one.together.inverse for one in shown]
        slower, faster = names

        def each(unit: str, bold: str = "") -> str:
            """Return the ratios with their settings; the first has the words of the unit, and
            names the interval."""
            told = [
                f"{bold}{short(one.value)} {unit if not place else f'times{bold}'}"
                f"{' ' * bool(at_setting(at.at))}{at_setting(at.at)}"
                f"{bounds(one, '' if place else context.scope)}"
                for place, (one, at) in enumerate(zip(ratios, shown, strict=True))
            ]
            return ", and ".join(told)

        verb = "runs" if context.study.command else "trains"
        # Two ratios with their settings leave no room for the length of the job.
        if context.job and len(shown) == 1:
            verb = f"{verb} {context.job}"
        mean = self.overall.inverse if self.overall.value < 1 else self.overall
        where = " in the mean" * (len(shown) > 1)
        if self.equal:
            told = (
                f"{short(mean.value)} times as long{where}{bounds(mean, context.scope, apart=())}"
            )
            return f"{capital(faster)} and {slower} are **equal within {context.margin}**: {told}."
        if self.drift_confounded or all(one.low is None for one in ratios):
            times = f"{' and '.join(short(one.value) for one in ratios)} times as fast as {slower}"
            why = "machine's change within blocks may explain it"
            return (
                f"**Not decided**: {faster} was {times}, but the "
                f"{why if self.drift_confounded else 'runs are too few for an interval'}."
            )
        apart = [one.excludes_one for one in ratios]
        if self.one_way and self.decided and not all(apart):
            told = (
                f"**{short(mean.value)} times as fast** as {slower} in the "
                f"mean{bounds(mean, context.scope)}"
            )
            return f"{capital(faster)} {verb} {told}."
        both = f"{capital(faster)} and {slower} are"
        if self.one_way and not self.decided and any(apart):
            if self.overall.low is None:
                unit = f"times as fast as {slower}"
                return f"**Not decided** over all: {faster} was {each(unit)}."
            return (
                f"{both} **tied**{where}: {short(mean.value)} times as "
                f"long{bounds(mean, context.scope)}."
            )
        if not (self.decided or any(apart)):
            return f"{both} **tied**: {each('times as long')}."
        told = each(f"times as fast** as {slower}", "**")
        return f"{capital(faster)} {verb} {told}."


class NoRatio(Statement):
    """Runs count on both sides of a contrast, and no two of them met in one block at one
    setting."""

    kind: Literal["no_ratio"] = "no_ratio"
    about = "ratios"
    decided: ClassVar[bool] = False
    lacks: ClassVar[Lack] = Lack("interval")
    contrast: str
    """Dotted key of the factor."""
    slower: str
    faster: str

    def text(self, context: Context) -> str:
        """Return the answer in words."""
        names = listed(_sides(context, self))
        return f"**Not decided** between {names}: no block holds a run of each at one setting."


def _sides(context: Context, told: Contrast | NoRatio) -> list[str]:
    """Return the slower and the faster side of a statement in words."""
    return [side(context.study, told.contrast, level) for level in (told.slower, told.faster)]


def side(study: Study, contrast: str, level: str) -> str:
    """Return one side of a contrast in words: ``the GPU``, ``bf16``, ``batch size 64``."""
    setting = setting_of(study, {contrast: level})
    if contrast == "device" and not setting.named:
        return device_words(level, article=True)
    return setting.label if setting.named else with_key(contrast, setting.label)


def contrasts_of(
    study: Study, groups: Sequence[GroupFit], overalls: Sequence[Overall], ratios: Sequence[Ratio]
) -> Iterator[Contrast | NoRatio]:
    """Yield what the ratios say of the study's contrast: a finding for each of its levels that the
    first one is set beside; nothing in a study without a contrast."""
    if study.contrast is None:
        return
    sides = list(sides_of(groups, study, study.contrast))
    met = {overall.faster: overall for overall in overalls}
    margin = study.equivalence_margin
    for level in sides[1:]:
        if level not in met:
            yield NoRatio(contrast=study.contrast, slower=sides[0], faster=level)
            continue
        mine, overall = [ratio for ratio in ratios if ratio.faster == level], met[level]
        told = [ratio.together for ratio in mine]
        differ = any(one.excludes_one and not one.within(margin) for one in told)
        yield Contrast(
            contrast=study.contrast,
            slower=sides[0],
            faster=level,
            least=min(mine, key=lambda ratio: ratio.ratio.value),
            most=max(mine, key=lambda ratio: ratio.ratio.value),
            overall=overall.ratio,
            drift_confounded=overall.drift_confounded and all(one.low is None for one in told),
            equal=overall.ratio.within(margin) and not differ,
        )


class NullControl(Statement):
    """Each configuration, run twice as if it were two, over itself: what this study finds where
    nothing is."""

    kind: Literal["null_control"] = "null_control"
    about = "noise"
    at: Setting
    ratio: float
    intervals: int
    """0 without replicates."""
    outside: int
    """Intervals that exclude 1."""

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


LENGTHS = (1, 2, 4, 25, 100)
"""Epochs of the jobs beside the study's own."""
START = 2
"""Epochs that hold the start."""


class Point(Strict):
    """The ratios at one length."""

    epochs: int | None
    """Null for a job without end: the ratio of mean epochs."""
    ratios: list[Estimate]
    """One for each setting of the answer."""


class RatiosByLength(Strict):
    """How many times as fast the answer's setting is in shorter and in longer jobs."""

    own: int
    """Epochs of the study."""
    at: list[Setting]
    """At most two, or one without levels."""
    points: list[Point]
    """The shortest job first, that without end last."""

    def rows(self, scope: str = SCOPE) -> list[tuple[str, list[str]]]:
        """Return each length in words, with its ratios and their intervals."""
        found = []
        for point in self.points:
            name = quantity(point.epochs, "epoch") if point.epochs else "no end"
            if point.epochs == self.own:
                name += ", this study"
            about = "about " if (point.epochs or 0) > self.own else ""
            told = [
                f"{about}{short(ratio.value)} times{bounds(ratio, scope)} {at_setting(at)}".rstrip()
                for ratio, at in zip(point.ratios, self.at, strict=True)
            ]
            found.append((name, told))
            scope = ""
        return found


def length_of(
    study: Study, frame: pd.DataFrame, epochs: pd.DataFrame, answer: object
) -> RatiosByLength | None:
    """Return the ratios of an answer by the length of the job.

    None for an answer without a ratio of its own, for a time that is no whole training or ends at a
    target, and for runs of one epoch or of different lengths.
    """
    counts = counted(epochs).set_index("run")
    y = study.total
    lengths = {int(last) for last in counts.groupby("run")["epoch"].max()}
    if (
        not isinstance(answer, (Ways, Contrast))
        or TIMES[y].spans != "training"
        or len(lengths) != 1
    ):
        return None
    if isinstance(answer, Ways) and answer.told(answer.beside) != answer.beside.times:
        return None
    (own,) = lengths
    if own == 1 or study.training.target_accuracy:
        return None
    seconds = counts["train_seconds"]
    if y != "train_seconds":
        # What a run validates in the end alone, it does once, whatever its length.
        each = counts.groupby("run")["valid_seconds"].transform("min") > 0
        seconds = seconds + counts["valid_seconds"] * each
    mean = seconds[counts["epoch"] > min(START, own - 1)].groupby("run").mean()
    points = []
    for length in [*sorted({*LENGTHS, own}), None]:
        times = frame["run"].map(mean)
        if length is not None:
            later = seconds.where(counts["epoch"] > length, 0.0).groupby("run").sum()
            times = frame[y] + max(length - own, 0) * times - frame["run"].map(later)
        found = _ratios(study, frame.assign(**{y: times}), answer)
        points.append(Point(epochs=length, ratios=list(found.values())))
    return RatiosByLength(own=own, at=list(found), points=points)


def _ratios(study: Study, frame: pd.DataFrame, answer: Ways | Contrast) -> dict[Setting, Estimate]:
    """Return the ratios that an answer prints, by their setting, from a table of timings."""
    if isinstance(answer, Ways):
        ends = [answer.beside, answer.ways[0]]
        pair = [groups_of(study, frame[frame["group"] == way.group.label])[0] for way in ends]
        slower, faster = enumerate(way.level.label for way in ends)
        return {
            EVERYWHERE: quotient_of(
                pair, slower, faster, study.total, together(len(answer.ways) - 1)
            )
        }
    groups = groups_of(study, frame)
    shown = {answer.least.at, answer.most.at}
    turned = answer.most.ratio.value < 1
    return {
        one.at: one.together.inverse if turned else one.together
        for one in ratios_of(study, groups, overalls_of(study, groups, answer.contrast))
        if one.faster == answer.faster and one.at in shown
    }
