"""One study's result, from the table of timings to an answer, which every page, picture and program
shares."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from study.analysis.answers import Answer, first_answer
from study.analysis.answers.claim import ClaimRow, Judge
from study.analysis.answers.context import Context, scope_of
from study.analysis.answers.contrast import RatiosByLength, contrasts_of, control_of, length_of
from study.analysis.answers.fastest import NothingSucceeded, group_answer
from study.analysis.answers.group import Group
from study.analysis.answers.switches import Switches, switches_of
from study.analysis.answers.ways import ways_of
from study.analysis.caveats import KINDS, Caveat
from study.analysis.caveats.base import Seen
from study.analysis.ratios import Ratio, overalls_of, ratios_of
from study.analysis.screen import Screen, screen_of
from study.analysis.screen.provenance import facts_of
from study.analysis.stats.usable import usable_runs
from study.analysis.table.tables import as_epochs, epochs_of, read_table, read_timings
from study.analysis.words import place_words
from study.artifacts.checked import Records
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, selected
from study.base.errors import StudyError, check_known
from study.base.strict import Versioned


class Analysis(Versioned):
    """The numbers of one study, and the findings in them."""

    answer: str
    """The answer to the study's question, the first line of the page and of the terminal; `**`
    stand around what matters most."""
    screen: Screen
    y: str
    """Column of the table of timings that is analysed."""
    groups: list[Group]
    ratios: list[Ratio]
    control: list[Ratio]
    """The null control: each configuration over itself."""
    switches: list[Switches] = []
    """What each factor buys; empty without `effects`."""
    answers: list[Answer]
    """Every statement of the answer, as values."""
    warnings: list[Caveat]
    """What a reader must know before believing the numbers."""
    claims: list[ClaimRow] = []
    """The study's claims beside what was measured."""
    facts: dict[str, str] = {}
    """What was run on what: fields of the records by name, with their values or their range."""
    length: RatiosByLength | None = None
    """The answer's ratio by the length of the job; null where it has none."""

    def phases(self) -> list[tuple[str, dict[str, float]]]:
        """Return each setting with the seconds of its phases, where they are known."""
        found = []
        for group in self.groups:
            place = f"{place_words(group.setting)}, " if len(self.groups) > 1 else ""
            found += [(f"{place}{one.label}", one.phases) for one in group.levels if one.phases]
        return found


def analyse(plan: Plan, frame: pd.DataFrame, records: Records, epochs: pd.DataFrame) -> Analysis:
    """Return the analysis of a plan's table of timings, which has a row for each planned run.

    ``records`` are those that the table was made of, and ``epochs`` is their table of epochs.
    """
    study, y = plan.study, plan.study.total
    measured = Judge.of(study, frame)
    fitted, groups, ratios = measured.fitted, measured.groups, measured.ratios
    contrasts = list(contrasts_of(study, fitted, measured.overalls, ratios))
    control = ratios_of(study, fitted, overalls_of(study, fitted, "control"))
    pairs = zip(fitted, groups, strict=True) if study.effects else []
    switches = [found for fit, group in pairs if (found := switches_of(study, fit, group.best))]
    context = Context(study, groups, scope=scope_of(usable_runs(frame, y)["session"].nunique()))
    answers: list[Answer] = [
        *(found.combination for found in switches if found.combination),
        *(ways_of(study, fitted, groups) if not contrasts else []),
        *(group_answer(group) for group in groups),
        *contrasts,
        *([control_of(control)] if control else []),
    ] or [NothingSucceeded(group=None, made=bool(frame["session"].notna().any()))]
    seen = Seen(study, groups, frame=frame, fitted=fitted, records=records)
    caveats = list[Caveat]()
    for kind in KINDS:
        caveats.extend(kind.find(seen))  # type: ignore[arg-type]
    first = first_answer(study, answers, switches)
    claims = measured.rows()
    return Analysis(
        answer=first.text(context),
        screen=screen_of(plan, frame, records.included, context, answers, first, caveats, claims),
        y=y,
        groups=groups,
        ratios=ratios,
        control=control,
        switches=switches,
        answers=answers,
        warnings=caveats,
        claims=claims,
        length=length_of(study, frame, epochs, first),
        facts=facts_of(plan, frame, records.included),
    )


def read_analysis(path: Path) -> Analysis:
    """Return the analysis that the step ``analyse`` wrote. Raise :class:`StudyError` if there is
    none."""
    return Analysis.read(path, f"make it with: python -m study analyse {path.parent.name}")


@dataclass(frozen=True)
class StudyResult:
    """What one study's runs give."""

    plan: Plan
    frame: pd.DataFrame
    """The table of timings."""
    analysis: Analysis
    records: Records = field(default_factory=Records)
    """Those that the table is from, without their steps; none where table and analysis were read
    from their files."""
    epochs: pd.DataFrame = field(default_factory=as_epochs)
    """The table of epochs; empty where table and analysis were read from their files."""


def result_of(files: Results, name: str) -> StudyResult:
    """Return what the records of the study ``name`` give now: each of its files is read once.

    Raise :class:`StudyError` if there is no valid plan of it.
    """
    plan = _plan_of(files, name)
    frame, records = read_table(plan, files.records(name), files.telemetry_folder(name))
    epochs = epochs_of(plan, frame, records)
    return StudyResult(plan, frame, analyse(plan, frame, records, epochs), records, epochs)


def kept_result(files: Results, name: str) -> StudyResult:
    """Return what the step ``analyse`` wrote of the study ``name``. Raise :class:`StudyError` if a
    file is missing."""
    plan = _plan_of(files, name)
    frame, found = read_timings(files.timings(name), plan), read_analysis(files.fit(name))
    check_known("y", found.y, [plan.study.total], "the study's time is another", "fit.json")
    return StudyResult(plan, frame, found)


def _plan_of(files: Results, name: str) -> Plan:
    plan = Plan.read(files.plan(name))
    if plan.name != name:
        raise StudyError(f"{files.plan(name)}: it is the plan of {plan.name!r}")
    return plan


def ending(studies: Sequence[str], results: Path, address: bool = True) -> list[str]:
    """Return what the terminal says at the end of a start: each study's first screen, and the
    report's address.

    Without ``studies`` they are those of the last start, or all in a folder that no start wrote.
    There is no ``address`` where the folder does not stay. Raise :class:`StudyError` where a file
    is missing.
    """
    files = Results(results)
    names = list(studies) or selected(results)
    lines = []
    for name in names:
        start = _plan_of(files, name).start
        if files.fit(name).exists():
            analysis = read_analysis(files.fit(name))
        else:  # as in a bundle
            found = result_of(files, name)
            if not found.records.included:
                raise StudyError(f"{name}: no run is there yet")
            analysis = found.analysis
        # a bundle, and a page that was sent, name files of elsewhere
        here = results == Path("results") and all(map(os.path.isfile, start.files.values()))
        lines += [f"{name}:"] * (len(names) > 1) + analysis.screen.lines(
            analysis.answer, analysis.claims, here
        )
    if address and files.report.is_file():
        lines.append(f"report  {files.report.resolve().as_uri()}")
    return lines
