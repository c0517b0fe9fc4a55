"""What every caveat has, and what its detection sees."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import pandas as pd

from study.analysis.answers.context import Context
from study.analysis.answers.group import Group
from study.analysis.groups import GroupFit
from study.analysis.stats.usable import usable_runs
from study.analysis.table.exclusions import BY_RULE
from study.analysis.words import listed
from study.artifacts.checked import Records
from study.artifacts.setting import Setting
from study.base.errors import quantity
from study.base.strict import Strict

AGAIN = "Close other programs and start again."
MORE = "Raise `replicates`, and start again: what was measured counts."
SHORT = 30
"""Letters of several names that are told in full."""


@dataclass(frozen=True, kw_only=True)
class Seen(Context):
    """What caveats are found in: a study and its groups, with its table of timings, which has the
    reasons for exclusions, the fits of its groups, and the records of its runs."""

    frame: pd.DataFrame
    fitted: Sequence[GroupFit]
    records: Records

    @cached_property
    def recorded(self) -> pd.DataFrame:
        """The rows of the table that count, and those that a rule excludes."""
        return self.frame[self.frame["excluded"].isna() | self.frame["excluded"].isin(BY_RULE)]

    @cached_property
    def usable(self) -> pd.DataFrame:
        """The rows of the runs that count and have the time that is compared."""
        return usable_runs(self.frame, self.study.total)

    def named(self, group: GroupFit | Group, level: Setting) -> Setting:
        """Return a level as it is named in this study: after the short setting of its group, if
        there are several."""
        return level.within(self.names[group.setting]) if self.names else level


class OneCaveat(Strict):
    """One kind of caveat: its fields, how it is found, what it says, and what the answer becomes
    with it."""

    EFFECT: ClassVar[str] = ""
    ADVICE: ClassVar[str] = ""
    IF: ClassVar[str] = "Then"
    """The condition under which the answer is what :meth:`applied` makes of it."""

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        """Yield each caveat of the kind that a study has."""
        raise NotImplementedError

    def text(self) -> str:
        """Return what was seen, in 30 words at most, without a full stop."""
        raise NotImplementedError

    def effect(self) -> str:
        """Return what the caveat does to the answer; nothing where the text says it."""
        return self.EFFECT

    def advice(self) -> str:
        """Return what to do; nothing where there is nothing to be done. ``STUDY`` stands for the
        study's name."""
        return self.ADVICE

    def applied(self, group: Group) -> dict[str, float] | None:
        """Return the mean seconds of each level of a group, by its label, with the caveat counted
        in.

        None where it does not concern the group, or its means cannot be computed anew.
        """
        return None


class OfSetting(Strict):
    """A number of one setting, which has the levels of its group, too."""

    setting: Setting
    value: float


def few(names: Sequence[str], thing: str) -> str:
    """Return names where they are short, and their number where they are not."""
    if len(names) == 1 or len(listed(names)) <= SHORT:
        return listed(names)
    return quantity(len(names), thing)


def spans(values: Sequence[float]) -> str:
    """Return shares as percent: ``57%``, or the smallest and the largest."""
    least, most = f"{min(values):.0%}", f"{max(values):.0%}"
    return least if least == most else f"{least} to {most}"
