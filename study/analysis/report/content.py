"""The content of the page on one study, as values for the template: how far the study is, and the
words in its tables."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from study.analysis.analysis import Analysis
from study.analysis.answers.fastest import level_verdict
from study.analysis.answers.group import Group, LevelSummary
from study.analysis.figures.style import Kept
from study.analysis.stats.optimum import Noise
from study.analysis.table.exclusions import ASIDE, place_of_record
from study.analysis.words import agreeing, bytes_words, listed, number, short, three_digits
from study.artifacts import timing
from study.artifacts.plan import Plan
from study.base.errors import quantity
from study.config import names
from study.config.keys import as_yaml
from study.config.names import level_words
from study.config.settings import description, in_words
from study.config.study import Study, display_level
from study.config.times import TIMES


class StudyProgress(NamedTuple):
    """The planned runs of one study that are there, and those that are missing."""

    study: str
    planned: int
    """Runs that this machine can make, and those whose record is there although their device is
    absent."""
    there: int
    """Planned runs with a record that fits, whatever its outcome."""
    first_block: int | None
    """The first block that lacks a run; None where none is missing."""
    refused: int
    """Missing runs whose record is damaged or does not fit."""

    @property
    def whole(self) -> bool:
        """Whether every planned run is there."""
        return self.there == self.planned

    @property
    def missing(self) -> str:
        """Which runs are missing, as sentences; nothing where the study is whole."""
        if self.whole:
            return ""
        gap = quantity(self.planned - self.there, "run")
        told = f"Missing: {gap}, the first in block {self.first_block}."
        if self.refused:
            have = agreeing(self.refused, "has a record", "have records")
            told += f" {self.refused} of the missing {have} that cannot be used."
        return told


def progress_of(plan: Plan, frame: pd.DataFrame) -> StudyProgress:
    """Return how far ``plan`` is, from its table of timings: a run that is there has a session."""
    rows = frame[~frame["excluded"].isin(ASIDE.values())]  # one of each planned run
    made = set(rows["run"][rows["session"].notna()])
    refused = set(rows["run"][rows["outcome"] == "refused"])
    planned = [run for run in plan.runs if not run.unavailable or run.name in made]
    missing = [run for run in planned if run.name not in made]
    return StudyProgress(
        study=plan.name,
        planned=len(planned),
        there=len(planned) - len(missing),
        first_block=min((run.block for run in missing), default=None),
        refused=sum(run.name in refused for run in missing),
    )


def progress_sentence(studies: Sequence[StudyProgress]) -> str:
    """Return how many of the planned runs of all studies are there, and that the report is not
    final if some are not.

    A page says it once, before its first answer, and only if a study is not whole.
    """
    there = sum(study.there for study in studies)
    planned = sum(study.planned for study in studies)
    count = f"{there} of {planned} planned runs {agreeing(planned, 'is', 'are')} there"
    whole = all(study.whole for study in studies)
    return f"{count}." if whole else f"{count}: this is no final report."


class StudyView(NamedTuple):
    """One study's part of the page."""

    name: str
    study: Study
    analysis: Analysis
    progress: StudyProgress
    unfinished: list[str]
    """How far the study is, which comes first; nothing where every planned run is there."""
    glossary: list[tuple[str, str]]
    """What each factor of the study is, where a setting is named by several levels."""
    charts: list[Kept]
    axis: str
    total: str
    runs: list[dict[str, Any]]
    run_columns: list["ResourceRow"]
    """What the table of all runs has beside a time, an accuracy and an outcome."""
    folder: str
    """Address of the study's files, as seen from the page."""


def view(
    plan: Plan, frame: pd.DataFrame, analysis: Analysis, charts: list[Kept], folder: str = ""
) -> StudyView:
    """Return all values that the template shows on one study."""
    study, runs = plan.study, _runs(plan, frame, analysis.y)
    progress = progress_of(plan, frame)
    return StudyView(
        name=plan.name,
        study=study,
        analysis=analysis,
        progress=progress,
        unfinished=[]
        if progress.whole
        else [f"{progress_sentence([progress])} {progress.missing}"],
        glossary=glossary(study),
        charts=charts,
        axis=in_words(study.curve.x)
        if study.curve
        else ("" if study.effects else ", ".join(in_words(key) for key in study.compared))
        or "setting",
        total=TIMES[study.total].heading,
        runs=runs,
        run_columns=[
            column for column in RUN_COLUMNS if any(run[column.key] is not None for run in runs)
        ],
        folder=folder,
    )


def glossary(study: Study) -> list[tuple[str, str]]:
    """Return each name that the study gives with its levels, and each factor with its levels and
    what it is.

    Where a setting has a level of one factor there are only the names.
    """
    whole = names.whole(study.names, study.factors, study.only)
    told = [
        (name, ", ".join(f"{key}: {as_yaml(level)}" for key, level in own.items()))
        for name, own in whole.items()
    ]
    if len(study.compared) < 3:
        return told
    for key in study.compared:
        if key == "device":
            continue
        levels = []  # in words, each with what the study's file has where that is something else
        for level in study.factors[key]:
            word, as_shown = level_words(key, level), str(display_level(study, key, level))
            plain = as_shown if word == str(level) else word
            alike = isinstance(level, bool) or plain == as_shown
            levels.append(plain if alike else f"{word} = {as_shown}")
        told.append((f"{in_words(key)} ({', '.join(levels)})", description(key)))
    return told


def _runs(plan: Plan, frame: pd.DataFrame, y: str) -> list[dict[str, Any]]:
    """Return the values of each run for the table of all runs, with the file of its record.

    Runs that this machine cannot make are counted at the head of the study, and have no row.
    """
    columns = [
        "run",
        "outcome",
        y,
        "accuracy",
        *(column.key for column in RUN_COLUMNS),
        "session",
        "disturbed",
        "excluded",
    ]
    files = {run.name: run.file for run in plan.runs}
    rows = [
        {str(key): None if pd.isna(value) else value for key, value in row.items()}
        for row in frame[columns].rename(columns={y: "seconds"}).to_dict(orient="records")
    ]
    absent = {run.name for run in plan.runs if run.unavailable}
    shown_rows = []
    for row in rows:
        name, excluded = str(row["run"]), row["excluded"]
        if row["outcome"] == "unavailable" and name in absent:
            continue
        told = [str(row["outcome"]).replace("_", " ")]  # with the marks that the record bears
        told += ["disturbed"] if row["disturbed"] else []
        if excluded:
            told.append("excluded" if excluded == "disturbed" else f"excluded: {excluded}")
        place = place_of_record(name, excluded)
        file = place_of_record(files.get(name, ""), excluded)
        shown_rows.append(row | {"outcome": ", ".join(told), "place": place, "file": file})
    return shown_rows


NONE = "\N{EN DASH}"


def level_row(level: LevelSummary, group: Group, margin: float) -> dict[str, str]:
    """Return the cells of one row of the table of a group's settings, in a study with this margin.

    Its ``interval`` is in brackets, or empty where there is none. The ``look`` is how the row is
    marked, beside its words: ``best``, ``doubt`` or nothing.
    """
    doubt = "doubt" if level.label in group.ineligible else ""
    row = {
        "label": level.label,
        "time": NONE,
        "interval": "",
        "times_best": NONE,
        "accuracy": f"{100 * level.accuracy:.1f}%" if level.accuracy is not None else NONE,
        "verdict": level_verdict(level, group, margin),
        "look": "best" if level.label == group.best else doubt,
    }
    if level.time:
        row["time"] = three_digits(level.time.value)
        if level.time.bounds:
            row["interval"] = "({} to {})".format(*map(three_digits, level.time.bounds))
        best = group.seconds.get(group.best or "")
        if best:
            row["times_best"] = f"{level.time.value / best:.2f}"
        ratio = group.ratios.get(level.label)
        if ratio and ratio.bounds and row["times_best"] != NONE:
            row["times_best"] += " ({} to {})".format(*map(short, ratio.bounds))
    return row


def noise_words(found: Noise) -> str:
    """Return what runs with the same setting differ by."""
    names = {"noise": "runs of a block", "block": "blocks of a start", "start": "starts"}
    between = [
        f"between {names[name]} by {100 * spread:.2g}%" for name, spread in found.spreads.items()
    ]
    return f"The same setting differs {listed(between)}, by {quantity(found.blocks, 'block')}."


FORMATS: dict[timing.Format, Callable[[float], str]] = {
    "count": lambda value: f"{value:,.0f}",
    "number": number,
    "percent": lambda value: f"{value:.0f}%",
    "bytes": bytes_words,
}


class ResourceRow(NamedTuple):
    """One row of the page's table: an entry of a level's ``resources``, its heading, and the
    function that words it."""

    key: str
    words: str
    show: Callable[[float], str]


RUN_COLUMNS = [
    ResourceRow("loss", "loss", number),
    ResourceRow("steps", "steps", "{:.0f}".format),
    ResourceRow("images_processed", "images", "{:.0f}".format),
    ResourceRow("peak_device_allocated_bytes", "peak memory, device", bytes_words),
    ResourceRow("peak_host_resident_bytes", "peak memory, host", bytes_words),
]


def resources(group: Group) -> list[ResourceRow]:
    """Return the rows of which any level of ``group`` has a value, in the order of the table of
    timings."""
    many = any(level.resources.get("replicas", 1) > 1 for level in group.levels)
    return [
        ResourceRow(key, resource.heading, FORMATS[resource.format])
        for key, resource in timing.resources().items()
        if any(key in level.resources for level in group.levels) and (many or not resource.shared)
    ]
