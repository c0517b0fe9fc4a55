"""One study's result: its plan, its table of timings and its analysis, which every page, picture and program shares."""

from dataclasses import dataclass, field

import pandas as pd

from study.analysis.analysis import Analysis, analyse, read_analysis
from study.analysis.table.files import read_table, read_timings, read_warm_up_runs
from study.artifacts.checked import Records
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, read_plan
from study.base.errors import StudyError


@dataclass(frozen=True)
class StudyResult:
    """What one study's runs give."""

    plan: Plan
    frame: pd.DataFrame
    """The table of timings."""
    analysis: Analysis
    records: Records = field(default_factory=Records)
    """Those that the table is from, without their steps; none where table and analysis were read from their files."""


def result_of(files: Results, name: str) -> StudyResult:
    """Return what the records of the study ``name`` give now: each of its files is read once.

    Raise :class:`StudyError` if there is no valid plan of it.
    """
    plan = _plan_of(files, name)
    frame, records = read_table(plan, files.records(name), files.telemetry_folder(name))
    return StudyResult(plan, frame, analyse(plan, frame, records, read_warm_up_runs(files.root)), records)


def kept_result(files: Results, name: str) -> StudyResult:
    """Return what the step ``analyse`` wrote of the study ``name``. Raise :class:`StudyError` if a file is missing."""
    plan = _plan_of(files, name)
    return StudyResult(plan, read_timings(files.timings(name), plan), read_analysis(files.fit(name)))


def _plan_of(files: Results, name: str) -> Plan:
    plan = read_plan(files.plan(name))
    if plan.name != name:
        raise StudyError(f"{files.plan(name)}: it is the plan of {plan.name!r}")
    return plan
