"""The first screen of a study, whose parts the page and the terminal print alike: one file for each
part, and here what could change the answer."""

from collections.abc import Mapping, Sequence

import pandas as pd

from study.analysis.answers import Answer
from study.analysis.answers.claim import ClaimRow
from study.analysis.answers.context import Context
from study.analysis.answers.switches import Switches
from study.analysis.caveats import Caveat
from study.analysis.caveats.conditions import UnknownWork
from study.analysis.caveats.runs import Unsuccessful
from study.analysis.screen.law import LawSummary, law_of
from study.analysis.screen.next_step import Limit, Next, limit_of, next_of
from study.analysis.screen.provenance import job_of
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.base.errors import quantity
from study.base.strict import Strict

MOST = 2
"""Changes that are open; the others are counted."""


class Change(Strict):
    """One caveat with which the answer changes."""

    cause: str
    becomes: str


class Screen(Strict):
    """What a study's first screen says beside its answer, its claims and its chart."""

    job: list[str]
    chart: str
    """What the runs of the main chart show at 95%."""
    scope: str = "95%"
    """Of which starts intervals and verdicts tell: `95% in this start`."""
    law: LawSummary | None = None
    """The curve in words; null without one."""
    limit: Limit | None
    changes: list[Change]
    """What could change the answer, at most two."""
    other_notes: int
    """Notes that change no verdict, and are counted."""
    next: Next | None
    """Null where nothing is open."""

    def lines(self, answer: str, claims: Sequence[ClaimRow], here: bool = True) -> list[str]:
        """Return the first screen of a terminal, with the answer and the claims; each line has its
        name before it. A command that cannot be typed ``here`` is none."""
        parts = [("answer", answer.replace("**", "")), ("job", "; ".join(self.job))]
        for row, before in zip(claims, [None, *claims], strict=False):
            claim = "the same" if before and before.claim == row.claim else f'"{row.claim}"'
            over = f"; ours / theirs {row.quotient}" * bool(row.quotient)
            note = f": {row.note}" * bool(row.note)
            parts.append(("claim", f"{row.word}: {claim}. {row.measured}{over}{note}"))
        if self.limit:
            parts.append(
                ("limit", f"{self.limit.phase}: {self.limit.text[0].lower()}{self.limit.text[1:]}")
            )
        may = " ".join(f"{change.cause} {change.becomes}" for change in self.changes)
        if more := self.other_notes:
            told = (
                f"{more} {'more ' * bool(may)}note{'s' * (more != 1)}"
                f"{'; none changes a verdict' * (not may)}."
            )
            may = f"{may} {told}".strip()
        parts.append(("may", may))
        if self.next:
            words = f". {self.next.text}"
            if self.next.command:
                words = f": {self.next.command}" if here else f", where it was measured{words}"
            parts.append(("next", f"{self.next.title}{words}"))
        return [f"{name:<8}{text}".rstrip() for name, text in parts if text]


def screen_of(
    plan: Plan,
    frame: pd.DataFrame,
    records: Mapping[str, Record],
    context: Context,
    answers: Sequence[Answer],
    first: Answer | Switches,
    caveats: Sequence[Caveat],
    claims: Sequence[ClaimRow],
) -> Screen:
    """Return the first screen of a study, whose question asks for the answer ``first``."""
    title = first.title(context) or "Every run"
    law = law_of(context, title)
    limit = limit_of(plan, context, first)
    better = [
        Change(cause=f"“{row.claim}” is not told:", becomes=f"{row.better}.")
        for row in claims
        if row.better
    ]
    changes = changes_of(context, first, caveats)
    following = next_of(plan, context, first, answers, limit, frame)
    if following and plan.start != plan.start.without_folders():
        text = f"{following.text} Start it as before, with folders that are left out here."
        following = following.model_copy(update={"command": None, "text": text.strip()})
    return Screen(
        job=job_of(plan, records),
        chart=law.title if law and len(context.groups) == 1 else title,
        law=law,
        scope=context.scope,
        limit=limit,
        changes=[*changes, *better][:MOST],
        other_notes=len(caveats) - len(changes),
        next=following,
    )


def changes_of(
    context: Context, first: Answer | Switches, caveats: Sequence[Caveat]
) -> list[Change]:
    """Return the caveats that change a word or the first digit of the answer, those that change a
    word first."""
    found = []
    for caveat in caveats:
        means = {group.setting: own for group in context.groups if (own := caveat.applied(group))}
        told = first.becomes(context, means) if means else None
        if told:
            found.append(
                (told[:2], Change(cause=f"{caveat.text()}.", becomes=f"{caveat.IF}, {told[2]}"))
            )
    found.sort(key=lambda one: one[0], reverse=True)
    changes = [change for _, change in found]
    # Nothing that is measured tells whether all settings do the same.
    for caveat in caveats:
        if isinstance(caveat, UnknownWork):
            changes.insert(0, Change(cause=f"{caveat.text()}.", becomes=caveat.effect()))
    # The settings without a run that counts could have been the fastest.
    failed = sum(len(caveat.runs) for caveat in caveats if isinstance(caveat, Unsuccessful))
    group = context.group(first.lacks.group) if first.lacks and first.lacks.group else None
    missing = [level.label for level in group.levels if not level.time] if group else []
    if missing and failed:
        cause = f"{quantity(failed, 'run')} failed, and none of {context.settings(missing)} counts."
        becomes = "It could be the fastest." if len(missing) == 1 else "Each could lead."
        changes.insert(0, Change(cause=cause, becomes=becomes))
    return changes[:MOST]
