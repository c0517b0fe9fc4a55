"""Settings whose time is that of no useful training, or may be."""

from collections.abc import Iterator
from typing import Literal, Self

from study.analysis.answers.group import Group
from study.analysis.caveats.base import MORE, OfSetting, OneCaveat, Seen, few, means, spans
from study.analysis.words import agreeing, place_words
from study.artifacts.setting import Setting
from study.base.strict import Strict


class Unlearned(Strict):
    """A level that is not shown to have learned as well as the others."""

    level: Setting
    setting: Setting
    """The level after its group, where the study has several groups."""
    reason: Literal["at_chance", "below_best", "unclear"]
    """`unclear`: its runs' accuracies differ too much to tell."""
    accuracy: float
    """Mean over its runs, 0 to 1."""


class NotLearned(OneCaveat):
    """Settings that are out of the ranking because they are not shown to have learned as well as
    the others."""

    kind: Literal["not_learned"] = "not_learned"
    levels: list[Unlearned]
    everywhere: bool
    """Whether they are the same levels in each group of the study."""
    EFFECT = "Speed counts only at equal learning."
    ADVICE = (
        "Give them more epochs or another learning rate (`training.epochs`, "
        "`training.learning_rate_rule`)."
    )

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        found, labels = [], set()
        for group, told in zip(seen.fitted, seen.groups, strict=True):
            lost = [
                Unlearned(
                    level=level.setting,
                    setting=seen.setting(group, level.setting),
                    reason=one.reason,
                    accuracy=one.accuracy or 0.0,
                )
                for level in told.levels
                if (one := group.learning.get(level.label))
                and one.reason in ("at_chance", "below_best", "unclear")
            ]
            found += lost
            labels.add(frozenset(one.level.label for one in lost))
        if found:
            yield cls(levels=found, everywhere=len(labels) == 1)

    def text(self) -> str:
        """Return which settings are out of the ranking, and the accuracies that they reach."""
        names = dict.fromkeys(
            one.level.label if self.everywhere else one.setting.label for one in self.levels
        )
        verb = "did not learn as well"
        if all(one.reason == "unclear" for one in self.levels):
            verb = f"{agreeing(len(names), 'is', 'are')} not shown to have learned"
        return (
            f"{few(list(names), 'setting')} {verb} "
            f"({spans([one.accuracy for one in self.levels])}): out of the ranking"
        )


class Missed(Strict):
    """The runs of one setting that did not reach the target accuracy, or that their time limit
    ended."""

    setting: Setting
    missed: int
    runs: int
    """These and its successful runs."""


class Censored(OneCaveat):
    """Settings with runs that ended before they were done: the time of the others is that of the
    lucky ones."""

    kind: Literal["censored"] = "censored"
    missed: list[Missed]
    EFFECT = "These settings are out of the ranking: their times are those of lucky runs."
    ADVICE = "Raise `training.epochs` or `limits.timeout_seconds`."

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        missed = []
        for group in seen.fitted:
            for level, one in group.censored.items():
                setting = seen.setting(group, group.levels[level])
                missed.append(Missed(setting=setting, missed=one.missed, runs=one.runs))
        if missed:
            yield cls(missed=missed)

    def text(self) -> str:
        """Return how many runs of which settings missed it."""
        lost, runs = sum(one.missed for one in self.missed), sum(one.runs for one in self.missed)
        who = few([one.setting.label for one in self.missed], "setting")
        return f"{lost} of {runs} runs of {who} missed the target or their time limit"


class MayLearnLess(OneCaveat):
    """Levels tied for the fastest whose accuracy lies below the best one's by more than the margin,
    if not by noise."""

    kind: Literal["may_learn_less"] = "may_learn_less"
    group: Setting
    levels: list[OfSetting]
    """Their mean accuracies, 0 to 1."""
    best: OfSetting
    where: Setting | None
    """The group's short setting; null where it is alone."""
    EFFECT = "It is not shown beyond chance: they stay in the ranking."
    ADVICE = MORE

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        for group in seen.groups:
            known = [
                OfSetting(setting=level.setting, value=level.accuracy)
                for level in group.levels
                if level.accuracy is not None and level.label not in group.unfair
            ]
            if not known:
                continue
            best = max(known, key=lambda one: one.value)
            tied = [
                one for one in known if one.setting.label in (*group.indistinguishable, group.best)
            ]
            less = [one for one in tied if best.value - one.value > seen.study.learning_margin]
            if less:
                yield cls(
                    group=group.setting, levels=less, best=best, where=seen.names.get(group.setting)
                )

    def text(self) -> str:
        """Return both accuracies."""
        where = f"{place_words(self.where)}: " if self.where else ""
        names = [one.setting.label for one in self.levels]
        reached = spans([one.value for one in self.levels])
        best = f"{self.best.value:.0%} at {self.best.setting.label}"
        return f"{where}{few(names, 'setting')} may learn less, {reached} against {best}"

    def applied(self, group: Group) -> dict[str, float] | None:
        """Return the means without these levels."""
        out = {one.setting.label for one in self.levels}
        left = {label: seconds for label, seconds in means(group).items() if label not in out}
        return left if group.setting == self.group else None
