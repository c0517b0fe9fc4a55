"""A claim beside what was measured here: the same quantity with its interval, and one of three words.

It holds if the whole interval lies within the study's margin around the claimed number, or if the number lies in an
interval whose upper end is at most twice its lower. It is contradicted if the whole interval lies beyond the margin.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from pydantic import Field

from study.analysis.answers.compared import End, Measured
from study.analysis.answers.context import bounds, inverse
from study.analysis.stats.learning import accuracy_of
from study.analysis.stats.usable import Estimate, estimate, model_of
from study.analysis.words import at_setting, listed, short
from study.artifacts.setting import Levels, setting_of
from study.base.strict import Strict
from study.config.claims import Claim, Kind, Source

Word = Literal["holds", "contradicted", "not decided"]
MOST_WORDS = 18
"""Of what was measured."""


class Mark(Strict):
    """Where a claim puts a level of a group."""

    group: str
    level: str
    seconds: float


class ClaimRow(Strict):
    """One claim at one setting, with its verdict: a row of the first screen."""

    claim: str = Field(description="The claim's words.")
    kind: Kind
    claimed: float | None = Field(description="The claimed number; null where it is a setting or several numbers.")
    here: Estimate | None = Field(description="The same quantity here; null where it was not measured.")
    measured: str = Field(description="The same in words.")
    word: Word
    note: str = Field(description="`less here` or `more here` where a number is contradicted.")
    source: str = Field(description="Where the claim stands, and what differs there.")
    address: str | None = Field(description="The web address of its source.")
    marks: list[Mark] = Field(description="Where the claim puts rows of the chart of times.")


def word_of(low: float, high: float, here: Estimate, margin: float, points: bool = False, ratio: bool = False) -> Word:
    """Return the word for a claimed number, or a range of them, by the interval of what was measured.

    The margin is a factor, or a difference with ``points``. An interval that holds 1 shows no gain and no loss: with
    ``ratio`` a claimed gain needs one without it, and "no gain" one within the margin.
    """
    if here.low is None or here.high is None:
        return "not decided"
    least, most = (low - margin, high + margin) if points else (low / (1 + margin), high * (1 + margin))
    if least <= here.low and here.high <= most:
        return "holds"
    if here.high < least or here.low > most:
        return "contradicted"
    # The word must not contradict the bounds that stand beside it.
    seen = [float(short(bound, like=here.value)) for bound in (here.low, here.high)]
    told = min(here.low, seen[0]) <= high and low <= max(here.high, seen[1]) and here.high <= 2 * here.low
    return "holds" if told and not (ratio and (low == 1 or here.low <= 1 <= here.high)) else "not decided"


@dataclass(frozen=True)
class _Found:
    """What was measured at one setting: the row without the claim."""

    at: Levels
    word: Word
    measured: str
    here: Estimate | None = None
    note: str = ""
    marks: tuple[Mark, ...] = ()
    brief: str = ""
    """What was measured, where the place leaves no room for all of it."""

    def words(self, where: str) -> str:
        """Return what was measured with its place."""
        whole = f"{self.measured} {where}".rstrip()
        return f"{self.brief} {where}".rstrip() if self.brief and len(whole.split()) > MOST_WORDS else whole


@dataclass(frozen=True)
class Judge:
    """What a study measured, before which its claims are brought."""

    measured: Measured

    def rows(self) -> list[ClaimRow]:
        """Return the rows of every claim. One about a level that the start left out has none."""
        claims = self.measured.study.claims
        asked = [claim for claim in claims if all(self.measured.has(key, level) for _, key, level in claim.levels())]
        return [row for claim in asked for row in self._rows(claim)]

    def _rows(self, claim: Claim) -> Iterator[ClaimRow]:
        judged = {"ratio": self._ratio, "best": self._best, "shares": self._shares}.get(claim.kind, self._value)(claim)
        found = [*judged] or [_Found({}, "not decided", "Not measured: no run of this setting counts.")]
        varied = [
            key
            for key in found[0].at
            if key not in claim.at and len({self.measured.words(key, one.at[key]) for one in found}) > 1
        ]
        number = getattr(claim, claim.kind)
        for one in found:
            where = at_setting(setting_of(self.measured.study, {key: one.at[key] for key in varied}))
            yield ClaimRow(
                claim=claim.claim,
                kind=claim.kind,
                claimed=number if isinstance(number, (int, float)) else None,
                here=one.here,
                measured=one.words(where),
                word=one.word,
                note=one.note,
                source=source_line(claim.source, self._less_work),
                address=claim.source.address,
                marks=[] if self._less_work else list(one.marks),
            )

    @property
    def _less_work(self) -> bool:
        """Whether the study does less work at its reduced size."""
        return bool(self.measured.study.full.keys() - {"replicates", "device"})

    @property
    def _margin(self) -> float:
        return self.measured.study.equivalence_margin

    def _ratio(self, claim: Claim) -> Iterator[_Found]:
        claimed = claim.ratio or 1
        pairs = [
            (slower, faster)
            for slower in self.measured.ends(claim.at, claim.slower)
            for faster in self.measured.ends(claim.at, claim.faster)
            if self.measured.rest(slower, claim.slower) == self.measured.rest(faster, claim.faster)
        ]
        for slower, faster in pairs:
            rest = self.measured.rest(slower, claim.slower)
            here = self.measured.over(slower, faster, len(pairs))
            word = word_of(claimed, claimed, here, self._margin, ratio=True)
            told, mark = f"{short(here.value)} times{_interval(here)}", _mark(faster, slower.time.value / claimed)
            yield _Found(rest, word, told, here, _note(word, here, claimed), (mark,))

    def _best(self, claim: Claim) -> Iterator[_Found]:
        for own in self.measured.ends(claim.at, claim.best):
            others, rest = self.measured.others(own, claim.at, claim.best), self.measured.rest(own, claim.best)
            if not others:
                yield _Found(rest, "not decided", "Not measured: no run of another setting counts.")
                continue
            rival = min(others, key=lambda end: (end.level.label in end.group.unfair, end.time.value))
            here = self.measured.over(own, rival, len(others))
            names = [self.measured.name(end, claim.best) for end in (own, rival)]
            pair = f"{names[0]} takes {short(own.time.value)} s and {names[1]} takes {short(rival.time.value)} s"
            longer = inverse(here) if here.value < 1 else here
            times = f"{short(longer.value)} times as long{_interval(longer)}"
            first, second = names if here.value >= 1 else names[::-1]
            brief = f"{first} takes {times.replace(' long', f' long as {second}')}"
            yield _Found(rest, self._fastest(own, others, here), f"{pair}: {times}", here, brief=brief)

    def _fastest(self, own: End, others: Sequence[End], here: Estimate) -> Word:
        """Return the word for a setting that is claimed to be the fastest; ``here`` is its time over the best other's.

        Beside the rest of its group it is told from all others at once, as the group's own answer is.
        """
        group, label = own.group, own.level.label
        if group.machine or label in group.unfair:
            return "not decided"
        if here.low is not None and here.low > 1 + self._margin:
            return "contradicted"
        timed = [level.label for level in group.levels if level.time]
        if {(end.place, end.level.label) for end in (own, *others)} == {(own.place, name) for name in timed}:
            tied = {*group.indistinguishable} - {label}
            alone = group.best == label and tied <= {*group.equivalent}
            return "holds" if alone or label in group.equivalent else "not decided"
        most = [self.measured.over(own, end, len(others)).high for end in others]
        if all(high is not None and high < 1 for high in most):
            return "holds"
        return "holds" if word_of(1, 1, here, self._margin, ratio=True) == "holds" else "not decided"

    def _shares(self, claim: Claim) -> Iterator[_Found]:
        for base in self.measured.ends(claim.at, claim.of):
            shares, marks = [], []
            for share in claim.shares:
                low, high = share.percent, share.to or share.percent
                for end in self.measured.others(base, claim.at | share.setting, claim.of | share.setting):
                    here = _times(self.measured.over(base, end), 100)
                    word = word_of(low, high, here, self._margin)
                    said = f"{short(low)}%" if low == high else f"{short(low)}% to {short(high)}%"
                    shares.append(_Share(self.measured.name(end, claim.of), here, word, said, _note(word, here, low)))
                    marks += [_mark(end, 100 * base.time.value / low)] if low == high else []
            if shares:
                yield _shares_found(self.measured.rest(base, claim.of), shares, marks)

    def _value(self, claim: Claim) -> Iterator[_Found]:
        points = claim.kind == "accuracy"
        margin = self.measured.study.learning_margin if points else self._margin
        for end in self.measured.ends(claim.at):
            claimed, here, unit = self._measured(claim, end)
            if here is None:
                continue
            word, shown_as = word_of(claimed, claimed, here, margin, points), _times(here, 100 if points else 1)
            told = f"{short(shown_as.value)}{unit}{_interval(shown_as)}"
            if points:  # a tenth of a point is what documents print
                told = f"{shown_as.value:.1f}%{_tenths(shown_as)}"
            if claim.kind == "seconds" and self._less_work:
                word, told = "not decided", f"{told} at the reduced size, which does less work"
            marks = (_mark(end, claimed),) if claim.kind == "seconds" else ()
            yield _Found(end.levels, word, told, here, _note(word, here, claimed), marks)

    def _measured(self, claim: Claim, end: End) -> tuple[float, Estimate | None, str]:
        """Return the claimed number, the same quantity here, and its unit."""
        if claim.seconds is not None:
            return claim.seconds, end.time, " s"
        clean = self.measured.fitted[end.place].clean
        if claim.accuracy is not None:
            own = clean[clean["level"] == end.level.label]["accuracy"]
            return claim.accuracy, accuracy_of(own.dropna().tolist()), "%"
        known = clean.dropna(subset=["images_per_second"])
        if end.level.label not in set(known["level"]):
            return 0, None, ""
        rate = estimate(model_of(known, "images_per_second", known["level"].tolist()).mean(end.level.label))
        return claim.images_per_second or 0, rate.bare if end.level.undetermined else rate, " images/s"


@dataclass(frozen=True)
class _Share:
    name: str
    here: Estimate
    word: Word
    claimed: str
    note: str


def _shares_found(at: Levels, shares: Sequence[_Share], marks: Sequence[Mark]) -> _Found:
    """Return the word on several shares, and what was measured: those that are contradicted by name."""
    values = sorted(share.here.value for share in shares)
    told = " to ".join(dict.fromkeys(f"{short(value)}%" for value in (values[0], values[-1])))
    against = [share for share in shares if share.word == "contradicted"]
    if not against:
        word: Word = "holds" if all(share.word == "holds" for share in shares) else "not decided"
        return _Found(at, word, f"{told} of its speed", marks=tuple(marks))
    named = [
        f"{one.name}: {short(one.here.value)}%{_interval(one.here, first=not place)}, claimed {one.claimed}"
        for place, one in enumerate(against)
    ]
    whole = f"{told}. {'; '.join(named)}"
    brief = f"{told} (95%); beyond the claim: {listed([one.name for one in against])}"
    notes = {one.note for one in against}
    return _Found(at, "contradicted", whole, None, notes.pop() if len(notes) == 1 else "", tuple(marks), brief)


def _mark(end: End, seconds: float) -> Mark:
    return Mark(group=end.group.label, level=end.level.label, seconds=seconds)


def _times(one: Estimate, factor: float) -> Estimate:
    low, high = (None if bound is None else factor * bound for bound in (one.low, one.high))
    return Estimate(value=factor * one.value, low=low, high=high)


def _interval(one: Estimate, first: bool = True) -> str:
    return bounds(one, first) or " (no interval)"


def _tenths(one: Estimate) -> str:
    return " (no interval)" if one.low is None or one.high is None else f" (95%: {one.low:.1f} to {one.high:.1f})"


def _note(word: Word, here: Estimate, claimed: float) -> str:
    """Return in which direction a number is contradicted."""
    return f"{'less' if here.value < claimed else 'more'} here" if word == "contradicted" else ""


def source_line(source: Source, less_work: bool = False) -> str:
    """Return the document, its kind and date, what was measured there on what, and what differs, in one line."""
    document = ", ".join(filter(None, (source.title, source.place, source.kind, _day(source.date))))
    made = " on ".join(filter(None, (source.runs, source.hardware)))
    told = [f"{document}{f': {made}' if made else ''}.", source.differs or ""]
    return " ".join(filter(None, [*told, "Here: the reduced size." * less_work]))


def _day(text: str | None) -> str:
    """Return a date as people write it: ``16 Apr 2025``, ``Apr 2025``, ``2025``."""
    parts = [int(part) for part in text.split("-")] if text else []
    forms = ("", "%Y", "%b %Y", "%-d %b %Y")
    return date(*parts, *[1] * (3 - len(parts))).strftime(forms[len(parts)]) if parts else ""
