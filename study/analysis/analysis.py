"""One study's result, from the table of timings to an answer, which every page, picture and program
shares."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from pydantic import Field

from study.analysis.about import About, about
from study.analysis.answers import Answer, first_answer
from study.analysis.answers.bottleneck import bottlenecks_of
from study.analysis.answers.claim import ClaimRow, Judge
from study.analysis.answers.context import Context, scope_of
from study.analysis.answers.contrast import contrasts_of, control_of
from study.analysis.answers.fastest import NothingSucceeded, group_answer
from study.analysis.answers.group import Group, group_of
from study.analysis.answers.switches import Switches, switches_of
from study.analysis.answers.ways import ways_of
from study.analysis.caveats import Caveat, find_caveats
from study.analysis.look import begun_blocks, intervals_of, reached_by, whole_blocks
from study.analysis.screen import Screen, screen_of
from study.analysis.stats.groups import groups_of
from study.analysis.stats.ratios import Ratio, overalls_of, ratios_of
from study.analysis.stats.usable import usable_runs
from study.analysis.table.files import read_table, read_timings
from study.artifacts.block import Reached
from study.artifacts.checked import Records
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, Selected
from study.base.errors import StudyError, check_known
from study.base.strict import Versioned


class Analysis(Versioned):
    """The numbers of one study, and the findings in them."""

    answer: str
    """The answer to the study's question, the first line of the page and of the terminal; `**`
    stand around what matters most."""
    screen: Screen
    y: str = Field(description="Column of the table of timings that is analysed.")
    groups: list[Group]
    ratios: list[Ratio]
    control: list[Ratio] = Field(description="The null control: each configuration over itself.")
    switches: list[Switches] = Field(
        default=[], description="What each factor buys; empty without `effects`."
    )
    answers: list[Answer] = Field(description="Every statement of the answer, as values.")
    warnings: list[Caveat] = Field(
        description="What a reader must know before believing the numbers."
    )
    claims: list[ClaimRow] = Field(
        default=[], description="The study's claims beside what was measured."
    )
    about: About = Field(About(), description="What was run on what.")
    reached: Reached | None = None
    """How narrow the answer's interval is; null without `until`, and while a block is half done."""


def analyse(plan: Plan, frame: pd.DataFrame, records: Records | None = None) -> Analysis:
    """Return the analysis of a plan's table of timings, which has a row for each planned run.

    ``records`` are those that the table was made of.
    """
    kept = records or Records()
    study, y = plan.study, plan.study.total
    fitted = groups_of(study, frame)
    groups = [group_of(study, group) for group in fitted]
    overalls = overalls_of(study, fitted, study.contrast) if study.contrast else []
    ratios = ratios_of(study, fitted, overalls)
    contrasts = contrasts_of(study, fitted, overalls, ratios)
    twins = overalls_of(study, fitted, "control") if "control" in study.factors else []
    control = ratios_of(study, fitted, twins)
    pairs = zip(fitted, groups, strict=True) if study.effects else []
    switches = [found for fit, group in pairs if (found := switches_of(study, fit, group.best))]
    usable = usable_runs(frame, y)
    context = Context(study, groups, scope=scope_of(usable["session"].nunique()))
    answers: list[Answer] = [
        *(found.combination for found in switches if found.combination),
        *(ways_of(study, fitted, groups) if not contrasts else []),
        *(group_answer(group) for group in groups),
        *contrasts,
        *bottlenecks_of(study, usable),
        *([control_of(control)] if control else []),
    ] or [NothingSucceeded(group=None, made=bool(frame["session"].notna().any()))]
    caveats = find_caveats(study, frame, fitted, groups, kept)
    first = first_answer(study, answers, switches)
    begun, whole = begun_blocks(frame)
    reached = (
        reached_by(study, len(whole), intervals_of(fitted, first, answers))
        if begun == whole
        else None
    )
    return Analysis(
        answer=first.text(context),
        screen=screen_of(plan, frame, kept.included, context, answers, switches, caveats, reached),
        reached=reached,
        y=y,
        groups=groups,
        ratios=ratios,
        control=control,
        switches=switches,
        answers=answers,
        warnings=caveats,
        claims=Judge(study, fitted, groups, ratios).rows(),
        about=about(plan, frame, kept),
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


def result_of(files: Results, name: str) -> StudyResult:
    """Return what the records of the study ``name`` give now: each of its files is read once.

    The blocks that are not needed for an interval as narrow as the study asks are as if they were
    not planned. Raise :class:`StudyError` if there is no valid plan of it.
    """
    plan = _plan_of(files, name)
    frame, records = read_table(plan, files.records(name), files.telemetry_folder(name))
    found = analyse(plan, frame, records)
    if found.reached and found.reached.enough and found.reached.blocks < plan.blocks:
        plan, frame = whole_blocks(plan, frame)
        found = analyse(plan, frame, records)
    return StudyResult(plan, frame, found, records)


def look(plan: Plan, files: Results) -> Reached | None:
    """Return how narrow the interval of a plan's answer is by its whole blocks; None if there are
    none."""
    frame, records = read_table(plan, files.records(plan.name), files.telemetry_folder(plan.name))
    plan, frame = whole_blocks(plan, frame)
    return analyse(plan, frame, records).reached if plan.runs else None


def kept_result(files: Results, name: str) -> StudyResult:
    """Return what the step ``analyse`` wrote of the study ``name``. Raise :class:`StudyError` if a
    file is missing."""
    plan = _plan_of(files, name)
    frame, found = read_timings(files.timings(name), plan), read_analysis(files.fit(name))
    check_known("y", found.y, [plan.study.total], "the study's time is another", "fit.json")
    if found.reached and found.reached.enough:
        plan = plan.with_blocks(set(frame["block"]))
    return StudyResult(plan, frame, found)


def _plan_of(files: Results, name: str) -> Plan:
    plan = Plan.read(files.plan(name))
    if plan.name != name:
        raise StudyError(f"{files.plan(name)}: it is the plan of {plan.name!r}")
    return plan


def _analysis_of(files: Results, name: str) -> Analysis:
    """Return the analysis that was written; where there is none, as in a bundle, what the records
    give."""
    if files.fit(name).exists():
        return read_analysis(files.fit(name))
    found = result_of(files, name)
    if not found.records.included:
        raise StudyError(f"{name}: no run is there yet")
    return found.analysis


def ending(studies: Sequence[str], results: Path, address: bool = True) -> list[str]:
    """Return what the terminal says at the end of a start: each study's first screen, and the
    report's address.

    Without ``studies`` they are those of the last start. There is no ``address`` where the folder
    does not stay. Raise :class:`StudyError` where a file is missing.
    """
    files = Results(results)
    names = (
        list(studies)
        or Selected.read(files.selection, "name the studies of an earlier start").studies
    )
    lines = []
    for name in names:
        analysis, start = _analysis_of(files, name), _plan_of(files, name).start
        # a bundle, and a page that was sent, name files of elsewhere
        here = results == Path("results") and all(map(os.path.isfile, start.files.values()))
        lines += [f"{name}:"] * (len(names) > 1) + analysis.screen.lines(
            analysis.answer, analysis.claims, here
        )
    if address and files.report.is_file():
        lines.append(f"report  {files.report.resolve().as_uri()}")
    return lines
