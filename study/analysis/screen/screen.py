"""The first screen as values: the page and the terminal print the same strings from it."""

from collections.abc import Mapping, Sequence

import pandas as pd
from pydantic import Field

from study.analysis.answers.answer import Answer, first_answer
from study.analysis.answers.context import Context
from study.analysis.answers.switches import Switches
from study.analysis.caveats.caveat import Caveat
from study.analysis.rows import level_rows
from study.analysis.screen.could_change import Change, changes_of
from study.analysis.screen.job import job_of
from study.analysis.screen.limit import Limit, limit_of
from study.analysis.screen.next_step import Next, next_of
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.base.strict import Strict


class Screen(Strict):
    """What a study's first screen says beside its answer, its claims and its chart."""

    job: list[str]
    limit: Limit | None
    changes: list[Change] = Field(description="What could change the answer, at most two.")
    next: Next | None = Field(description="Null where nothing is open.")


def screen_of(
    plan: Plan,
    frame: pd.DataFrame,
    records: Mapping[str, Record],
    context: Context,
    answers: Sequence[Answer],
    switches: Sequence[Switches],
    caveats: Sequence[Caveat],
) -> Screen:
    """Return the first screen of a study."""
    first = first_answer(plan.study, answers, switches)
    limit = limit_of(context, first, level_rows(plan.study, frame, context.groups), plan.study.total)
    return Screen(
        job=job_of(plan, records),
        limit=limit,
        changes=changes_of(context, first, caveats),
        next=next_of(plan, context, first, answers, limit, frame),
    )
