"""A claim beside what was measured here: the same quantity with its interval, and one of three
words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import product

from study.analysis.answers.compared import MeasuredStudy, Word, against, note_of, told_of, word_of
from study.analysis.answers.group import TimedSetting
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.learning import accuracy_of
from study.analysis.stats.log_model import together
from study.analysis.stats.usable import model_of
from study.analysis.words import at_setting, listed, number, short
from study.artifacts.setting import Levels, setting_of
from study.base.strict import Strict
from study.config.claims import Claim, ClaimedShare, Source

MOST_WORDS = 18
"""Of what was measured."""


class Mark(Strict):
    """Where a claim puts a level of a group."""

    group: str
    level: str
    seconds: float


class ClaimRow(Strict):
    """One claim at one setting, with its verdict: a row of the first screen."""

    claim: str
    """The claim's words."""
    claimed: float | None
    """The claimed number; null where it is a setting or several numbers."""
    here: Estimate | None
    """The same quantity here; null where it was not measured."""
    measured: str
    """The same in words."""
    word: Word
    note: str
    """`less here` or `more here` where a number is contradicted."""
    source: str
    """Where the claim stands, and what differs there."""
    address: str | None
    """The web address of its source."""
    marks: list[Mark]
    """Where the claim puts rows of the chart of times."""


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


class Judge(MeasuredStudy):
    """What a study measured, before which its claims are brought."""

    def rows(self) -> list[ClaimRow]:
        """Return the rows of every claim; one about a level that the start left out says so."""
        rows = list[ClaimRow]()
        for claim in self.study.claims:
            rows += self._rows(claim)
        return rows

    def _rows(self, claim: Claim) -> Iterator[ClaimRow]:
        left = [
            self.name_of(key, level) for _, key, level in claim.levels() if not self.has(key, level)
        ]
        judged = {"ratio": self._ratio, "best": self._best, "shares": self._shares}.get(
            claim.kind, self._value
        )(claim)
        why = f"this start left out {listed(left)}" if left else "no run of this setting counts"
        found = [] if left else [*judged]
        found = found or [_Found({}, "not decided", f"Not measured: {why}.")]
        varied = [
            key
            for key in found[0].at
            if key not in claim.at and len({self.words(key, one.at[key]) for one in found}) > 1
        ]
        number = getattr(claim, claim.kind)
        printed = list[Mark]()  # in the seconds of the source
        for level, seconds in claim.printed.items():
            key = next(iter(claim.best or claim.of))
            printed += [_mark(end, seconds) for end in self.ends(claim.at | {key: level})]
        for one in found:
            where = at_setting(setting_of(self.study, {key: one.at[key] for key in varied}))
            measured = f"{one.measured} {where}".rstrip()
            if one.brief and len(measured.split()) > MOST_WORDS:
                measured = f"{one.brief} {where}".rstrip()
            yield ClaimRow(
                claim=claim.claim,
                claimed=number if isinstance(number, (int, float)) else None,
                here=one.here,
                measured=measured,
                word=one.word,
                note=one.note,
                source=source_line(claim.source, self._less_work),
                address=claim.source.address,
                marks=[] if self._less_work else printed or list(one.marks),
            )

    @property
    def _less_work(self) -> bool:
        """Whether the study does less work at its reduced size."""
        return bool(self.study.full.keys() - {"replicates", "device"})

    @property
    def _margin(self) -> float:
        return self.study.equivalence_margin

    def _ratio(self, claim: Claim) -> Iterator[_Found]:
        claimed = claim.ratio or 1
        pairs = [
            (slower, faster)
            for slower, faster in product(
                self.ends(claim.at | claim.slower), self.ends(claim.at | claim.faster)
            )
            if self.rest(slower, claim.slower) == self.rest(faster, claim.faster)
        ]
        for slower, faster in pairs:
            here = self.over(slower, faster, len(pairs))
            word = word_of(claimed, claimed, here, self._margin, ratio=True)
            yield _Found(
                self.rest(slower, claim.slower),
                word,
                told_of(here, " times", against(word, claimed)),
                here,
                note_of(word, here, claimed),
                (_mark(faster, slower.time.value / claimed),),
            )

    def _best(self, claim: Claim) -> Iterator[_Found]:
        ends = self.ends(claim.at | claim.best)
        for own in ends:
            others, rest = self.others(own, claim.at, claim.best), self.rest(own, claim.best)
            if not others:
                yield _Found(rest, "not decided", "Not measured: no run of another setting counts.")
                continue
            rival = min(
                others, key=lambda end: (end.level.label in end.group.ineligible, end.time.value)
            )
            tests = len(ends) * len(others)
            here = self.over(own, rival, tests)
            if own.place == rival.place and tests == len(others):
                # One number has one interval: the answer's, which is of all levels at once.
                here = own.group.ratio(own.level.label, rival.level.label) or here
            names = [self.name(end, claim.best) for end in (own, rival)]
            word = self._fastest(own, others, here, tests)
            longer = here.inverse if here.value < 1 else here
            # A group tells the best of all at once; the interval of one ratio may be wider.
            agrees = word != "holds" or (here.high or 0) < 1 or here.within(self._margin)
            first, second = names if here.value >= 1 else names[::-1]
            tied = len(own.group.indistinguishable) > 1
            at_once = f"equal within {self._margin:.0%}" if tied else "told from all at once"
            whole, brief = (
                told_of(longer, unit, (1.0,))
                if agrees
                else f"{short(longer.value)}{unit}, {at_once}"
                for unit in (" times as long", f" times as long as {second}")
            )
            seconds = [end.time.value for end in (own, rival)]
            digits = number if len({short(one) for one in seconds}) == 1 else short
            pair = " and ".join(
                f"{name} takes {digits(one)} s" for name, one in zip(names, seconds, strict=True)
            )
            yield _Found(rest, word, f"{pair}: {whole}", here, brief=f"{first} takes {brief}")

    def _fastest(
        self, own: TimedSetting, others: Sequence[TimedSetting], here: Estimate, tests: int
    ) -> Word:
        """Return the word for a setting that is claimed to be the fastest; ``here`` is its time
        over the best other's.

        Beside the rest of its group it is told from all others at once, as the group's own answer
        is. A claim about several settings has them equal by bounds that hold for all of them.
        """
        group, label = own.group, own.level.label
        if group.drift_confounded or label in group.ineligible:
            return "not decided"
        if here.low is not None and here.low > 1 + self._margin:
            return "contradicted"
        timed = [level.label for level in group.levels if level.time]
        if {(end.place, end.level.label) for end in (own, *others)} == {
            (own.place, name) for name in timed
        }:
            alone = group.best == label and group.tied_are_equal
            equal = label in group.equivalent and (
                tests == len(others) or here.within(self._margin)
            )
            return "holds" if alone or equal else "not decided"
        most = [self.over(own, end, tests).high for end in others]
        faster = all(high is not None and high < 1 for high in most)
        return "holds" if faster or here.within(self._margin) else "not decided"

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
        """Return the word on several shares of one setting's speed, and those that are contradicted
        by name."""
        words, found, marks = list[Word](), list[Estimate](), list[Mark]()
        beyond, notes, names = list[str](), set[str](), list[str]()
        for share, end in chosen:
            low, high = share.percent / 100, (share.to or share.percent) / 100
            here = self.over(base, end, tests)
            words.append(word_of(low, high, here, self._margin, ratio=True))
            found.append(here)
            marks += [_mark(end, base.time.value / low)] if low == high else []
            if words[-1] == "contradicted":
                claimed = tuple({100 * low: None, 100 * high: None})
                said = " to ".join(f"{short(one)}%" for one in claimed)
                names.append(self.name(end, claim.of))
                told = told_of(here.times(100), "%", claimed, not beyond, decimals=0)
                beyond.append(f"{names[-1]}: {told}, claimed {said}")
                notes.add(note_of("contradicted", here, low))
        rest, values = self.rest(base, claim.of), [one.value for one in found]
        told = " to ".join(
            dict.fromkeys(f"{100 * value:.0f}%" for value in (min(values), max(values)))
        )
        if beyond:
            brief = f"{told}; beyond the claim (95%): {listed(names)}"
            told = f"{told}. {'; '.join(beyond)}"
            note = notes.pop() if len(notes) == 1 else ""
            return _Found(rest, "contradicted", told, None, note, tuple(marks), brief)
        word: Word = "holds" if {*words} == {"holds"} else "not decided"
        one = found[0] if len(found) == 1 else None
        told = told_of(one.times(100), "%", (), decimals=0) if one else told
        return _Found(rest, word, f"{told} of its speed", one, marks=tuple(marks))

    def _value(self, claim: Claim) -> Iterator[_Found]:
        points, ends = claim.kind == "accuracy", self.ends(claim.at)
        margin = self.study.learning_margin if points else self._margin
        for end in ends:
            clean = self.fitted[end.place].clean
            own = clean[clean["level"] == end.level.label]
            here: Estimate | None
            if claim.seconds is not None:
                claimed, unit, here = claim.seconds, " s", self.time(end, len(ends))
            elif claim.accuracy is not None:
                claimed, unit = claim.accuracy, "%"
                here = accuracy_of(own["accuracy"].dropna().tolist(), len(ends))
            elif own["images_per_second"].notna().any():
                claimed, unit = claim.images_per_second or 0, " images/s"
                # A run is an outlier by its time: so rates are fitted as times.
                known = clean.dropna(subset=["images_per_second"])
                model = model_of(known.assign(each=1 / known["images_per_second"]), "each")
                rate = model.mean(end.level.label, together(len(ends))).inverse
                here = rate if end.time.bounds else rate.bare
            else:
                continue
            if here is None:
                continue
            word, scale = word_of(claimed, claimed, here, margin, points), 100 if points else 1
            told = told_of(
                here.times(scale),
                unit,
                against(word, scale * claimed),
                decimals=1 if points else None,
            )
            if claim.kind == "seconds" and self._less_work:
                word, told = "not decided", f"{told} at the reduced size, which does less work"
            marks = (_mark(end, claimed),) if claim.kind == "seconds" else ()
            yield _Found(end.levels, word, told, here, note_of(word, here, claimed), marks)


def _mark(end: TimedSetting, seconds: float) -> Mark:
    return Mark(group=end.group.label, level=end.level.label, seconds=seconds)


def source_line(source: Source, less_work: bool) -> str:
    """Return the document, its kind and date, what was measured there on what, and what differs, in
    one line."""
    document = ", ".join(filter(None, (source.title, source.place, source.kind, _day(source.date))))
    made = " on ".join(filter(None, (source.runs, source.hardware)))
    told = [f"{document}{f': {made}' if made else ''}.", source.differs or ""]
    return " ".join(filter(None, [*told, "Here: the reduced size." * less_work]))


def _day(text: str | None) -> str:
    """Return a date as people write it: ``16 Apr 2025``, ``Apr 2025``, ``2025``."""
    if text is None:
        return ""
    parts = [int(part) for part in text.split("-")]
    form = ("%Y", "%b %Y", "%-d %b %Y")[len(parts) - 1]
    return date(*parts, *[1] * (3 - len(parts))).strftime(form)
