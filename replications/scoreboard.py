"""All claims of all replications beside what was measured: ``python -m replications.scoreboard
RESULTS... [--page FILE]`` prints the page in Markdown, and writes that for browsers to the file."""

import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from os.path import relpath
from pathlib import Path
from statistics import median
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

import study
from replications.command import run

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
EXAMPLE = "The GPU blog"
"""The group of `docs/example`, too, whose studies have the photographs that no replication has."""
PUBLISHERS = {
    "pytorch": "PyTorch",
    "huggingface": "Hugging Face",
    "NVIDIA": "NVIDIA",
    "wandb": "Weights & Biases",
    "elec4630-blog": EXAMPLE,
}
"""Groups by a part of a source's address, the last that fits. The others have a group for each
folder."""
SILENT, OTHER, NOT_MEASURED = "cannot tell", "another job", "not measured"
MIXED = "differs by machine"
SIGNS = {
    "same here": "●",
    "more here": "▶",
    "less here": "◀",
    "not here": "✗",
    "contradicted": "✗",
    MIXED: "◇",
    SILENT: "○",
    OTHER: "○",
    NOT_MEASURED: "",
}
LAST = 6
"""From this place of the signs on, claims stand behind all others of their group."""
UNPUBLISHED = "unpublished"


@dataclass(frozen=True)
class Measured:
    """A claim as one study measured it, at one setting on one machine: a line of its row."""

    row: study.ClaimRow
    claim: study.Claim
    records: list[Any]
    """Of the runs that the claim is about."""
    results: Path

    @property
    def torch(self) -> list[str]:
        """The versions of torch that measured it."""
        found = [one.machine.libraries.get("torch", "") for one in self.records if one.machine]
        return [*dict.fromkeys(one.partition("+")[0] for one in found if one)]

    @property
    def starts(self) -> int:
        """In how many starts it was measured."""
        return len({one.session for one in self.records})

    @property
    def devices(self) -> list[str]:
        """The devices of the runs. Beside a CPU's name stands how many threads its trainings
        had."""
        found = dict[str, None]()
        for record in self.records:
            if one := record.machine:
                run = record.measurement
                threads = f" ({run.threads if run else one.cpu_threads} threads)"
                found[one.device_name + threads * (one.device_name == one.cpu_name)] = None
        return [*found]

    @property
    def known(self) -> list[float]:
        """Ours over theirs with the ends of its interval, if it has one; nothing where no quotient
        can be drawn."""
        over = self.row.over
        if over is None or self.row.points:
            return []
        return [max(one, 1e-9) for one in (over.value, over.low, over.high) if one is not None]

    @property
    def why(self) -> str:
        """What the passes of a warm step take on both sides of a ratio; nothing where no step was
        measured."""
        if self.claim.clock != "steady" or not self.claim.slower:
            return ""
        told = []
        for phase in ("forward", "backward"):
            slower = self.milliseconds(phase, self.claim.slower)
            faster = self.milliseconds(phase, self.claim.faster)
            if slower is None or faster is None:
                return ""
            told.append(f"{phase} {slower:.0f} and {faster:.0f} ms")
        return f"A step: {', '.join(told)}."

    def milliseconds(self, phase: str, levels: dict[str, Any]) -> float | None:
        """Return the median of a phase over the warm steps of the runs with these levels."""
        mine = [one for one in self.records if levels.items() <= one.setting.levels.items()]
        steps = chain(*(one.measurement.steps for one in mine if one.measurement))
        warm = [1000 * getattr(step, f"{phase}_seconds") for step in steps if not step.warm_up]
        return median(warm) if warm else None

    @property
    def strip(self) -> tuple[float, float]:
        """The quotients between which ours is the same as theirs."""
        edge = 1 + self.row.within
        return 1 / edge, math.inf if self.claim.sense == "at least" else edge


@dataclass
class Stated:
    """A claim with all that state and measure it: a row of the page."""

    claim: study.Claim
    group: str
    studies: dict[Path, study.Claim] = field(default_factory=dict)
    """The claim as each study states it, by the study's file."""
    measured: list[Measured] = field(default_factory=list)

    @property
    def grade(self) -> str:
        """The best grade of what measured it, or would."""
        return min(one.grade for one in [one.row for one in self.measured] or self.studies.values())

    @property
    def best(self) -> list[Measured]:
        """What was measured of the jobs that are most like that of the source."""
        return [one for one in self.measured if one.row.grade == self.grade]

    @property
    def published(self) -> bool:
        """Whether others can read the source."""
        return UNPUBLISHED not in (self.claim.source.kind or "")

    @property
    def word(self) -> str:
        """The word on which all measurements of the best grade agree that can tell."""
        words: set[str] = {one.row.word for one in self.best}
        told = words - {SILENT} or words or {NOT_MEASURED}
        return told.pop() if len(told) == 1 else MIXED

    @property
    def theirs(self) -> str:
        """What is claimed, in words."""
        claim, kind = self.claim, self.claim.kind
        if kind in ("best", "rank"):
            return "no number"
        if claim.ratio == 1:
            return "no change"
        if claim.shares:
            ends = [*chain(*((one.percent, one.to or one.percent) for one in claim.shares))]
            return " to ".join(f"{end:.0f}%" for end in dict.fromkeys((min(ends), max(ends))))
        sense = f"{claim.sense} " * (claim.sense != "about")
        number = f"{getattr(claim, kind):g}{f' to {claim.to:g}' if claim.to else ''}"
        return f"{sense}{number} {'times' if claim.ratio else kind.replace('_', ' ')}"


def day(text: str) -> str:
    """Return the date of a time as people write it: ``16 Apr 2025``, ``Apr 2025``, ``2025``."""
    form = ("%Y", "%b %Y", "%-d %b %Y")[text[:10].count("-")]
    return datetime.fromisoformat(f"{text[:10]}-01-01"[:10]).strftime(form)


def place(quotient: float, reach: int) -> float:
    """Return where a quotient lies on the axis, which reaches so many doublings to either side of
    1: in percent from the left."""
    return round(min(max(50 + 50 * math.log2(quotient) / reach, 0), 100), 2)


def escaped(text: str) -> str:
    """Return the text as Markdown shows it inside a table."""
    for mark in "\\|[]<>*_`":
        text = text.replace(mark, f"\\{mark}")
    return text


def group_of(claim: study.Claim, file: Path) -> str:
    """Return who publishes a claim, or what the replication is of that examines it."""
    source, package = claim.source, file.parents[1] / "__init__.py"
    fits = [name for part, name in PUBLISHERS.items() if part in (source.address or "")]
    if fits or not package.is_file():
        return fits[-1] if fits else EXAMPLE
    if source.kind and UNPUBLISHED in source.kind:
        return source.kind.capitalize()
    return package.read_text(encoding="utf-8").partition(":")[0].strip('"')


def stated_by(files: Sequence[Path], results: Sequence[str]) -> list[Stated]:
    """Return each claim of the studies once, with what the results tell of it."""
    found = dict[tuple[str, str], Stated]()
    opened = [(Path(path).resolve(), study.open(path)) for path in results]
    for file in files:
        parts = [(path, folder[file.stem]) for path, folder in opened if file.stem in folder]
        judged = [(path, part, rows_of(part, file)) for path, part in parts]
        for claim in study.claims_in(str(file)):
            key = claim.claim, claim.source.title
            own = found.setdefault(key, Stated(claim, group_of(claim, file)))
            own.studies[file] = claim
            for path, part, rows in judged:
                own.measured += [
                    Measured(row, claim, records_of(part, claim), path)
                    for row in rows
                    if row.claim == claim.claim and row.source.startswith(claim.source.title)
                ]
    return list(found.values())


def rows_of(part: study.StudyResults, file: Path) -> list[study.ClaimRow]:
    """Return the claims of a study's file that any run tells of."""
    try:
        rows = part.claims(str(file))
    except study.StudyError as error:
        if "measure it again" not in str(error):  # nothing measures any more what its plan asks for
            raise
        return []
    return [row for row in rows if not row.measured.startswith("Not measured")]


def records_of(part: study.StudyResults, claim: study.Claim) -> list[Any]:
    """Return the records of the runs with the levels at which a claim holds."""

    def fits(record: Any) -> bool:
        own = {"device": record.settings.device} | record.setting.levels
        sides = [claim.at | side for side in (claim.slower, claim.faster)]
        return record.outcome == "ok" and any(own | side == side | own for side in sides)

    return [*filter(fits, part.records().values())]


def contents(stated: Sequence[Stated]) -> dict[str, Any]:
    """Return what both pages show: the claims by group, those without a word last in each, and the
    counts of the headline."""
    groups = dict[str, list[Stated]]()
    for one in sorted(stated, key=lambda one: max(LAST, [*SIGNS].index(one.word))):
        groups.setdefault(one.group, []).append(one)
    lines = [*chain(*(one.measured for one in stated))]
    apart = [abs(math.log2(known)) for known in chain(*(line.known for line in lines))]
    return {
        "groups": dict(sorted(groups.items(), key=lambda item: -len(item[1]))),
        "counts": Counter(one.word for one in stated if one.published),
        "unpublished": [one for one in stated if not one.published],
        "lines": lines,
        "reach": max(1, math.ceil(min(3, max(apart, default=1)))),
    }


def rendered(kind: str, told: dict[str, Any], beside: Path) -> str:
    """Return a page whose links lead from the folder ``beside`` to what lies in the repository."""

    def link(path: Path) -> str:
        return relpath(path, beside) if path.is_relative_to(ROOT) else ""

    made = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"link": link, "place": place, "escaped": escaped, "day": day}
    return made.get_template(f"scoreboard.{kind}.j2").render(told, SIGNS=SIGNS, ROOT=ROOT)


def main(arguments: Sequence[str]) -> int:
    """Print the page of some results, and write that for browsers; return the exit code."""
    results, page = [*arguments], Path()
    if "--page" in arguments[-2:-1]:
        *results, _, last = arguments
        page = Path(last).resolve()

    def lines() -> list[str]:
        docs = ROOT / "docs"
        files = [*sorted(HERE.glob("*/studies/*.yaml")), *sorted(docs.glob("example/*.yaml"))]
        told = contents(stated_by(files, results))
        if page.name:
            beside = page.parent if page.is_relative_to(ROOT) else docs
            page.write_text(rendered("html", told, beside), encoding="utf-8")
        return [rendered("md", told, docs)]

    fits = bool(results) and "--page" not in results
    return run("scoreboard RESULTS... [--page FILE]", fits, lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
