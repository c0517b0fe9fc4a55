"""The published claims beside what a study measured, as values; ``study.analysis.wording.claims`` has the sentences."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from study.analysis.analysis import Analysis
from study.analysis.answers.group import Group, Level
from study.analysis.published.claims import Claim
from study.analysis.stats.gate import WIDEST
from study.analysis.stats.usable import Estimate
from study.analysis.table.exclusions import keys_of
from study.artifacts.setting import Levels, Setting, level_words
from study.config.settings import get
from study.config.study import Study

Evidence = Literal["established", "consistent", "tied", "cannot_say", "contradicted", "mixed"]

Standing = Literal["alone", "among", "slower", "not_learned", "censored", "not_measured", "undecided"]
"""A claimed batch size in one group: alone the fastest, among several that may be, slower than these; no candidate,
because it did not learn or missed the target; without a run that counts; or nothing can be told in this group."""

HELD, AGAINST = ("alone", "among"), ("slower", "not_learned", "censored")


@dataclass(frozen=True)
class RatioHere:
    """The CPU's time over the GPU's at one setting."""

    at: Levels
    """Levels of the other factors; ``single over ddp`` where those of the two sides differ."""
    value: float
    low: float | None
    high: float | None
    """Bounds of the 95% interval; None without one."""
    within: bool | None
    """Whether the claimed ratio lies within the interval; None where that says nothing: there is no interval, or it
    holds the claim because it is wider than a factor of ten."""


@dataclass(frozen=True)
class FastestHere:
    """The batch sizes that may be the fastest in one group, and where the claimed one stands."""

    group: Setting
    candidates: tuple[str, ...]
    """Batch sizes that may be the fastest, by rising size; none where nothing can be told."""
    standing: Standing


@dataclass(frozen=True)
class ShareHere:
    """The speed of another batch size in one group, as a percentage of that of the claimed one."""

    size: str
    percent: float
    outside: bool
    """Whether the whole 95% interval lies outside the claimed percentages."""


@dataclass(frozen=True)
class ClaimVerdict:
    """A published claim, and what a study says of it."""

    claim: Claim
    evidence: Evidence
    ratios: tuple[RatioHere, ...] = ()
    """Of a claimed ratio."""
    groups: tuple[FastestHere, ...] = ()
    """Of a claimed batch size: the groups on the claim's device."""
    shares: tuple[ShareHere, ...] = ()
    """What the other batch sizes reach of its speed there, where the means of both are determined."""
    reduced: bool = False
    """Whether the study was measured at its reduced size, which does less work than the document."""


def verdicts(claims: Sequence[Claim], study: Study, analysis: Analysis) -> list[ClaimVerdict]:
    """Return what a study says of each claim that it can speak to; ``evidence_of_*`` have the rules.

    It speaks to the claims of its own document (``claims_of``, else ``published``): to a claimed ratio if it has a CPU
    and a GPU, and to a claimed batch size if its curve is over the batch size on the claim's device.
    """
    document = study.claims_of or study.published
    found = (_verdict(claim, study, analysis) for claim in claims if claim.document == document)
    return [verdict for verdict in found if verdict]


def _verdict(claim: Claim, study: Study, analysis: Analysis) -> ClaimVerdict | None:
    devices, reduced = [str(device) for device in study.factors.get("device", [])], bool(study.full)
    if claim.ratio is not None and {"cpu", "cuda"} <= set(devices):
        ratios = tuple(_here(at, ratio, claim.ratio) for at, ratio in _ratios(claim, study, analysis))
        evidence = evidence_of_ratios([ratio.within for ratio in ratios])
        return ClaimVerdict(claim, evidence, ratios=ratios, reduced=reduced)
    on_curve = study.curve is not None and study.curve.x == "training.batch_size"
    if claim.batch_size is not None and on_curve and claim.device in devices:
        own = [group for group in analysis.groups if group.setting.levels.get("device") == claim.device]
        groups = tuple(_standing(f"{claim.batch_size:g}", group) for group in own)
        evidence = evidence_of_fastest([group.standing for group in groups])
        told = [group for group, here in zip(own, groups, strict=True) if here.standing in (*HELD, "slower")]
        shares = tuple(share for group in told for share in _shares(claim, group))
        return ClaimVerdict(claim, evidence, groups=groups, shares=shares, reduced=reduced)
    return None


def evidence_of_ratios(within: Sequence[bool | None]) -> Evidence:
    """Return the evidence for a claimed ratio from whether it lies within each of our intervals.

    Those without a usable interval (None) say nothing. Of the others: in all of them it is consistent with ours, in
    none it is contradicted, in some it is mixed. Without any it cannot be said. A ratio is never established: an
    interval holds other values, too.
    """
    told = [one for one in within if one is not None]
    if not told:
        return "cannot_say"
    return "consistent" if all(told) else "mixed" if any(told) else "contradicted"


def evidence_of_fastest(standings: Sequence[Standing]) -> Evidence:
    """Return the evidence for a claimed fastest batch size from where it stands in each group on its device.

    Groups in which nothing can be told, or in which it was not measured, say nothing. Of the others: if it is a
    candidate in none, it is contradicted; in some but not in all, it is mixed; in all, but among several in one of
    them, it is tied. If it is alone the fastest in all of them, it is established, or consistent with ours where
    another group says nothing. Without a group that tells, it cannot be said.
    """
    told = [one for one in standings if one in HELD or one in AGAINST]
    held = [one for one in told if one in HELD]
    if not told:
        return "cannot_say"
    if not held:
        return "contradicted"
    if len(held) < len(told):
        return "mixed"
    if "among" in held:
        return "tied"
    return "established" if len(told) == len(standings) else "consistent"


def _here(at: Levels, ratio: Estimate, claimed: float) -> RatioHere:
    within = None
    if ratio.low is not None and ratio.high is not None:
        within = ratio.low <= claimed <= ratio.high
        within = None if within and ratio.high > WIDEST * ratio.low else within
    return RatioHere(at=at, value=ratio.value, low=ratio.low, high=ratio.high, within=within)


def _ratios(claim: Claim, study: Study, analysis: Analysis) -> Iterator[tuple[Levels, Estimate]]:
    """Yield our ratios of the CPU's time over the GPU's at the claim's own settings, each with its setting."""
    if study.contrast == "device":
        for ratio in analysis.ratios:
            if (ratio.slower, ratio.faster) == ("cpu", "cuda") and _same(ratio.at.levels, claim.faster):
                yield ratio.at.levels, ratio.ratio
    elif study.curve is None:
        yield from _between_groups(claim, study, analysis)


def _same(at: Levels, claimed: Levels) -> bool:
    """Return whether levels are the claimed ones, as far as both name the same factors."""
    return all(level_words(key, level) == level_words(key, claimed[key]) for key, level in at.items() if key in claimed)


def _between_groups(claim: Claim, study: Study, analysis: Analysis) -> Iterator[tuple[Levels, Estimate]]:
    """Yield the ratio of the claim's two settings in a study whose groups are the devices, if both were measured."""
    keys = keys_of(study)[0]
    cpu, gpu = (
        {key: level_words(key, side[key] if key in side else get(study, key)) for key in keys}
        for side in (claim.slower, claim.faster)
    )
    slower, faster = _time(analysis, "cpu", cpu), _time(analysis, "cuda", gpu)
    if slower and faster:
        at = {key: cpu[key] if cpu[key] == gpu[key] else f"{cpu[key]} over {gpu[key]}" for key in keys}
        yield at, _over(slower, faster)


def _time(analysis: Analysis, device: str, words: Mapping[str, str]) -> Estimate | None:
    """Return the mean time of a setting on a device, from the words of its levels; None where it was not measured."""
    groups = [group for group in analysis.groups if group.setting.levels.get("device") == device]
    levels = (level for group in groups for level in group.levels)
    return next((one.time for one in levels if _same(one.setting.levels, words)), None)


def _over(slower: Estimate, faster: Estimate) -> Estimate:
    """Return the ratio of two means, its interval from theirs, as of independent log means (Zou and Donner 2008)."""
    value = slower.value / faster.value
    if slower.low is None or slower.high is None or faster.low is None or faster.high is None:
        return Estimate(value=value, low=None, high=None)
    down = math.hypot(math.log(slower.value / slower.low), math.log(faster.high / faster.value))
    up = math.hypot(math.log(slower.high / slower.value), math.log(faster.value / faster.low))
    return Estimate(value=value, low=value * math.exp(-down), high=value * math.exp(up))


def _shares(claim: Claim, group: Group) -> Iterator[ShareHere]:
    """Yield the share of the claimed batch size's speed that each other one reaches, if the claim says what it is."""
    times = {level.label: level.time for level in group.levels if level.time and not level.undetermined}
    own = times.pop(f"{claim.batch_size:g}", None)
    if claim.rest is None or own is None:
        return
    low, high = claim.rest
    for size, time in times.items():
        share = _over(own, time)
        if share.low is not None and share.high is not None:
            yield ShareHere(size, 100 * share.value, 100 * share.high < low or 100 * share.low > high)


def _standing(size: str, group: Group) -> FastestHere:
    """Return where a batch size stands in a group, and the batch sizes that may be the fastest there."""
    standing = _place(size, group, {level.label: level for level in group.levels})
    told = standing != "undecided" and group.best is not None
    candidates = [level.label for level in group.levels if told and level.label in group.indistinguishable]
    return FastestHere(group.setting, tuple(candidates), standing)


def _place(size: str, group: Group, levels: Mapping[str, Level]) -> Standing:
    if size not in levels or levels[size].time is None:
        return "not_measured"
    if size in group.unfair:
        return group.unfair[size]
    timed = [level for level in levels.values() if level.time]
    told = group.best is not None and group.optimum is not None and group.machine is None and len(timed) > 1
    if not told or levels[size].undetermined:
        return "undecided"
    if size not in group.indistinguishable:
        return "slower"
    return "alone" if len(group.indistinguishable) == 1 else "among"
