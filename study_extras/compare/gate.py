"""The step ``gate``: a baseline and a new result in; a line, an exit code, JUnit and a history out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from study.analysis.words import listed, number
from study.base.errors import StudyError, printable
from study.base.files import write_whole
from study_extras.compare.night import LEAST_STARTS, STARTS_OF_A_RATE, Gate, gate
from study_extras.compare.results import Same, same_work, studies_of
from study_extras.compare.side import Side, start_means

MOST_NAMED = 3
"""Slower settings that are named."""


@dataclass(frozen=True)
class Gated:
    """One study of a new result against the baseline."""

    same: Same
    found: Gate

    @property
    def missing(self) -> list[str]:
        """The settings of the baseline of which the new result has no run that counts."""
        return self.same.left_out[self.same.sides[0].name]

    @property
    def failed(self) -> bool:
        """Whether the new result does not pass: what was not measured may be slower, too."""
        return self.kind != "ok"

    @property
    def kind(self) -> str:
        """The verdict in a word."""
        if self.found.slower:
            return "SLOWER"
        return "LEARNS LESS" if self.found.learn_less else "INCOMPLETE" if self.missing else "ok"

    @property
    def line(self) -> str:
        """The verdict, and what it rests on."""
        return f"{self.kind}: {self.same.study}: {'; '.join(self._parts())}"

    def _parts(self) -> Iterator[str]:
        found = self.found
        yield f"{number(found.overall.ratio)} times the baseline"
        yield (f"the limit is {number(found.overall.limit)}, from {found.starts[0]} starts of the baseline")
        for one in found.slower_settings[:MOST_NAMED]:
            yield f"at {one.setting} {number(one.ratio)} times, where the limit is {number(one.limit)}"
        if found.learn_less:
            yield f"it learns less at {listed(found.learn_less)}"
        if found.learn_unclear:
            yield f"it may learn less at {listed(found.learn_unclear)}: over ten points, which is not shown"
        alone = max((one.found for one in found.settings), default=None)
        each = "" if alone is None else f", and one of {number(alone)} at any setting"
        yield f"a slowdown of {number(found.overall.found)}{each} is found four times in five"
        yield self._rate
        if self.missing:
            yield f"without a run that counts: {listed(self.missing)}"

    @property
    def _rate(self) -> str:
        """What is known of how often chance alarms."""
        found = self.found
        if found.followed:
            return (
                f"how often chance alone fails a night cannot be told, for starts of the baseline follow each other "
                f"(correlation {found.correlation:.1f})"
            )
        alarm = f"by chance 1 night in {_alarms(found)} fails if nights are independent"
        return alarm + f", which fewer than {STARTS_OF_A_RATE} starts cannot tell" * found.few


def _alarms(found: Gate) -> int:
    """Return in how many nights one fails by chance: the settings together as often as the mean."""
    return 20 if found.settings else 40


def gate_folders(baseline: Path, new: Path, studies: Sequence[str]) -> list[Gated]:
    """Return how each study stands against the baseline: those of ``studies``, else all of the baseline.

    Raise :class:`StudyError` if the new result lacks one, if the work is not the same, or if the baseline has too few
    starts to tell chance.
    """
    gated = []
    for study in studies_of([baseline, new], studies or studies_of([baseline], [])):
        same = same_work(study, [baseline, new])
        before, after = same.sides
        found = gate(before, after)
        if found is None:
            starts = before.runs["start"].nunique()
            raise StudyError(
                f"{study}: {before.name} has {starts} start(s): the limit is the spread of {LEAST_STARTS} or more"
            )
        gated.append(Gated(same, found))
    return gated


def write_junit(gated: Sequence[Gated], path: Path) -> None:
    """Write one test case for each study, failed where the new result does not pass, as CI services read it."""
    failed = sum(one.failed for one in gated)
    suite = ElementTree.Element("testsuite", name="study gate", tests=str(len(gated)), failures=str(failed), errors="0")
    for one in gated:
        case = ElementTree.SubElement(suite, "testcase", classname="study.gate", name=one.same.study)
        if one.failed:
            ElementTree.SubElement(
                case, "failure", message=printable(one.line), type=one.kind.lower().replace(" ", "_")
            )
        else:
            ElementTree.SubElement(case, "system-out").text = printable(one.line)
    write_whole(path, ElementTree.tostring(suite, encoding="unicode", xml_declaration=True))


def write_histories(gated: Sequence[Gated], folder: Path) -> None:
    """Write a CSV for each study: a row for each start in their order, with its time, its commit, and a column of the
    seconds of each setting.

    The seconds are geometric means, and what a start lacks is filled as the gate fills it: Apache Otava, which reads
    such a file, refuses an empty cell. A start that is in both results is one row.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for one in gated:
        rows = pd.concat([_history(side, one.same.settings) for side in one.same.sides])
        rows = rows.drop_duplicates(["time", "commit"]).sort_values("time", kind="stable")
        write_whole(folder / f"{one.same.study}.csv", rows.to_csv(index=False))


def _history(side: Side, settings: Sequence[str]) -> pd.DataFrame:
    begun = side.runs.groupby("start", sort=False)[["started", "commit"]].min().rename(columns={"started": "time"})
    return begun.join(start_means(side)[list(settings)].apply(np.exp))
