"""What the sentences of a study share: its groups, the names of its settings, and the time that it
compares."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple

from study.analysis.answers.group import Group
from study.analysis.stats.estimate import Estimate
from study.analysis.table.exclusions import keys_of
from study.analysis.words import (
    clear_of,
    device_of,
    group_names,
    listed,
    number,
    place_words,
    short,
    with_key,
)
from study.artifacts.setting import Setting
from study.base.errors import quantity
from study.base.strict import Strict
from study.config.settings import ARGUMENTS, in_words
from study.config.study import Study
from study.config.times import TIMES

SCOPE = "95%"
FEW = 4
"""Settings up to this number are named, more are counted."""


@dataclass(frozen=True)
class Context:
    """One study and its groups, as its sentences name them."""

    study: Study
    groups: Sequence[Group] = ()
    scope: str = SCOPE
    """Of which starts an interval tells."""

    @property
    def takes(self) -> str:
        """What takes the time, with its verb."""
        if self.study.total == "printed_seconds":
            what = self.study.output.what
            several = what[0].isdigit() and not what.startswith("1 ")
            return f"{what} {'take' if several else 'takes'}"
        if not self.job:
            return TIMES[self.study.total].takes
        return f"{self.job} takes" if self.job == "1 epoch" else f"{self.job} take"

    @property
    def job(self) -> str:
        """The length of a training whose whole time is compared; nothing where it varies or ends at
        a target."""
        training = self.study.training
        varied = "training.epochs" in self.study.factors
        whole = TIMES[self.study.total].spans == "training"
        if not whole or varied or training.target_accuracy:
            return ""
        return quantity(training.every_epoch, "epoch")

    @property
    def margin(self) -> str:
        """The study's margin of equivalence in words."""
        return f"{self.study.equivalence_margin:.0%}"

    @property
    def factor(self) -> str | None:
        """The only factor in which the levels of a group differ; None where there are several, or
        none."""
        keys = keys_of(self.study)[0]
        return keys[0] if len(keys) == 1 else None

    @cached_property
    def names(self) -> Mapping[Setting, Setting]:
        """The short setting of each group; nothing for a group alone."""
        return group_names([group.setting for group in self.groups])

    def group(self, setting: Setting) -> Group:
        """Return the group of a setting; an empty one where it is not known."""
        known = (group for group in self.groups if group.setting == setting)
        return next(known, Group(setting=setting, levels=[]))

    def seconds(self, group: Setting, label: str) -> float | None:
        """Return the mean time of a level, if it is known."""
        return self.group(group).seconds.get(label)

    def where(self, group: Setting) -> str:
        """Return a group's place: ``on the GPU``, ``with fp32``; nothing where the study has no
        other."""
        return place(self.names.get(group, group)) if self.names else ""

    def who(self, group: Setting) -> str:
        """Return a group as a noun: ``the GPU``, ``stock fastai``; nothing where the study has no
        other."""
        return self.where(group).partition(" ")[2]

    def setting(self, label: str) -> str:
        """Return one level: ``batch size 64``."""
        return with_key(self.factor, label) if self.factor else label

    def settings(self, labels: Sequence[str], bold: bool = False) -> str:
        """Return several levels: ``batch sizes 16, 32 and 64``; more than a few are counted."""
        key, many = "", len(labels) > FEW
        if self.factor and with_key(self.factor, labels[0]) != labels[0]:
            # "loader workers" ends with an s already
            named = self.factor.startswith(ARGUMENTS)  # by the study, in a form of its own
            several = len(labels) > 1 and not named and not in_words(self.factor).endswith("s")
            key = f"{in_words(self.factor)}{'s' * several}"
        told = f"{len(labels)} {key or 'settings'}" if many else listed(labels)
        told = f"**{told}**" if bold else told
        return told if many or not key else f"{key} {told}"


LevelKey = tuple[Setting, str]
"""A group, and the label of one of its levels."""
Means = Mapping[Setting, Mapping[str, float]]
"""The mean seconds of each level of each group, by its label."""
Becomes = tuple[bool, float, str]
"""Whether another setting leads, by how much the time or the ratio changes (its logarithm), and the
answer in words."""


class Lack(NamedTuple):
    """What an open statement lacks."""

    what: Literal["device", "good runs", "interval", "blocks", "runs", "learning", "calm", "tie"]
    """A device; runs that do not fail; an interval of its ratio, or a narrower one; clean runs of a
    setting; longer training; a calm machine; two settings told apart."""
    runs: int = 0
    """Further runs of each setting that could decide it."""
    group: Setting | None = None
    labels: tuple[str, ...] = ()
    """Levels that are not told apart, the fastest first."""


class Statement(Strict, ABC):
    """One statement of an answer. What a kind does not say of itself is nothing."""

    about: ClassVar[Literal["times", "ways", "ratios", "switches", "noise"]]
    """What it tells of."""

    @property
    @abstractmethod
    def decided(self) -> bool:
        """Whether it can be told."""

    @property
    def lacks(self) -> Lack | None:
        """What it lacks; None where it is decided, or nothing helps."""
        return None

    @abstractmethod
    def text(self, context: Context) -> str:
        """Return it in words."""

    def title(self, context: Context) -> str:
        """Return what the runs show at 95%, as the title of their chart; nothing where they show
        no difference, or where the chart names them itself."""
        return ""

    def ends(self, context: Context) -> list[LevelKey]:
        """Return the setting that it names, and the one that it is compared with; none for a
        statement about no setting."""
        return []

    def times(self, context: Context, means: Means) -> float | None:
        """Return how many times as long the setting takes that it is compared with, with other
        means."""
        ends = [
            means.get(group, {}).get(label) or context.seconds(group, label)
            for group, label in self.ends(context)
        ]
        fast, slow = [*ends, None, None][:2]
        return slow / fast if fast and slow else None

    def becomes(self, context: Context, means: Means) -> Becomes | None:
        """Return what it becomes with other means; None where no word and no digit changes."""
        return None


def scope_of(starts: int) -> str:
    """Return of which starts an interval tells: what another start shifts by itself is not in it,
    below three."""
    return {1: "95% in this start", 2: "95% in these two starts"}.get(starts, SCOPE)


def place(group: Setting) -> str:
    """Return the place of a group: ``on the GPU``, ``on the GPU with fp32``, ``with stock
    fastai``."""
    return f"{'on' if device_of(group) else 'with'} {place_words(group, article=True)}"


def bounds(estimate: Estimate, scope: str = SCOPE, apart: Sequence[float] = (1.0,)) -> str:
    """Return an interval in brackets, `` (95% in this start: 1.5 to 1.8)``; nothing where there is
    none.

    The first of a text names its ``scope``. The digits stand on their side of what it is told
    ``apart`` from.
    """
    if estimate.bounds is None:
        return ""
    forms = [short(value, like=estimate.value) for value in estimate.bounds]
    if forms[0] == forms[1]:  # so narrow that two digits tell nothing of it
        forms = [number(value) for value in estimate.bounds]
    both = zip(estimate.bounds, forms, strict=True)
    low, high = (clear_of(value, apart, form) for value, form in both)
    return f" ({scope}{': ' * bool(scope)}{low} to {high})"


def capital(text: str) -> str:
    """Return a text with its first letter, bold or not, as a capital."""
    start = 2 if text.startswith("**") else 0
    return f"{text[:start]}{text[start : start + 1].upper()}{text[start + 1 :]}"
