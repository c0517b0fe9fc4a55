"""A claim beside what was measured here: the same quantity with its interval, ours over theirs, and
one word."""

import math
from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial
from itertools import chain, pairwise, product
from typing import NamedTuple

import pandas as pd

from study.analysis.answers.compared import Claimed, MeasuredStudy, Quantity, Word, told_of
from study.analysis.answers.group import TimedSetting, group_of
from study.analysis.groups import groups_of
from study.analysis.ratios import overalls_of, ratios_of
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.learning import accuracy_of
from study.analysis.stats.noise import ROUNDING
from study.analysis.stats.usable import model_of
from study.analysis.words import at_setting, clear_of, listed, number, short
from study.artifacts.setting import Levels, setting_of
from study.base.errors import quantity
from study.base.strict import Strict
from study.config.claims import CLOCKS, Claim, ClaimedShare, Clock, Source
from study.config.study import Study
from study.config.times import STEPS, TIMES

MOST_WORDS = 18
"""Of what was measured."""
BY_CHANCE = 1.645
"""Standard errors that one of twenty exceeds, to one side."""
BIASED = 0.5
"""Share of the margin from which a clock that holds start-up cannot judge a claim."""


class Mark(Strict):
    """Where a claim puts a level of a group."""

    group: str
    level: str
    seconds: float


class ClaimRow(Strict):
    """One claim at one setting, with its verdict: a row of the first screen."""

    claim: str
    """The claim's words."""
    here: Estimate | None
    """The same quantity here with its 95% interval; null where it was not measured."""
    over: Estimate | None
    """Ours over theirs with the 90% interval that decides, of an accuracy ours less theirs; null
    where the claim is no number."""
    points: bool
    """Whether it is an accuracy."""
    within: float
    """The margin: a share, of an accuracy a difference."""
    measured: str
    """What was measured in words."""
    word: Word
    note: str
    """Why no more can be told, or what the word does not say."""
    better: str
    """What another time tells of a claim on which this one cannot; else nothing."""
    grade: str
    """`A`: the same job as the source's, `B`: one difference, `C`: another job."""
    differs: list[str]
    """What was done otherwise there."""
    source: str
    """Where the claim stands, and what was measured there."""
    address: str | None
    """The web address of its source."""
    marks: list[Mark]
    """Where the claim puts rows of the chart of times."""

    @property
    def quotient(self) -> str:
        """Ours over theirs in words, with digits that bear the word; nothing without a number."""
        if self.over is None:
            return ""
        known = [self.over.value, *(self.over.bounds or ())]
        if self.points:
            known = [100 * one for one in known]
            edges, told = (-100 * self.within, 100 * self.within), [f"{one:+.1f}" for one in known]
        else:
            edges = 1 / (1 + self.within), 1 + self.within
            told = [short(one, like=known[0]) for one in known]
        if len({*told[1:]}) == 1:  # so narrow that two digits tell nothing of it
            told = [number(one) for one in known]
        value, *ends = (clear_of(one, edges, text) for one, text in zip(known, told, strict=True))
        return f"{value} (90%: {' to '.join(ends)})" if ends else value


class _Found(NamedTuple):
    """What was measured at one setting: the row without the claim."""

    at: Levels
    word: Word
    measured: str
    here: Estimate | None = None
    over: Estimate | None = None
    note: str = ""
    better: str = ""
    marks: tuple[Mark, ...] = ()
    brief: str = ""
    """What was measured, where the place leaves no room for all of it."""


class Judge(MeasuredStudy):
    """What a study measured, before which its claims are brought."""

    @classmethod
    def of(cls, study: Study, frame: pd.DataFrame) -> "Judge":
        """Return the judge of a study's marked table of timings."""
        fitted = groups_of(study, frame)
        overalls = overalls_of(study, fitted, study.contrast)
        groups = [group_of(study, group) for group in fitted]
        return cls(study, fitted, groups, overalls, ratios_of(study, fitted, overalls))

    def at_clock(self, clock: Clock | None) -> "Judge":
        """Return the judge by the time that a claim means; this one where it is that of the
        study."""
        total = self.study.total
        time = CLOCKS[clock] if clock else total
        whole = clock == "whole" and TIMES[total].spans == "training"
        if time == total or whole or self.study.command:
            return self
        curve = self.study.curve and self.study.curve.model_copy(update={"y": time})
        study = self.study.model_copy(update={"curve": curve} if curve else {"time": time})
        return Judge.of(study, pd.concat([group.part for group in self.fitted]))

    def rows(self) -> list[ClaimRow]:
        """Return the rows of every claim; one about a level that the start left out says so."""
        rows = list[ClaimRow]()
        for claim in self.study.claims:
            rows += self.at_clock(claim.clock)._rows(claim)
        return rows

    def _rows(self, claim: Claim) -> Iterator[ClaimRow]:
        left = self.left_out(claim)
        judged = {
            "ratio": self._ratio, "best": self._best, "rank": self._rank, "shares": self._shares,
        }.get(claim.kind, self._value)(claim)  # fmt: skip
        why = f"this start left out {listed(left)}" if left else "no run of this setting counts"
        found = [] if left else [*judged]
        found = found or [_Found({}, "cannot tell", f"Not measured: {why}.")]
        varied = [
            key
            for key in found[0].at
            if key not in claim.at and len({self.words(key, one.at[key]) for one in found}) > 1
        ]
        margin = self._margin(claim)
        printed = []  # in the seconds of the source
        for level, seconds in claim.printed.items():
            key = next(iter(claim.best or claim.of))
            printed += [_mark(end, seconds) for end in self.ends(claim.at | {key: level})]
        for one in found:
            where = at_setting(setting_of(self.study, {key: one.at[key] for key in varied}))
            measured = f"{one.measured} {where}".rstrip()
            if one.brief and len(measured.split()) > MOST_WORDS:
                measured = f"{one.brief} {where}".rstrip()
            other = claim.grade == "C"
            yield ClaimRow(
                claim=claim.claim,
                here=one.here,
                over=one.over,
                points=claim.kind == "accuracy",
                within=_of_ratio(claim, margin).within if claim.ratio else margin,
                measured=measured,
                word="another job" if other else one.word,
                note="" if other else one.note,
                better="" if other else one.better,
                grade=claim.grade,
                differs=claim.differs,
                source=source_line(claim.source, self._less_work),
                address=claim.source.address,
                marks=[] if self._less_work else printed or list(one.marks),
            )

    @property
    def _less_work(self) -> bool:
        """Whether the study does less work at its reduced size."""
        return bool(self.study.full.keys() - {"replicates", "device"})

    def _margin(self, claim: Claim) -> float:
        if claim.kind == "rank":
            return 0.0  # a setting is faster than the next one, or is not
        if claim.within:
            return claim.within
        if claim.kind == "accuracy":
            return self.study.learning_margin
        no_gain = claim.kind == "best" or claim.ratio == 1
        return self.study.equivalence_margin if no_gain else self.study.claim_margin

    def _told(
        self, claim: Claim, claimed: Claimed, found: Quantity, ends: Sequence[TimedSetting]
    ) -> tuple[Word, str]:
        """Return the word for a number about these settings, and what is to be said beside it."""
        word, source = claimed.word(found), claim.source
        models = [self.fitted[end.place].model for end in ends]
        noise = max(model.spreads["noise"] if model else 0.0 for model in models)
        if word in ("less here", "more here"):
            own = source.noise_percent / 100 if source.noise_percent else noise
            chance = BY_CHANCE * own * math.sqrt(len(ends) / source.runs_a_side)
            reach = claimed.reach + chance
            surely = min(abs(claimed.off(one)) for one in found.joint.bounds or (0.0,))
            if source.same_machine and surely > reach:
                return "contradicted", word
            by_chance = not claimed.points and abs(claimed.off(found.here.value)) < reach
            return word, "one run there may be that far off by chance" * by_chance
        if word == "same here" or claimed.points:
            return word, ""
        return word, self._lacks(claimed, found, ends, noise)

    def _lacks(
        self, claimed: Claimed, found: Quantity, ends: Sequence[TimedSetting], noise: float
    ) -> str:
        """Return what would tell, where nothing is told."""
        if found.joint.bounds is None:
            moved = any(end.group.drift_confounded for end in ends)
            few = any(end.level.undetermined for end in ends)
            return "the machine changed as much" if moved else "too few runs" * few
        low, high = found.joint.bounds
        if claimed.off(high) < 0 or claimed.off(low) > 0:
            shown = "less" if claimed.off(high) < 0 else "more"
            return f"{shown} here, but not shown to be by {short(100 * claimed.within)}%"
        blocks = claimed.blocks(noise, len(ends[0].group.timed))
        made = max(end.level.runs for end in ends)
        if blocks is None:
            return "too noisy a machine"
        return f"about {quantity(blocks, 'block')} would tell" if blocks > made else ""

    def _ratio(self, claim: Claim) -> Iterator[_Found]:
        claimed = _of_ratio(claim, self._margin(claim))
        sides = self.ends(claim.at | claim.slower), self.ends(claim.at | claim.faster)
        pairs = [
            (slower, faster)
            for slower, faster in product(*sides)
            if slower.rest(claim.slower) == faster.rest(claim.faster)
        ]
        found = [(self.over(*pair, len(pairs)), pair) for pair in pairs]
        if claim.sense == "up to" and found:
            most, ends = max(found, key=lambda one: one[0].here.value)
            # the best of several is so by chance
            found = [(Quantity(most.here, most.joint, most.joint), ends)]
        for measured, ends in found:
            slower, faster = ends
            word, note = self._told(claim, claimed, measured, ends)
            one = _Found(
                slower.rest(claim.slower),
                word,
                "at most " * (claim.sense == "up to") + told_of(measured.here, " times"),
                measured.here,
                claimed.over(measured.alone),
                note,
                marks=(_mark(faster, slower.time.value / claimed.low),),
            )
            yield self._by_its_clock(claim, claimed, one, ends)

    def _by_its_clock(
        self, claim: Claim, claimed: Claimed, one: _Found, ends: Sequence[TimedSetting]
    ) -> _Found:
        """Return a row that is silent where its time holds so much start-up that a claim about
        steady steps would show as another number: no source said which time it means."""
        if claim.clock or STEPS[0] not in TIMES[self.study.total].parts:  # it holds no start-up
            return one
        columns = [self.study.total, "warm_up_extra_seconds"]
        known = [self._runs(end)[columns].dropna() for end in ends]
        if not all(map(len, known)):
            return one
        (longer, its_start), (shorter, start) = (rows.median() for rows in known)
        work = max(shorter - start, ROUNDING)
        shows = (its_start + claimed.low * work) / (start + work)
        share = (its_start + start) / (longer + shorter)
        hides = abs(math.log(shows / claimed.low)) > BIASED * claimed.reach
        if not hides and one.word != "cannot tell":
            return one
        told = f"start-up is {share:.0%} of this time"
        steady = self.at_clock("steady")._ratio(claim.model_copy(update={"clock": "steady"}))
        same = [found for found in steady if found.at == one.at and found.word != "cannot tell"]
        better = f"{told}. Without it {same[0].measured}: {same[0].word}" if same else ""
        if hides:
            why = f"{told}: {short(claimed.low)} in steady steps would show as {short(shows)}"
            one = one._replace(word="cannot tell", note=why)
        return one._replace(better=better)

    def _runs(self, end: TimedSetting) -> pd.DataFrame:
        """Return the runs of a setting that count."""
        clean = self.fitted[end.place].clean
        return clean[clean["level"] == end.level.label]

    def _best(self, claim: Claim) -> Iterator[_Found]:
        ends = self.ends(claim.at | claim.best)
        for own in ends:
            others, rest = self.others(own, claim.at, claim.best), own.rest(claim.best)
            if not others:
                yield _Found(rest, "cannot tell", "Not measured: no run of another setting counts.")
                continue
            rival = min(
                others, key=lambda end: (end.level.label in end.group.ineligible, end.time.value)
            )
            tests = len(ends) * len(others)
            here = self.over(own, rival, tests).here
            if own.place == rival.place and tests == len(others):
                # One number has one interval: the answer's, which is of all levels at once.
                here = own.group.ratio(own.level.label, rival.level.label) or here
            names = [self.name(end, claim.best) for end in (own, rival)]
            word = self._fastest(own, others, tests, self._margin(claim))
            longer = here.inverse if here.value < 1 else here
            first, second = names if here.value >= 1 else names[::-1]
            brief = f"{first} takes {told_of(longer, f' times as long as {second}')}"
            seconds = [end.time.value for end in (own, rival)]
            digits = number if len({short(one) for one in seconds}) == 1 else short
            pair = " and ".join(
                f"{name} takes {digits(one)} s" for name, one in zip(names, seconds, strict=True)
            )
            told = f"{pair}: {told_of(longer, ' times as long')}"
            tied = word == "same here" and len(own.group.indistinguishable) > 1
            note = "as fast as the fastest" * tied
            yield _Found(rest, word, told, here, note=note, brief=brief)

    def _fastest(
        self, own: TimedSetting, others: Sequence[TimedSetting], tests: int, margin: float
    ) -> Word:
        """Return the word for a setting that is claimed to be the fastest.

        It is if no other may be, which is the group's own answer. It is as fast as the fastest if
        none is faster by more than the margin. It is not if one surely is.
        """
        group, label = own.group, own.level.label
        if group.drift_confounded or label in group.ineligible:
            return "cannot tell"
        found = [self.over(own, end, tests) for end in others]
        together = {end.place for end in others} == {own.place}
        whole = together and len(others) + 1 == len(group.timed)
        alone = whole and group.best == label and group.indistinguishable == [label]
        if alone or all((one.alone.high or math.inf) <= 1 + margin for one in found):
            return "same here"
        slower = any((one.joint.low or 0.0) > 1 + margin for one in found)
        return "not here" if slower else "cannot tell"

    def _rank(self, claim: Claim) -> Iterator[_Found]:
        """Yield the word on an order: the same if each setting is faster than the next."""
        named = dict.fromkeys(chain.from_iterable(claim.rank))
        for first in self.ends(claim.at | claim.rank[0]):
            rest = first.rest(named)
            ends = []
            for chosen in claim.rank:
                ends += [end for end in self.ends(claim.at | chosen) if end.rest(named) == rest]
            if len(ends) < len(claim.rank):
                continue
            found, told = list[Quantity](), list[str]()
            for one, two in pairwise(ends):
                over = self.over(two, one, len(ends) - 1)
                sides = f"{self.name(two, named)} over {self.name(one, named)}"
                found.append(over)
                told.append(f"{sides} {told_of(over.here, '')}")
            turned = any((one.joint.high or math.inf) < 1 for one in found)
            kept = all((one.alone.low or 0.0) > 1 for one in found)
            word: Word = "same here" if kept else "not here" if turned else "cannot tell"
            yield _Found(rest, word, "; ".join(told))

    def _shares(self, claim: Claim) -> Iterator[_Found]:
        asked = []
        for base in self.ends(claim.at | claim.of):
            chosen = []
            for share in claim.shares:
                ends = self.others(base, claim.at | share.setting, claim.of | share.setting)
                chosen += [(share, end) for end in ends]
            asked.append((base, chosen))
        # The bounds hold for the shares of all settings at once.
        tests = sum(len(chosen) for _, chosen in asked)
        for base, chosen in asked:
            if chosen:
                yield self._shares_at(claim, base, chosen, tests)

    def _shares_at(
        self,
        claim: Claim,
        base: TimedSetting,
        chosen: Sequence[tuple[ClaimedShare, TimedSetting]],
        tests: int,
    ) -> _Found:
        """Return the word on several shares of one setting's speed, and by name those that are
        beyond the claim."""
        words, found, marks = list[Word](), list[Quantity](), list[Mark]()
        beyond, notes = list[str](), list[str]()
        for share, end in chosen:
            low, high = share.percent / 100, (share.to or share.percent) / 100
            claimed = Claimed(low, high, self._margin(claim), ratio=True)
            found.append(self.over(base, end, tests))
            word, note = self._told(claim, claimed, found[-1], (base, end))
            words.append(word)
            notes.append(note)
            marks += [_mark(end, base.time.value / low)] if low == high else []
            if word not in ("same here", "cannot tell"):
                said = " to ".join(f"{short(100 * one)}%" for one in dict.fromkeys((low, high)))
                told = told_of(found[-1].here.times(100), "%", not beyond, decimals=0)
                beyond.append(f"{self.name(end, claim.of)}: {told}, claimed {said}")
        values = [one.here.value for one in found]
        told = " to ".join(
            dict.fromkeys(f"{100 * value:.0f}%" for value in (min(values), max(values)))
        )
        less = [
            self.name(end, claim.of) for _, end in chosen if end.level.label in end.group.ineligible
        ]
        if less:
            notes = [f"{listed(less)} did not learn as well"]
        one = _Found(
            base.rest(claim.of),
            _joint(words),
            f"{told} of its speed",
            note=next(filter(None, notes), ""),
            marks=tuple(marks),
        )
        if beyond:
            names = [text.partition(":")[0] for text in beyond]
            brief = f"{told}; beyond the claim (95%): {listed(names)}"
            return one._replace(measured=f"{told}. {'; '.join(beyond)}", brief=brief)
        if len(found) > 1:
            return one
        here, over = found[0].here, claimed.over(found[0].alone)
        told = told_of(here.times(100), "%", decimals=0)
        return one._replace(measured=f"{told} of its speed", here=here, over=over)

    def _value(self, claim: Claim) -> Iterator[_Found]:
        points, timed = claim.kind == "accuracy", claim.kind == "seconds"
        ends, unit = self.ends(claim.at), " s" if timed else " images/s"
        number = float(getattr(claim, claim.kind))
        claimed = Claimed(number, number, self._margin(claim), points)
        for end in ends:
            found = self._quantity(claim, end, len(ends))
            if found is None:
                continue
            word, note = self._told(claim, claimed, found, (end,))
            told = told_of(found.here, unit)
            if points:
                told = told_of(found.here.times(100), "%", decimals=1)
            if timed and self._less_work:
                word, told = "cannot tell", f"{told} at the reduced size, which does less work"
            yield _Found(
                end.levels,
                word,
                told,
                found.here,
                claimed.over(found.alone),
                note,
                marks=(_mark(end, number),) if timed else (),
            )

    def _quantity(self, claim: Claim, end: TimedSetting, tests: int) -> Quantity | None:
        """Return the time, the accuracy or the rate of a setting, one of so many; None where it was
        not measured."""
        model, label = self.fitted[end.place].model, end.level.label
        if claim.kind == "seconds":
            if end.time.bounds is None or model is None:
                return Quantity.without_bounds(end.time.value)
            return Quantity.of(partial(model.mean, label), tests)
        if claim.kind == "accuracy":
            own = self._runs(end)["accuracy"].dropna().tolist()
            return Quantity.of(partial(accuracy_of, own), tests) if own else None
        clean = self.fitted[end.place].clean
        # A run is an outlier by its time: so rates are fitted as times.
        each = 1 / clean["images_per_second"]
        if claim.clock:
            each = clean[self.study.total] / clean["images_processed"]
        known = clean.assign(each=each).dropna(subset=["each"])
        if not (known["level"] == label).any():
            return None
        mean = model_of(known, "each").mean
        if end.time.bounds is None:
            return Quantity.without_bounds(mean(label).inverse.value)
        return Quantity.of(lambda critical: mean(label, critical).inverse, tests)


def _of_ratio(claim: Claim, margin: float) -> Claimed:
    """Return the number of a claimed ratio, or its range."""
    low = claim.ratio or 1.0
    high = None if claim.sense == "at least" else claim.to or low
    return Claimed(low, high, margin, ratio=True)


def _joint(words: Sequence[Word]) -> Word:
    """Return the word for a claim of several parts: each must be the same, and one that is not
    decides."""
    beyond = {*words} - {"same here", "cannot tell"}
    if beyond:
        return beyond.pop() if len(beyond) == 1 else "not here"
    return "cannot tell" if "cannot tell" in words else "same here"


def _mark(end: TimedSetting, seconds: float) -> Mark:
    return Mark(group=end.group.label, level=end.level.label, seconds=seconds)


def source_line(source: Source, less_work: bool) -> str:
    """Return the document, its kind and date, and what was measured there on what, in one line."""
    document = ", ".join(filter(None, (source.title, source.place, source.kind, _day(source.date))))
    made = " on ".join(filter(None, (source.runs, source.hardware)))
    made = ", ".join(filter(None, (made, source.software)))
    told = ": ".join(filter(None, (document, made)))
    return f"{told}. Here: the reduced size." if less_work else f"{told}."


def _day(text: str | None) -> str:
    """Return a date as people write it: ``16 Apr 2025``, ``Apr 2025``, ``2025``."""
    if text is None:
        return ""
    parts = [int(part) for part in text.split("-")]
    form = ("%Y", "%b %Y", "%-d %b %Y")[len(parts) - 1]
    return date(*parts, *[1] * (3 - len(parts))).strftime(form)
