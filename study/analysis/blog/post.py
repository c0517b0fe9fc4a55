"""A blog's post as text: the sections, tables and figures of the published blog, each under its name there.

Pure functions: values in, Markdown out. Where the blog's own number misleads, the corrected one stands beside it.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from study.analysis.blog.markdown import front_matter, inline, paragraph, picture, table
from study.analysis.published.claims.measured import verdicts
from study.analysis.published.claims.printed import Claim
from study.analysis.stats.analysis import Analysis, Group, Level
from study.analysis.table.progress import Progress
from study.analysis.wording import blog as words
from study.analysis.wording.answer import answer_sentence
from study.analysis.wording.caveats import caveat_sentence
from study.analysis.wording.claims import claim_text
from study.analysis.wording.levels import level_verdict
from study.analysis.wording.progress import missing_sentence, progress_sentence
from study.analysis.wording.sources import citation
from study.analysis.wording.verdict import verdict_sentence
from study.analysis.words import coefficients, device_words, law_formula, number, setting_words, short_key
from study.artifacts.plan import Plan
from study.artifacts.record import Record

PUBLISHED_LAW = r"$$T(b) = \frac{c}{b^\alpha} + T_{min}$$"
BLOG_FIGURES = {
    "batch_size_performance": ("Performance Visualisation", "batch_size_performance"),
    "telemetry_cuda": ("GPU Utilisation Patterns", "GPU-batch-test"),
}
"""By a figure's name: the heading and the name of the same figure in the blog."""


@dataclass(frozen=True)
class Picture:
    """A figure of a study; ``address`` is that of its file, relative to the post."""

    name: str
    title: str
    caption: str
    alt: str
    address: str


@dataclass(frozen=True)
class Part:
    """One study of the post."""

    plan: Plan
    records: Sequence[Record]
    analysis: Analysis
    pictures: Sequence[Picture]
    progress: Progress

    @property
    def published(self) -> str | None:
        """The published study whose claims this one is compared with."""
        return self.plan.study.claims_of or self.plan.study.published


def blog_name(figure: str) -> str:
    """Return the name of a figure in the blog; its own, if the blog has none like it."""
    return BLOG_FIGURES.get(figure, ("", figure))[1]


def last_start(parts: Sequence[Part]) -> datetime:
    """Return when the last run of a post began: its date, which the records alone decide."""
    found = []
    for record in (record for part in parts for record in part.records):
        with suppress(ValueError, OverflowError):  # the record of another clock, or an edited one
            found.append(datetime.fromisoformat(record.started).astimezone(UTC))
    return max(found, default=datetime.fromtimestamp(0, UTC))


def post(parts: Sequence[Part], claims: Sequence[Claim]) -> str:
    """Return the post about some studies, which have a record together, beside the published ``claims``."""
    body = [section for part in parts for section in _study(part)]
    return "\n\n".join([_front(parts), *body, *_claims(parts, claims)]) + "\n"


def _front(parts: Sequence[Part]) -> str:
    answers = [answer_sentence(answer) for answer in parts[0].analysis.answer]
    devices = sorted({record.settings.device for part in parts for record in part.records})
    images = [picture.address for part in parts for picture in part.pictures if picture.name in BLOG_FIGURES]
    values: dict[str, str | bool | list[str]] = {
        "layout": "post",
        "title": words.title_words([part.plan.study.title for part in parts]),
        "description": answers[0],
        "categories": ["deep-learning", "hardware", "performance"],
        "tags": [{"cpu": "cpu", "cuda": "gpu"}[device] for device in devices] + ["performance-analysis"],
        "toc": True,
    }
    if any(group.curve for part in parts for group in part.analysis.groups):
        values["use_math"] = True
    if images:
        values["image"] = images[0]
    return front_matter(last_start(parts), values)


def _study(part: Part) -> Iterator[str]:
    study, analysis = part.plan.study, part.analysis
    yield f"## {inline(study.title)}"
    yield paragraph(study.question)
    missing = missing_sentence(part.progress)
    if missing:
        yield f"> {paragraph(f'{progress_sentence([part.progress])} {missing}')}"
    yield _items(answer_sentence(answer) for answer in analysis.answer)
    yield "### Experimental Setup"
    yield "#### Hardware Configuration"
    yield _named(words.hardware(part.records))
    yield "#### Methodology"
    yield _named(words.method(part.plan, part.records))
    yield f"### {_factor(part).title()} Performance Results"
    yield paragraph(f"{words.time_sentence(analysis.y)} {words.ROWS}")
    for group in analysis.groups:
        yield f"**{inline(device_words(group.label))}**"
        yield _times(group, part)
    yield from _pictures(part, ours=False)
    yield from _speedup(part)
    yield from _laws(part)
    yield from _pictures(part, ours=True)
    if analysis.warnings:
        yield "### Caveats"
        yield _items(caveat_sentence(caveat) for caveat in analysis.warnings)


def _factor(part: Part) -> str:
    curve = part.plan.study.curve
    return short_key(curve.x) if curve else "setting"


def _items(sentences: Iterator[str]) -> str:
    return "\n".join(f"- {paragraph(sentence)}" for sentence in sentences)


def _named(facts: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"- **{inline(name)}**: {inline(value)}" for name, value in facts)


def _times(group: Group, part: Part) -> str:
    """Return the blog's table of a group, with interval, accuracy and the corrected share beside its columns."""
    least = min((level.time.value for level in group.levels if level.time), default=None)
    best = next((level.time.value for level in group.levels if level.time and level.label == group.best), None)
    head = [
        _factor(part).title(),
        words.time_heading(part.analysis.y),
        "95% interval",
        "Relative Performance",
        "Relative Performance, corrected",
        "Accuracy",
        "Runs",
        "Verdict",
    ]
    rows = [
        [
            level.label,
            f"{number(level.time.value)} s" if level.time else words.NONE,
            words.interval_words(level.time.low, level.time.high) if level.time else words.NONE,
            _share(level, least),
            words.NONE if level.undetermined or level.label in group.unfair else _share(level, best),
            f"{level.accuracy:.1%}" if level.accuracy is not None else words.NONE,
            str(level.runs),
            level_verdict(level, group),
        ]
        for level in group.levels
    ]
    return table(head, rows)


def _share(level: Level, fastest: float | None) -> str:
    return f"{100 * fastest / level.time.value:.1f}%" if level.time and fastest else words.NONE


def _pictures(part: Part, ours: bool) -> Iterator[str]:
    """Yield the figures that the blog has, or those of ours that it has not."""
    mine = [one for one in part.pictures if (one.name not in BLOG_FIGURES) == ours]
    if ours and mine:
        yield "### More Figures"
    for one in mine:
        yield f"#### {inline(one.title)}" if ours else f"### {BLOG_FIGURES[one.name][0]}"
        yield picture(one.alt, one.address)
        yield paragraph(one.caption)


def _speedup(part: Part) -> Iterator[str]:
    """Yield the ratios of the contrast: between devices under the blog's names."""
    ratios = part.analysis.ratios
    if not ratios:
        return
    devices = all((ratio.slower, ratio.faster) == ("cpu", "cuda") for ratio in ratios)
    head = ["CPU Training Time", "GPU Training Time"] if devices else ["Compared", "First Time", "Second Time"]
    yield "### Performance Speedup"
    yield paragraph(words.RATIOS)
    yield table(
        ["Setting", *head, "Speedup Factor", "95% interval"],
        [
            [
                setting_words(ratio.at) or "all",
                *([] if devices else [f"{ratio.slower} over {ratio.faster}"]),
                f"{number(ratio.slower_seconds)} s",
                f"{number(ratio.faster_seconds)} s",
                number(ratio.ratio.value),
                words.interval_words(ratio.ratio.low, ratio.ratio.high),
            ]
            for ratio in ratios
        ],
    )


def _laws(part: Part) -> Iterator[str]:
    """Yield the blog's law of T(b), and what the times determine of it and of the other laws."""
    groups = [(group.label, group.curve) for group in part.analysis.groups if group.curve]
    if not groups:
        return
    yield "### Mathematical Model"
    if _factor(part) == "batch size":
        yield PUBLISHED_LAW
        yield paragraph(words.PUBLISHED_LAW)
    yield paragraph(words.LAWS)
    for label, curve in groups:
        yield f"**{inline(device_words(label))}**: {inline(verdict_sentence(curve.verdict))}"
        yield table(
            ["Law", "AICc", "Weight", "Lack of fit, p", "Coefficients (95%)"],
            [
                [
                    law_formula(name),
                    "undefined" if law.aicc is None else f"{law.aicc:.1f}",
                    words.NONE if law.weight is None else f"{law.weight:.2f}",
                    words.NONE if law.lack_of_fit_p is None else f"{law.lack_of_fit_p:.2g}",
                    "no finding"
                    if name == "power" and not law.reported
                    else coefficients(law.coefficients, law.intervals),
                ]
                for name, law in curve.models.items()
            ],
        )


def _claims(parts: Sequence[Part], claims: Sequence[Claim]) -> Iterator[str]:
    """Yield the published claims of the studies' documents, each beside what these studies measured."""
    documents = {part.published for part in parts}
    mine = [claim for claim in claims if claim.study in documents]
    if not mine:
        return
    yield "## Published Claims"
    yield paragraph(words.CLAIMS)
    yield table(
        ["Claim", "From the printed figures", "Measured here", "Source"],
        [
            [
                claim.published,
                claim.verdict,
                " ".join(said for part in parts for said in _measured(claim, part)) or words.NOT_MEASURED,
                _source(claim),
            ]
            for claim in mine
        ],
    )


def _measured(claim: Claim, part: Part) -> list[str]:
    """Return sentences on what one study says of a claim; none where it cannot speak to it."""
    return [claim_text(one) for one in verdicts([claim], part.plan.study, part.analysis)]


def _source(claim: Claim) -> str:
    """Return the document of a claim and the place in it."""
    return citation(claim.source, claim.place)
