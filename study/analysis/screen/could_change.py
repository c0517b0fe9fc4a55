"""What could change the answer: each caveat that can be counted in, with what the answer becomes."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from study.analysis.answers.answer import Answer
from study.analysis.answers.context import Context, capital
from study.analysis.answers.fastest import Fastest
from study.analysis.answers.group import Group
from study.analysis.answers.switches import Switches
from study.analysis.answers.ways import Ways
from study.analysis.words import short
from study.artifacts.setting import Setting
from study.base.strict import Strict

MOST = 2
"""Changes that are open; the others are counted."""
Means = Mapping[str, float]
"""The mean seconds of each level of a group, by its label."""


class Change(Strict):
    """One caveat with which the answer changes."""

    cause: str
    becomes: str


@runtime_checkable
class Counted(Protocol):
    """A caveat that can be counted in."""

    def text(self) -> str:
        """Return the caveat in words."""

    def applied(self, group: Group) -> Means | None:
        """Return the means of a group with the caveat counted in; None where it does not concern the group."""


def changes_of(context: Context, first: Answer | Switches, caveats: Sequence[object]) -> list[Change]:
    """Return the caveats that change a word or the first digit of the answer, those that change a word first."""
    found = []
    for caveat in caveats:
        if not isinstance(caveat, Counted):
            continue
        means = {group.setting: own for group in context.groups if (own := caveat.applied(group))}
        told = _becomes(context, first, means) if means else None
        if told:
            found.append((told[0], Change(cause=caveat.text(), becomes=told[1])))
    found.sort(key=lambda one: not one[0])
    return [change for _, change in found[:MOST]]


def _becomes(context: Context, first: Answer | Switches, means: Mapping[Setting, Means]) -> tuple[bool, str] | None:
    """Return whether another setting leads, and what the answer becomes; None where it stays as it is."""
    if isinstance(first, Fastest):
        return _leads(context, first, means.get(first.group, {}))
    if isinstance(first, Ways):
        return _ways(context, first, means)
    return None


def _leads(context: Context, first: Fastest, means: Means) -> tuple[bool, str] | None:
    fair = {label: seconds for label, seconds in means.items() if label not in first.unfair}
    if first.machine or not fair or first.level.label not in fair:
        return None
    best = min(fair, key=fair.__getitem__)
    if best != first.level.label:
        return True, f"{capital(context.setting(best))} leads at {short(fair[best])} s."
    old, new = short(first.time.value), short(fair[best])
    return (False, f"{capital(context.setting(best))} takes {new} s, not {old}.") if old[0] != new[0] else None


def _ways(context: Context, first: Ways, means: Mapping[Setting, Means]) -> tuple[bool, str] | None:
    times = {way.group: _least(context, way.group, means) or way.seconds for way in first.ways}
    leader = min(times, key=times.__getitem__)
    if leader != first.ways[0].group:
        return True, f"{capital(context.who(leader))} leads at {short(times[leader])} s."
    other = first.beside
    new, old = short(times[other.group] / times[leader]), short(other.seconds / first.ways[0].seconds)
    return (False, f"It is {new} times as fast, not {old}.") if new != old else None


def _least(context: Context, setting: Setting, means: Mapping[Setting, Means]) -> float | None:
    group = context.group(setting)
    fair = {label: seconds for label, seconds in means.get(setting, {}).items() if group and label not in group.unfair}
    return min(fair.values(), default=None)
