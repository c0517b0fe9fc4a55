"""The content of the page on one study, as values for the template."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from study.analysis.about.epochs import EpochGroup
from study.analysis.about.facts import glossary
from study.analysis.analysis import Analysis
from study.analysis.figures.svg import Chart
from study.analysis.progress import Progress, missing_sentence, progress_of, progress_sentence
from study.analysis.published.beside import Series, beside
from study.analysis.published.claims import Claim, claims_in
from study.analysis.published.measured import ClaimVerdict, verdicts
from study.analysis.report.drawings import (
    latency_chart,
    main_chart,
    order_chart,
    phases_chart,
    published_chart,
    ratios_chart,
    shares_of_best,
    switch_charts,
)
from study.analysis.report.life import life_chart, life_sentence, wall_seconds, with_gaps
from study.analysis.report.notes import counts, reduced, summary
from study.analysis.report.tables import LevelTable, level_tables
from study.analysis.rows import Levelled, level_rows, means_of
from study.analysis.stats.findings import DecodedBefore
from study.analysis.wording.answer import answer_sentence
from study.analysis.wording.cards import Card, cards, first_cards, limit_card
from study.analysis.wording.claims import SILENT, claim_text, claim_title, claim_words
from study.analysis.wording.consequences import Warned, ranked
from study.analysis.wording.switches import switch_sentences
from study.analysis.words import short_key, total_words
from study.artifacts.plan import Plan
from study.config.study import TOTALS_OF_INFERENCE

OPEN_CAVEATS, OPEN_CARDS = 3, 6


@dataclass(frozen=True)
class StudyView:
    """One study's part of the page."""

    name: str
    title: str
    question: str
    summary: list[str]
    counts: str
    progress: Progress
    unfinished: list[str]
    """How far the study is, which comes first; nothing where every planned run is there."""
    cards: list[Card]
    more_cards: list[Card]
    """Those of the verdicts that are folded, so that the claims are not."""
    claims: list[Card]
    first_cards: list[Card]
    """The two for which a table of all studies has room."""
    answer: list[str]
    notes: list[str]
    """What the images and the weights mean for the numbers, and a reduced size."""
    open_caveats: list[Warned]
    more_caveats: list[Warned]
    oddities: list[str]
    glossary: list[tuple[str, str]]
    """What each factor of the study is, where a setting is named by several levels."""
    tables: list[LevelTable]
    main: Chart | None
    why: list[Chart]
    against: list[Chart]
    order: Chart | None
    life: Chart | None
    whole_time: str
    """The wall time of the study, and the share of it that trained."""
    analysis: Analysis
    axis: str
    total: str
    rate: str
    facts: list[tuple[str, str]]
    epochs: list[EpochGroup]
    runs: list[dict[str, Any]]
    beside: list[Series]
    said: list[tuple[Claim, str]]
    """Each published claim of the document, and what this study says of it."""
    pictures: list[dict[str, str]]
    """Title, caption and address of each picture of the study's folder."""
    folder: str
    """Address of the study's files, as seen from the page."""


def view(
    plan: Plan,
    frame: pd.DataFrame,
    analysis: Analysis,
    pictures: list[dict[str, str]],
    folder: str = "",
) -> StudyView:
    """Return all values that the template shows on one study."""
    study = plan.study
    caveats = ranked(analysis.warnings, analysis.groups)
    groups = level_rows(study, frame, analysis)
    series = beside(study, frame, plan.beside, means_of(groups)) if plan.beside else []
    charts = [*switch_charts(analysis), *_present(main_chart(plan, groups, analysis, series))]
    printed = claims_in(plan.claimed) if plan.claimed else []
    found = verdicts(printed, study, analysis)
    spoken = {one.claim.lines: claim_text(one) for one in found}
    told = _cards(plan, groups, analysis)
    claimed = [Card(f"Claim: {claim_title(one.claim)}", one.evidence, *claim_words(one), claim=True) for one in found]
    room = max(1, OPEN_CARDS - len(claimed))
    return StudyView(
        name=plan.name,
        title=study.title,
        question=study.question,
        summary=summary(plan, frame, wall_seconds(frame)),
        counts=counts(plan, frame),
        progress=(progress := progress_of(plan, frame)),
        unfinished=[f"{progress_sentence([progress])} {missing}"] if (missing := missing_sentence(progress)) else [],
        cards=told[:room],
        more_cards=told[room:],
        claims=claimed,
        first_cards=first_cards([*told, *claimed]),
        answer=[
            *(answer_sentence(answer) for answer in analysis.answer),
            *(sentence for switches in analysis.switches for sentence in switch_sentences(switches)),
        ],
        notes=[*reduced(study), *analysis.about.origins],
        open_caveats=caveats[:OPEN_CAVEATS],
        more_caveats=caveats[OPEN_CAVEATS:],
        oddities=analysis.about.oddities,
        glossary=glossary(study),
        tables=level_tables(analysis),
        main=charts[0] if charts else None,
        why=[*charts[1:], *_present(latency_chart(groups), phases_chart(groups, analysis))],
        against=_against(analysis, found, series),
        order=order_chart(plan, groups, analysis),
        life=_life(groups, frame),
        whole_time=life_sentence(frame),
        analysis=analysis,
        axis=short_key(study.curve.x)
        if study.curve
        else ("" if study.effects else ", ".join(short_key(key) for key in study.compared)) or "setting",
        total=total_words(analysis.y),
        rate="images/s" if study.total in TOTALS_OF_INFERENCE else "images/s in training",
        facts=list(analysis.about.facts.items()),
        epochs=analysis.about.epochs,
        runs=_runs(plan, frame, analysis.y),
        beside=series,
        said=[(claim, spoken.get(claim.lines, SILENT)) for claim in printed],
        pictures=pictures,
        folder=folder,
    )


def _cards(plan: Plan, groups: Levelled, analysis: Analysis) -> list[Card]:
    """Return the verdicts of the study itself: the answer, and what takes the time of the setting that it names."""
    best = shares_of_best(plan, groups, analysis)
    decoded = any(isinstance(caveat, DecodedBefore) for caveat in analysis.warnings)
    told = cards(analysis.answer, analysis.groups, plan.study.learning_margin, decoded)
    return [*told, *([limit_card(*best)] if best else [])]


def _against(analysis: Analysis, found: Sequence[ClaimVerdict], series: Sequence[Series]) -> list[Chart]:
    """Return the ratios of the study's contrast with the claimed one, and the published ratios beside ours."""
    claimed = next((one.claim.ratio for one in found if one.claim.ratio is not None), None)
    beside = _present(*(published_chart(one) for one in series))
    return _present(ratios_chart(analysis, claimed), *beside[:1])


def _life(groups: Levelled, frame: pd.DataFrame) -> Chart | None:
    """Return where the whole time of the runs of each group goes."""
    gaps = with_gaps(frame)["between_seconds"]
    return life_chart(
        [(group.setting, rows.assign(between_seconds=gaps.reindex(rows.index))) for group, rows in groups]
    )


def _present(*charts: Chart | None) -> list[Chart]:
    return [chart for chart in charts if chart]


def _runs(plan: Plan, frame: pd.DataFrame, y: str) -> list[dict[str, Any]]:
    """Return the values of each run for the table of all runs, with the file of its record.

    Runs that this machine cannot make are counted at the head of the study, and have no row.
    """
    columns = [
        "run",
        "outcome",
        y,
        "accuracy",
        "steps",
        "images_processed",
        "peak_device_allocated_bytes",
        "peak_host_resident_bytes",
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
    return [
        row | {"outcome": _outcome(row), "file": files.get(str(row["run"]))}
        for row in rows
        if row["outcome"] != "unavailable" or row["run"] not in absent
    ]


def _outcome(row: dict[str, Any]) -> str:
    """Return the outcome of a record, with the marks that it bears."""
    told = [str(row["outcome"]).replace("_", " ")]
    told += ["disturbed"] if row["disturbed"] else []
    if row["excluded"]:
        told.append("excluded" if row["excluded"] == "disturbed" else f"excluded: {row['excluded']}")
    return ", ".join(told)
