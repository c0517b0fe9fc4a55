"""The step ``gate``: a baseline and a new result in; a line, an exit code, JUnit and a history out."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from study.analysis.compare.results import Same, same_work, studies_of
from study.analysis.stats.comparison import LEAST_STARTS, Gate, Side, gate
from study.analysis.words import number
from study.base.errors import StudyError, printable
from study.base.files import write_whole


@dataclass(frozen=True)
class Gated:
    """One study of a new result against the baseline."""

    same: Same
    found: Gate

    @property
    def line(self) -> str:
        """The verdict, and what it rests on."""
        word, found = "SLOWER" if self.found.slower else "ok", self.found
        return (
            f"{word}: {self.same.study}: {number(found.ratio)} times the baseline; the limit is {number(found.limit)}, "
            f"from {found.starts[0]} starts of the baseline; a slowdown of {number(found.found)} is found four times "
            "in five"
        )


def gate_folders(baseline: Path, new: Path, studies: Sequence[str]) -> list[Gated]:
    """Return how each study of a new result stands against the baseline.

    Raise :class:`StudyError` if the work is not the same, or if the baseline has too few starts to tell chance.
    """
    gated = []
    for study in studies_of([baseline, new], studies):
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
    """Write one test case for each study, failed where the new result is slower, as CI services read it."""
    failed = sum(one.found.slower for one in gated)
    suite = ElementTree.Element("testsuite", name="study gate", tests=str(len(gated)), failures=str(failed), errors="0")
    for one in gated:
        case = ElementTree.SubElement(suite, "testcase", classname="study.gate", name=one.same.study)
        if one.found.slower:
            ElementTree.SubElement(case, "failure", message=printable(one.line), type="slower")
        else:
            ElementTree.SubElement(case, "system-out").text = printable(one.line)
    write_whole(path, ElementTree.tostring(suite, encoding="unicode", xml_declaration=True))


def write_history(gated: Sequence[Gated], path: Path) -> None:
    """Write one row for each start: its time, its commit, and the geometric mean of the seconds of each setting.

    The starts of the baseline come first. Apache Otava reads such a file: ``time`` is its time column, ``commit`` an
    attribute, and each other column a metric.
    """
    parts = [_history(side, one.same.study) for one in gated for side in one.same.sides]
    rows = pd.concat(parts).groupby(["time", "commit"], sort=True).first().reset_index()
    write_whole(path, rows.to_csv(index=False))


def _history(side: Side, study: str) -> pd.DataFrame:
    logs = side.runs.assign(log=np.log(side.runs["seconds"]))
    table = logs.pivot_table(index="start", columns="setting", values="log", aggfunc="mean", sort=False)
    begun = side.runs.groupby("start", sort=False)[["started", "commit"]].min().rename(columns={"started": "time"})
    return begun.join(pd.DataFrame({f"{study}: {setting}": np.exp(table[setting]) for setting in table}))
