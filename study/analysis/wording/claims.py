"""What a study says of a published claim, in words: the headline of a card, and its text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from study.analysis.wording.sources import citation
from study.analysis.words import agreeing, at_setting, device_words, group_names, listed, number, on_device, plain
from study.artifacts.setting import Setting

if TYPE_CHECKING:
    from study.analysis.published.claims import Claim
    from study.analysis.published.measured import ClaimVerdict, FastestHere, RatioHere

LONGEST = 40
"""Letters of a headline."""
OPEN = "Not confirmed"
"""The head of a headline that no evidence word says."""
WHY_NOT = {
    "not_learned": "did not learn as others did, and is no candidate",
    "censored": "missed the target accuracy, and is no candidate",
    "not_measured": "was not measured",
}
TODO = "To decide it, make more runs of each setting (`replicates`) on a quiet machine."
SILENT = "Nothing was measured in this study that speaks to it."
REDUCED = "This is the reduced size, which does less work than the document."


@dataclass(frozen=True)
class ClaimRow:
    """A claim beside what was measured, with one of three words."""

    claim: str
    measured: str
    word: Literal["holds", "contradicted", "not decided"]
    note: str
    source: str


def claim_row(verdict: "ClaimVerdict") -> ClaimRow:
    """Return a claim as a row of the first screen."""
    words: dict[str, Literal["holds", "contradicted"]] = {
        "established": "holds",
        "consistent": "holds",
        "contradicted": "contradicted",
    }
    note, text = claim_words(verdict)
    return ClaimRow(
        claim_title(verdict.claim),
        text,
        words.get(verdict.evidence, "not decided"),
        note,
        citation(verdict.claim.source, verdict.claim.place),
    )


def claim_title(claim: "Claim") -> str:
    """Return the claim in a few words."""
    if claim.ratio is not None:
        return f"The GPU is {plain(claim.ratio)} times as fast as the CPU"
    return f"Batch size {_size(claim)} is the optimum"


def claim_headline(verdict: "ClaimVerdict") -> str:
    """Return the verdict in 40 letters or fewer; its head is the evidence."""
    full, short = _ratio_headline(verdict) if verdict.claim.ratio is not None else _fastest_headline(verdict)
    return full if len(full) <= LONGEST else short


def claim_words(verdict: "ClaimVerdict") -> tuple[str, str]:
    """Return the headline without the evidence, which a card shows by itself, and the text."""
    headline = claim_headline(verdict)
    head, _, rest = headline.partition(": ")
    told = headline if head == OPEN else rest or headline
    return f"{told[0].upper()}{told[1:]}", claim_text(verdict)


def claim_text(verdict: "ClaimVerdict") -> str:
    """Return what was measured and what follows for the claim, in a few sentences."""
    told = _ratio_text(verdict) if verdict.claim.ratio is not None else _fastest_text(verdict)
    return " ".join([*told, *([REDUCED] if verdict.reduced else [])])


def _each(count: int, holds: bool) -> str:
    if count == 2:
        return "both intervals" if holds else "neither interval"
    return f"each of the {count} intervals" if holds else f"none of the {count} intervals"


def _size(claim: "Claim") -> str:
    return f"{claim.batch_size:g}"


def _ratio_headline(verdict: "ClaimVerdict") -> tuple[str, str]:
    """Return the headline on a ratio, and one that always fits."""
    claimed, values = plain(verdict.claim.ratio or 0), [one.value for one in verdict.ratios]
    ours = listed([number(value) for value in values]) if len(values) in (1, 2) else ""
    if len(values) > 2:
        ours = f"{number(min(values))} to {number(max(values))}"
    if verdict.evidence == "contradicted" and len(values) == 1:
        return f"Contradicted here: {ours} times, not {claimed}", "Contradicted here"
    if verdict.evidence == "contradicted":
        return f"Contradicted: {ours}, not {claimed}", "Contradicted here"
    if verdict.evidence == "consistent":
        return f"Consistent with {claimed}: {ours} here", "Consistent with what is measured here"
    if verdict.evidence == "mixed":
        holds = sum(one.within is True for one in verdict.ratios)
        return f"Depends: {claimed} holds in {holds} of {len(values)} cases", "Depends on the setting"
    if not values:
        return "Cannot say: not both were measured", "Cannot say"
    return f"Cannot say: {ours}, no interval", "Cannot say: no interval"


def _ratio_text(verdict: "ClaimVerdict") -> list[str]:
    if not verdict.ratios:
        return ["The CPU's time and the GPU's were not both measured at the claim's settings."]
    ours = "; ".join(_ratio(one, place == 0) for place, one in enumerate(verdict.ratios))
    claimed, told = plain(verdict.claim.ratio or 0), [one for one in verdict.ratios if one.within is not None]
    holds = [one for one in told if one.within]
    if all(one.low is None for one in verdict.ratios):
        each = listed([f"{number(one.value)} times {at_setting(one.at)}".rstrip() for one in verdict.ratios])
        ours = f"{each}, {'both ' * (len(verdict.ratios) == 2)}without an interval"
    if not told:
        return [f"{ours}.", f"{claimed} is neither confirmed nor contradicted.", TODO]
    if len(told) == 1:
        where = "this interval" if len(verdict.ratios) == 1 else f"the interval {at_setting(told[0].at)}"
        return [f"{ours}.", f"{claimed} lies {'within' if holds else 'outside'} {where}."]
    if holds and len(holds) < len(told):
        return [f"{ours}.", f"{claimed} lies in the interval {listed([at_setting(one.at) for one in holds])} alone."]
    return [f"{ours}.", f"{claimed} lies in {_each(len(told), bool(holds))}."]


def _ratio(one: "RatioHere", first: bool) -> str:
    """Return a ratio with its interval and its setting; the first names the interval's level."""
    words = f"{number(one.value)} times"
    words += " (no interval)" if one.low is None else f" ({'95%: ' * first}{_bounds(one)})"
    return f"{words} {at_setting(one.at)}".rstrip()


def _bounds(one: "RatioHere") -> str:
    return "none" if one.low is None or one.high is None else f"{number(one.low)} to {number(one.high)}"


def _fastest_headline(verdict: "ClaimVerdict") -> tuple[str, str]:
    """Return the headline on a batch size, and one that always fits."""
    size, held = _size(verdict.claim), [one for one in verdict.groups if one.standing in ("alone", "among")]
    others = list(dict.fromkeys(name for one in held for name in one.candidates if name != size))
    if verdict.evidence == "tied":
        return f"{OPEN}: {listed(others)} may be as fast", f"{OPEN}: {len(others)} others may be as fast"
    told = [one for one in verdict.groups if one.standing not in ("undecided", "not_measured")]
    absent = f": no run on {device_words(verdict.claim.device or '', article=True)}"
    return {
        "established": f"Established here: {size} is the fastest",
        "consistent": f"Consistent: {size}, where it can be told",
        "contradicted": f"Contradicted here: {size} is not fastest",
        "mixed": f"Depends: {size} holds in {len(held)} of {len(told)} cases",
        "cannot_say": f"Cannot say{' which size is the fastest' if verdict.groups else absent}",
    }[verdict.evidence], verdict.evidence.replace("_", " ").capitalize()


def _fastest_text(verdict: "ClaimVerdict") -> list[str]:
    if not verdict.groups:
        device = device_words(verdict.claim.device or "", article=True)
        return [f"The claim is of {device}, and no run was made on {device}."]
    alike: dict[str, list[FastestHere]] = {}
    for one in verdict.groups:
        alike.setdefault(_stands(_size(verdict.claim), one), []).append(one)
    names = group_names([one.group for one in verdict.groups])
    found = [f"{_places(groups, names)} {words}." for words, groups in alike.items()]
    return [*found, *_shares(verdict), *([TODO] if verdict.evidence == "cannot_say" else [])]


def _shares(verdict: "ClaimVerdict") -> list[str]:
    """Return whether the others reach the share of its speed that is claimed; nothing where that cannot be said."""
    if verdict.claim.rest is None or not verdict.shares:
        return []
    found, claimed = (
        [one.percent for one in verdict.shares],
        " to ".join(f"{plain(one)}%" for one in verdict.claim.rest),
    )
    here = " to ".join(dict.fromkeys(f"{number(one)}%" for one in (min(found), max(found))))
    outside = sorted({one.size for one in verdict.shares if one.outside}, key=float)
    if outside:
        lie = agreeing(len(outside), "lies", "lie")
        sizes = f"{listed(outside)} {lie} outside (95%)"
        return [f"What it says of the others is contradicted: they reach {here} of its speed, not {claimed}; {sizes}."]
    return [f"The others reach {here} of its speed, which does not contradict {claimed}."]


def _places(groups: Sequence["FastestHere"], names: Mapping[Setting, Setting]) -> str:
    """Return the places of groups, to begin a sentence."""
    first, *others = [on_device(names.get(one.group, one.group)) for one in groups]
    return listed([first, *(f"{place[0].lower()}{place[1:]}" for place in others)])


def _stands(size: str, one: "FastestHere") -> str:
    """Return where the claimed batch size stands in a group, to follow the group's place."""
    others = [name for name in one.candidates if name != size]
    may = f"; {listed(others)} may be the fastest (95%)" if others else ""
    if one.standing == "alone":
        return f"{size} alone may be the fastest (95%)"
    if one.standing == "among":
        return f"{size} cannot be told from {listed(others)} (95%)"
    if one.standing == "slower":
        return f"{size} is slower by more than the noise{may}"
    if one.standing == "undecided":
        return "the data do not show which is the fastest"
    return f"{size} {WHY_NOT[one.standing]}{may}"
