"""What could change the answer: each caveat that can be counted in, with what the answer
becomes."""

from collections.abc import Mapping, Sequence
from math import log

from study.analysis.answers import Answer
from study.analysis.answers.context import Context
from study.analysis.answers.contrast import Contrast
from study.analysis.answers.fastest import Fastest
from study.analysis.answers.group import ends_with
from study.analysis.answers.switches import Combination, Switches
from study.analysis.answers.ways import Ways
from study.analysis.caveats import Caveat
from study.analysis.caveats.runs import Unsuccessful
from study.analysis.stats.ratios import Ratio
from study.analysis.words import at_setting, short
from study.artifacts.setting import Setting
from study.base.errors import quantity
from study.base.strict import Strict

MOST = 2
"""Changes that are open; the others are counted."""
Means = Mapping[str, float]
"""The mean seconds of each level of a group, by its label."""

Becomes = tuple[bool, float, str]
"""Whether another setting leads, by how much the time or the ratio changes (its logarithm), and the
answer in words."""


class Change(Strict):
    """One caveat with which the answer changes."""

    cause: str
    becomes: str


def changes_of(
    context: Context, first: Answer | Switches, caveats: Sequence[Caveat]
) -> list[Change]:
    """Return the caveats that change a word or the first digit of the answer, those that change a
    word first."""
    found = []
    for caveat in caveats:
        means = {group.setting: own for group in context.groups if (own := caveat.applied(group))}
        told = _becomes(context, first, means) if means else None
        if told:
            found.append(
                (told[:2], Change(cause=f"{caveat.text()}.", becomes=f"{caveat.IF}, {told[2]}"))
            )
    found.sort(key=lambda one: one[0], reverse=True)
    return [*_missing(context, first, caveats), *(change for _, change in found)][:MOST]


def _missing(context: Context, first: Answer | Switches, caveats: Sequence[Caveat]) -> list[Change]:
    """Return the settings without a run that counts, which could have been the fastest."""
    failed = sum(len(caveat.runs) for caveat in caveats if isinstance(caveat, Unsuccessful))
    if not isinstance(first, Fastest) or not first.missing or not failed:
        return []
    cause = (
        f"{quantity(failed, 'run')} failed, and none of {context.settings(first.missing)} counts."
    )
    return [
        Change(
            cause=cause,
            becomes="It could be the fastest." if len(first.missing) == 1 else "Each could lead.",
        )
    ]


def _becomes(
    context: Context, first: Answer | Switches, means: Mapping[Setting, Means]
) -> Becomes | None:
    if isinstance(first, Fastest):
        return _leads(context, first, means.get(first.group, {}))
    if isinstance(first, Ways):
        return _ways(context, first, means)
    if isinstance(first, Switches):
        return _together(context, first.combination, means) if first.combination else None
    return _ratios(context, first, means) if isinstance(first, Contrast) else None


def _together(
    context: Context, best: Combination, means: Mapping[Setting, Means]
) -> Becomes | None:
    own = means.get(best.group, {})
    ends = [
        (context.seconds(best.group, label), label) for label in (best.base.label, best.best.label)
    ]
    slow, fast = (own.get(label, seconds or 0.0) for seconds, label in ends)
    before, now = short(best.times_as_fast.value), short(slow / fast) if fast else ""
    if not now or now == before:
        return None
    return (
        False,
        abs(log(slow / fast / best.times_as_fast.value)),
        f"they are {now} times as fast together.",
    )


def _leads(context: Context, first: Fastest, means: Means) -> Becomes | None:
    fair = {label: seconds for label, seconds in means.items() if label not in first.unfair}
    if first.machine or not fair:
        return None
    best = min(fair, key=fair.__getitem__)
    change = abs(log(fair[best] / first.time.value))
    if best != first.level.label:
        return True, change, f"{context.setting(best)} leads at {short(fair[best])} s."
    old, new = short(first.time.value), short(fair[best])
    if old[0] == new[0] and change < log(2):
        return None
    return False, change, f"{context.setting(best)} takes {new} s."


def _ways(context: Context, first: Ways, means: Mapping[Setting, Means]) -> Becomes | None:
    times = {way.group: _least(context, way.group, means) or way.seconds for way in first.ways}
    leader = min(times, key=times.__getitem__)
    other = first.beside
    now, before = times[other.group] / times[leader], other.seconds / first.ways[0].seconds
    change = abs(log(now / before))
    if leader != first.ways[0].group:
        return True, change, f"{context.who(leader)} leads at {short(times[leader])} s."
    new, old = short(now), short(before)
    return (False, change, f"it is {new} times as fast.") if new != old else None


def _least(context: Context, setting: Setting, means: Mapping[Setting, Means]) -> float | None:
    group = context.group(setting)
    fair = {
        label: seconds
        for label, seconds in means.get(setting, {}).items()
        if group and label not in group.unfair
    }
    return min(fair.values(), default=None)


def _ratios(context: Context, first: Contrast, means: Mapping[Setting, Means]) -> Becomes | None:
    """Return the ratio that changes most: its part is that of the ratio of the means."""
    found = []
    for one in (first.least, first.most):
        pair = [
            _side(context, first.contrast, side, one, means)
            for side in (first.slower, first.faster)
        ]
        if all(pair):
            (slow, slow_before), (fast, fast_before) = (side for side in pair if side)
            part = slow / fast * fast_before / slow_before
            old, new = short(one.ratio.value), short(one.ratio.value * part)
            words = f"it is {new} times as fast {at_setting(one.at)}".rstrip() + "."
            found += [(False, abs(log(part)), words)] if new != old else []
    return max(found, default=None)


def _side(
    context: Context, contrast: str, side: str, ratio: Ratio, means: Mapping[Setting, Means]
) -> tuple[float, float] | None:
    """Return the mean at one side of a ratio as it becomes, and as it is."""
    found = ends_with(context.study, context.groups, ratio.at.levels | {contrast: side})
    if not found:
        return None
    end, now = found[0], found[0].time.value
    return means.get(end.group.setting, {}).get(end.level.label, now), now
