"""The verdicts of the first screen: a heading, an evidence word, a few words of answer, and one or two sentences."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Literal

from study.analysis.analysis import Group
from study.analysis.stats import findings
from study.analysis.stats.findings import Answer, RatioAt
from study.analysis.wording.answer import (
    answer_sentence,
    behind_sentence,
    interval_words,
    known_ties,
    others_sentence,
    unknown_sentence,
    way_name,
)
from study.analysis.wording.qualified import FEW, SEEN, named, qualified_by
from study.analysis.words import (
    accuracy_words,
    agreeing,
    at_setting,
    briefly,
    device_words,
    group_names,
    listed,
    number,
    place_words,
    short_key,
)
from study.artifacts.setting import Setting

Names = Mapping[Setting, Setting]
"""The short setting of each group."""
EvidenceWord = Literal["established", "consistent", "tied", "cannot_say", "contradicted", "mixed", "measured"]
SIGNS: dict[EvidenceWord, tuple[str, str]] = {
    "established": ("✓", "established"),
    "consistent": ("≈", "consistent"),
    "tied": ("=", "tied"),
    "cannot_say": ("?", "cannot say"),
    "contradicted": ("✗", "contradicted"),
    "mixed": ("±", "mixed"),
    "measured": ("•", "measured"),
}
"""The sign and the words of each; a sign tells without colour."""
WORTH_FOLDING = 60
"""Letters from which what changes no decision is folded."""
WARM_UP = "start-up of the graphs"
"""The part of a time in which captured steps are warmed up, once for each shape of a batch."""
MUCH = 0.2
"""The share of a time from which it is said that its start-up is paid once."""
REST = "the rest"
"""What is left of the named parts of a time."""


@dataclass(frozen=True)
class Card:
    """One verdict."""

    heading: str
    evidence: EvidenceWord
    answer: str
    text: str
    why: str = ""
    """Why there is no answer, in a few words."""
    claim: bool = False
    """Whether it is on a published claim."""
    more: str = ""
    """Sentences that are folded: they change no decision."""


def cards(
    answers: Sequence[Answer], groups: Sequence[Group] = (), margin: float = 0.0, decoded: bool = False
) -> list[Card]:
    """Return a card for each statement of a study's answer; several groups are told apart in the headings.

    ``groups`` tell what stands behind the answer; ``margin`` is the accuracy by which a setting may fall short.
    ``decoded``: whether images on the device were decoded before the clock started, and others by it.
    """
    places = [group.setting for group in groups] + [getattr(answer, "group", None) for answer in answers]
    names = group_names([place for place in places if place])
    unknown = {level.undetermined for group in groups for level in group.levels if level.undetermined}
    found = []
    for answer in answers:
        if isinstance(answer, findings.Contrast):
            found.append(contrast_card(answer, unknown))
            continue
        told, qualified = card(answer, names), qualified_by(answer, answers, groups, margin, decoded)
        text, more = " ".join([told.text, *qualified.open]), " ".join(filter(None, [told.more, *qualified.folded]))
        told = replace(told, text=text, more=more, answer=told.answer + qualified.ties)
        found.append(told if len(told.more) > WORTH_FOLDING else _whole(told))
    return found


def _whole(told: Card) -> Card:
    """Return the card with all of its sentences open."""
    return replace(told, text=" ".join(filter(None, (told.text, told.more))), more="")


def first_cards(cards: Sequence[Card]) -> list[Card]:
    """Return the two verdicts to read first: the answer, and that on the published claim if there is one."""
    return [*cards[:1], *sorted(cards[1:], key=lambda card: not card.claim)[:1]]


@singledispatch
def card(answer: Answer, names: Names) -> Card:
    """Return the card of one statement. ``names`` are those of the study's groups, if it has several."""
    raise NotImplementedError(f"no card for {type(answer).__name__}")


def _heading(text: str, group: Setting | None, names: Names) -> str:
    return f"{text}, {place_words(names[group])}" if group and group in names else text


@card.register
def _nothing_succeeded(answer: findings.NothingSucceeded, names: Names) -> Card:
    return Card(_heading("Answer", answer.group, names), "cannot_say", "No answer yet", answer_sentence(answer))


@card.register
def _ways(answer: findings.Ways, names: Names) -> Card:
    first, bounds = answer.ways[0], [way.times for way in answer.ways if way.times]
    evidence: EvidenceWord = "established" if all(bound.low and bound.low > 1 for bound in bounds) else "tied"
    if any(bound.low is None for bound in bounds):
        evidence = "cannot_say"
    text = f"{number(first.seconds)} s; {others_sentence(answer)}"
    return Card("Fastest of all", evidence, way_name(answer, first), text)


@card.register
def _combination(answer: findings.Combination, names: Names) -> Card:
    times = answer.times_as_fast
    sure = times.low is not None and times.low > 1
    evidence: EvidenceWord = "established" if sure else "cannot_say" if times.low is None else "tied"
    told = f"{number(times.value)} times as fast"
    return Card(_heading("Best combination", answer.group, names), evidence, told, answer_sentence(answer))


@card.register
def _only_level(answer: findings.OnlyLevel, names: Names) -> Card:
    text = f"{interval_words(answer.time)}{accuracy_words(answer.accuracy)}. Nothing is compared.".lstrip()
    return Card(_heading("Time", answer.group, names), "measured", f"{number(answer.time.value)} s", text)


@card.register
def _cannot_say(answer: findings.CannotSay, names: Names) -> Card:
    heading, why = _heading("Use", answer.group, names), dict.fromkeys(answer.reasons.values())
    short = "; ".join(SHORT_WHY[reason] for reason in why)
    return Card(heading, "cannot_say", "No answer yet", answer_sentence(answer), short)


SHORT_WHY = {
    "few_runs": "too few clean runs",
    "one_block": "all runs in one block",
    "outside_runs": "the machine changed",
    "wide_interval": "the times differ too much",
    "not_learned": "not shown to have learned",
    "censored": "the target was missed",
}
"""Why nothing can be said of a setting, for a table."""


@card.register
def _fastest(answer: findings.Fastest, names: Names) -> Card:
    heading = _heading("Use" if answer.factor else "Fastest", answer.group, names)
    if answer.machine:
        return Card(heading, "cannot_say", "No answer yet", _machine(answer), "the machine changed")
    name = f"{short_key(answer.factor)} {answer.level.label}" if answer.factor else answer.level.label
    told = [f"{number(answer.time.value)} s{interval_words(answer.time)}{accuracy_words(answer.accuracy)}."]
    tied, more = known_ties(answer), []
    open_levels = [level for level in tied if level not in answer.equivalent]
    same = [level for level in tied if level in answer.equivalent]
    if open_levels:
        told.append(f"{named(open_levels)} may be as fast: the difference is within noise.")
    if same:
        told.append(f"{named(same)} {agreeing(len(same), 'takes', 'take')} the same time within the study's margin.")
    if tied:
        name += f" (or {named(tied)})"
        more += [f"As fast as far as can be told: {briefly(tied)}."] if named(tied) != listed(tied) else []
    told, more = told + _doubts(answer), more + _others(answer)
    return Card(heading, "tied" if answer.tied else "established", name, " ".join(told), more=" ".join(more))


def _machine(answer: findings.Fastest) -> str:
    """Return why a machine that changed leaves no answer, and what to do."""
    change = f"This machine's own speed changed {answer.machine_change or 1:.1f}-fold during the runs"
    why = {
        "explains": "and no difference between the settings is left once that is accounted for",
        "unclear": "and the runs are too few to tell its part in the differences",
    }[str(answer.machine)]
    return f"{change}, {why}. Close other programs and run again."


def _doubts(answer: findings.Fastest) -> list[str]:
    told = _sentence(unknown_sentence(answer))
    for reason, words in (
        ("not_learned", "not shown to have learned as well"),
        ("censored", "the target accuracy was missed"),
    ):
        if names := [level for level, why in answer.unfair.items() if why == reason]:
            told.append(f"Avoid {briefly(names)}: {words}.")
    return told


def _sentence(words: str) -> list[str]:
    """Return words with a capital letter and a full stop; nothing where there are none."""
    return [f"{words[0].upper()}{words[1:]}."] if words else []


def _others(answer: findings.Fastest) -> list[str]:
    told = []
    if answer.slower:
        slower = listed(answer.slower) if len(answer.slower) <= FEW else f"The {len(answer.slower)} others"
        told.append(f"{slower} {agreeing(len(answer.slower), 'is', 'are')} slower.")
    told += _sentence(behind_sentence(answer))
    if answer.missing:
        told.append(f"{briefly(answer.missing)} {agreeing(len(answer.missing), 'has', 'have')} no run that counts.")
    return told


def contrast_card(answer: findings.Contrast, unknown: Collection[str] = ()) -> Card:
    """Return the card of a contrast; ``unknown`` are the reasons for which means of the study are not determined."""
    least, most = answer.least, answer.most
    heading = f"{_side(answer.contrast, answer.slower)} over {_side(answer.contrast, answer.faster)}"
    one = least == most
    told = f"{number(least.ratio.value)} times" if one else _range(least, most)
    shown = [least] if one else [least, most]
    text = listed([_ratio(ratio) for ratio in shown])
    bounds = [ratio.together for ratio in shown]
    if answer.explained or answer.unclear:
        return Card(heading, "cannot_say", told, f"{text}. The machine changed meanwhile.")
    if any(bound.low is None for bound in bounds):
        none = "no interval" if all(bound.low is None for bound in bounds) else "an interval for one of them alone"
        why = "fewer than three clean runs" if set(unknown) <= {"few_runs"} else "a mean is not determined"
        return Card(heading, "cannot_say", told, f"{text}, {none}: {why}.")
    sure = all((bound.low or 0) > 1 or (bound.high or 2) < 1 for bound in bounds)
    return Card(heading, "established" if sure else "tied", told, f"{text}.")


def _side(contrast: str, level: str) -> str:
    return device_words(level) if contrast == "device" else f"{short_key(contrast)} {level}"


def _range(least: RatioAt, most: RatioAt) -> str:
    return f"{number(least.ratio.value)} to {number(most.ratio.value)} times"


def _ratio(ratio: RatioAt) -> str:
    times = f"{number(ratio.slower_seconds)} s over {number(ratio.faster_seconds)} s"
    bounds = "" if ratio.together.low is None else f"{interval_words(ratio.together)[2:-1]}; "
    return f"{number(ratio.ratio.value)} times {at_setting(ratio.at.levels)}".rstrip() + f" ({bounds}{times})"


@card.register
def _no_ratio(answer: findings.NoRatio, names: Names) -> Card:
    heading = f"{_side(answer.contrast, answer.slower)} over {_side(answer.contrast, answer.faster)}"
    return Card(heading, "cannot_say", "No answer yet", answer_sentence(answer))


@card.register
def _bottleneck(answer: findings.Bottleneck, names: Names) -> Card:
    limits = {"loader": "The loader", "training": "The training", "both": "Both hold each other up"}
    told = limits[answer.limit] if answer.limit else "No answer yet"
    at = place_words(answer.at) if answer.at.levels else ""
    heading = f"What limits it, {at}" if at else "What limits it"
    return Card(heading, "established" if answer.limit else "cannot_say", told, answer_sentence(answer))


@card.register
def _null_control(answer: findings.NullControl, names: Names) -> Card:
    if not answer.intervals:
        return Card("Null control", "cannot_say", "No interval", answer_sentence(answer))
    fair = answer.outside <= max(1, answer.intervals // 10)
    told = f"{answer.outside} of {answer.intervals} intervals exclude 1"
    return Card("Null control", "consistent" if fair else "contradicted", told, answer_sentence(answer))


PAID_ONCE = " The start-up is paid once: a longer training gains more, and its best setting may be another."


def limit_card(label: str, shares: dict[str, float]) -> Card:
    """Return what takes the time of the setting ``label``, from the share of each part of its training time."""
    ordered = sorted(shares.items(), key=lambda part: -part[1])
    parts = [(name, share) for name, share in ordered[:FEW] if share >= SEEN and name != REST]
    if (left := 1 - sum(share for _, share in parts)) >= SEEN:
        parts.append((REST, left))
    told = ", ".join(f"{name} {share:.0%}" for name, share in parts)
    first, label = ordered[0][0], f"{label[0].upper()}{label[1:]}"
    advice = {
        "waiting for data": " Fix the loader before tuning anything else.",
        "validation": " Validate less often to train faster.",
    }.get(first, "")
    if any(name.startswith(WARM_UP) and share >= MUCH for name, share in shares.items()):
        advice = PAID_ONCE
    return Card(
        "What takes the time",
        "measured",
        f"{first[0].upper()}{first[1:]}",
        f"{label}: {told}.{advice}",
    )
