"""What a reader must know beside a verdict: accuracies, ties, far runs that decide, and what a clock leaves out."""

from collections.abc import Sequence
from dataclasses import dataclass

from study.analysis.analysis import Group
from study.analysis.stats import findings
from study.analysis.stats.findings import Answer
from study.analysis.wording.answer import known_ties
from study.analysis.words import agreeing, listed, number, short_key
from study.artifacts.setting import Setting
from study.base.durations import quantity

FEW, SHORT = 3, 40
"""Numbers that are told one by one, and letters of names that are told in full."""
SEEN = 0.005
"""The share of a time, or the difference in accuracy, from which it is named."""
LOADER = "loader.kind"
DECODED = "Its images are decoded before the clock starts, those of the others while it runs: a part of the gain."


@dataclass(frozen=True)
class Qualified:
    """Sentences to follow a verdict, those that change no decision apart, and what follows its answer."""

    open: list[str]
    folded: list[str]
    ties: str = ""


def qualified_by(
    answer: Answer, answers: Sequence[Answer], groups: Sequence[Group], margin: float, decoded: bool
) -> Qualified:
    """Return what qualifies one of a study's ``answers``; the other values are those of ``cards``."""
    clock = [DECODED] if decoded and _on_the_device(answer) else []
    if isinstance(answer, findings.Combination):
        return Qualified([*_ties_with(answer, answers), *clock], [])
    if isinstance(answer, findings.Ways):
        tied = _ties_of(answers, answer.ways[0].group, answer.ways[0].level)
        level = short_key(answer.ways[0].factor) if answer.ways[0].factor else "setting"
        told = [f"The way is shown, its {level} is not."] if tied else []
        return Qualified([*told, *clock], [], f" (or {named(tied)})" if tied else "")
    if isinstance(answer, findings.Fastest) and not answer.machine:
        return _of_a_setting(answer, [group for group in groups if group.setting == answer.group], margin)
    return Qualified([], [])


def named(levels: Sequence[str]) -> str:
    """Return the names of levels where they are short, or their number."""
    names = listed(levels)
    return names if len(levels) == 1 or len(names) <= SHORT else f"{len(levels)} others"


def _ties_of(answers: Sequence[Answer], group: Setting, level: Setting) -> list[str]:
    """Return the levels that may be as fast as the fastest of a group."""
    fastest = (one for one in answers if isinstance(one, findings.Fastest) and not one.machine and one.group == group)
    return next((known_ties(one) for one in fastest if one.level == level and one.tied), [])


def _ties_with(answer: findings.Combination, answers: Sequence[Answer]) -> list[str]:
    tied = len(_ties_of(answers, answer.group, answer.best))
    count = f"{tied} other combination{'s' * (tied > 1)}"
    return [f"{count} may be as fast: the gain is shown, not which one is the best."] if tied else []


def _on_the_device(answer: Answer) -> bool:
    """Return whether the images of the best way lie on the device."""
    if isinstance(answer, findings.Ways):
        return "device" in (answer.ways[0].group.levels.get(LOADER), answer.ways[0].level.levels.get(LOADER))
    return isinstance(answer, findings.Combination) and answer.best.levels.get(LOADER) == "device"


def _of_a_setting(answer: findings.Fastest, own: Sequence[Group], margin: float) -> Qualified:
    """Return what the fastest setting of a group lacks in accuracy, and the far runs that decide."""
    told, folded = [], []
    chosen = answer.level.label
    for group in own:
        less = accuracy_sentence(group, chosen, margin)
        far = _behind(group, chosen)[1] > margin
        folded += [] if far else [less]
        told += [_reached(group, answer), less if far else ""]
        told += [tied_accuracy_sentence(group, known_ties(answer), margin), far_sentence(group, chosen)]
    return Qualified([sentence for sentence in told if sentence], folded)


def _accuracies(group: Group) -> dict[str, float]:
    return {level.label: level.accuracy for level in group.levels if level.accuracy is not None}


def _behind(group: Group, chosen: str) -> tuple[str, float]:
    """Return the level with the best accuracy, and by how much that of a chosen one lies below it."""
    known = _accuracies(group)
    best = max(known, key=known.__getitem__, default=chosen)
    return best, known[best] - known[chosen] if chosen in known else 0.0


def accuracy_sentence(group: Group, chosen: str, margin: float) -> str:
    """Return by how much a chosen level's accuracy lies below the best one's; nothing where it does not."""
    best, less = _behind(group, chosen)
    if less < SEEN:
        return ""
    limit = f"the study's limit of {100 * margin:g} points"
    where = f"within {limit}" if less <= margin else f"more than {limit}, but not by more than the noise between runs"
    points = f"{100 * less:.1f} points less accurate than {best} ({_accuracies(group)[best]:.0%})"
    return f"{chosen} is {points}: {where}."


def tied_accuracy_sentence(group: Group, tied: Sequence[str], margin: float) -> str:
    """Return which levels that may be as fast lie below the best accuracy by more than the limit; nothing if none."""
    known = _accuracies(group)
    best = max(known, key=known.__getitem__, default="")
    points = {level: 100 * (known[best] - known[level]) for level in tied if level in known}
    far = {level: less for level, less in points.items() if less > 100 * max(margin, SEEN)}
    if not far:
        return ""
    least, most = (f"{edge(far.values()):.1f}" for edge in (min, max))
    span = least if least == most else f"{least} to {most}"
    who = f"Of those that may be as fast, {listed(list(far))} {agreeing(len(far), 'is', 'are')}"
    if named(list(far)) != listed(list(far)):
        every = len(far) == len(tied)
        who = f"The {len(far)} others that may be as fast are" if every else f"{len(far)} of these others are"
    return f"{who} {span} points less accurate than {best}."


def _reached(group: Group, answer: findings.Fastest) -> str:
    """Return the accuracies of the levels that did not learn as well; nothing where one is not known."""
    known = _accuracies(group)
    lost = [level for level, why in answer.unfair.items() if why == "not_learned"]
    if not lost or len(lost) > FEW or not set(lost) <= set(known):
        return ""
    return f"{agreeing(len(lost), 'It reaches', 'They reach')} {listed([f'{known[level]:.0%}' for level in lost])}."


def far_sentence(group: Group, chosen: str) -> str:
    """Return what a chosen level takes with the far runs that are left out, if it is not the fastest with them."""
    level = next(level for level in group.levels if level.label == chosen)
    others = [one.time.value for one in group.levels if one.time and one is not level and one.label not in group.unfair]
    if not level.time_with_far or level.time_with_far.value <= min(others, default=level.time_with_far.value):
        return ""
    count = level.excluded.get("far", 0)
    runs, them = quantity(count, "far run"), agreeing(count, "it", "them")
    return f"{chosen} is the fastest without {runs}; with {them} the time is {number(level.time_with_far.value)} s."
