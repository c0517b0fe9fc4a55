"""The first screen of a study, whose parts the page and the terminal print alike: one file for each
part."""

from collections.abc import Mapping, Sequence

import pandas as pd
from pydantic import Field

from study.analysis.answers import Answer, first_answer
from study.analysis.answers.claim import ClaimRow
from study.analysis.answers.context import Context, capital
from study.analysis.answers.contrast import Contrast, side
from study.analysis.answers.fastest import Fastest
from study.analysis.answers.switches import Switches
from study.analysis.answers.ways import Ways
from study.analysis.caveats import Caveat
from study.analysis.rows import level_rows
from study.analysis.screen.could_change import Change, changes_of
from study.analysis.screen.job import job_of
from study.analysis.screen.limit import Limit, limit_of
from study.analysis.screen.next_step import Next, next_of
from study.analysis.words import listed
from study.artifacts.block import Reached
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.base.strict import Strict


class Screen(Strict):
    """What a study's first screen says beside its answer, its claims and its chart."""

    job: list[str]
    chart: str = Field(description="What the runs of the main chart show at 95%.")
    scope: str = Field(
        "95%", description="Of which starts intervals and verdicts tell: `95% in this start`."
    )
    limit: Limit | None
    changes: list[Change] = Field(description="What could change the answer, at most two.")
    other_notes: int = Field(description="Notes that change no verdict, and are counted.")
    next: Next | None = Field(description="Null where nothing is open.")

    def lines(self, answer: str, claims: Sequence[ClaimRow], here: bool = True) -> list[str]:
        """Return the first screen of a terminal, with the answer and the claims; each line has its
        name before it. A command that cannot be typed ``here`` is none."""
        parts = [("answer", answer.replace("**", "")), ("job", "; ".join(self.job))]
        for row, before in zip(claims, [None, *claims], strict=False):
            claim = "the same" if before and before.claim == row.claim else f'"{row.claim}"'
            parts.append(
                (
                    "claim",
                    f"{row.word}: {claim}. {row.measured}{f': {row.note}' if row.note else ''}",
                )
            )
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
    switches: Sequence[Switches],
    caveats: Sequence[Caveat],
    reached: Reached | None,
) -> Screen:
    """Return the first screen of a study. ``reached`` is how narrow its answer's interval is, where
    that was asked."""
    first = first_answer(plan.study, answers, switches)
    limit = limit_of(
        context, first, level_rows(plan.study, frame, context.groups), plan.study.total
    )
    changes = changes_of(context, first, caveats)
    following = next_of(plan, context, first, answers, limit, frame)
    if following and plan.start != plan.start.without_folders():
        text = f"{following.text} Start it as before, with folders that are left out here."
        following = following.model_copy(update={"command": None, "text": text.strip()})
    return Screen(
        job=[*job_of(plan, records), *([reached.text()] if reached else [])],
        chart=_shown(context, first),
        scope=context.scope,
        limit=limit,
        changes=changes,
        other_notes=len(caveats) - len(changes),
        next=following,
    )


def _shown(context: Context, first: Answer | Switches) -> str:
    """Return what the runs show at 95%, as the title of their chart."""
    if isinstance(first, Ways) and first.decided:
        others = context.who(first.beside.group) if len(first.ways) == 2 else "every other way"
        if equal := [context.who(way.group) for way in first.ways[1:] if first.equal(way)]:
            return (
                f"{capital(listed([context.who(first.ways[0].group), *equal]))} are equal "
                f"within {context.margin}"
            )
        return f"{capital(context.who(first.ways[0].group))} is faster than {others}"
    if isinstance(first, Fastest) and first.slower and not first.machine:
        return (
            f"{capital(context.setting(first.level.label))} is faster than "
            f"{context.settings(first.slower)}"
        )
    if isinstance(first, Contrast) and first.decided:
        names = [
            side(context.study, first.contrast, level) for level in (first.slower, first.faster)
        ]
        if first.equal:
            return f"{capital(listed(names[::-1]))} are equal within {context.margin}"
        if first.one_way:
            slower, faster = names if first.least.ratio.value > 1 else names[::-1]
            everywhere = first.least != first.most and all(
                one.together.excludes_one for one in (first.least, first.most)
            )
            return f"{capital(faster)} is faster than {slower}{' at every setting' * everywhere}"
    return "Every run"
