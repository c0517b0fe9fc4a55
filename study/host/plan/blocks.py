"""The blocks of a start: what it means to make, and what an earlier start left half made."""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby

from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.record_store import move_aside, next_session, session_of
from study.artifacts.run import Run
from study.artifacts.session import Session, SessionBlock, read_session, write_session
from study.config.selection import Selection
from study.host.allocation import MARGIN_SECONDS, end_of_allocation


def exclude_broken_blocks(study: str, files: Results) -> None:
    """Move the records of each block that the last start began and did not end to ``broken``, and say so.

    A run of it counts as made if it has a record of that start, however it ended. Runs that were planned later, or
    measured in another start, are no part of such a block.
    """
    session = read_session(files.session(study))
    for block in session.blocks if session else []:
        paths = [files.record(study, name) for name in block.records]
        made = [path for path in paths if session and session_of(path) == session.number]
        if block.ended or not made or len(made) == len(paths):
            continue
        for path in made:
            move_aside(path, "broken")
        print(
            f"block {block.block} of {study} was broken off in session {session.number if session else 0}: {len(made)} "
            "record(s) are excluded, and the block is measured anew",
            file=sys.stderr,
            flush=True,
        )


def note(
    plan: Plan,
    pending: Sequence[Run],
    selection: Selection,
    began: float,
    files: Results,
    expected: Mapping[str, float] | None = None,
) -> None:
    """Write what this start means to do in a study, whose runs ``pending`` have no record yet. Without any, write none.

    ``began`` is the start's time in epoch seconds, and ``expected`` the seconds of a run by its key.
    """
    if not pending:
        return
    budget, end = selection.time_budget_minutes, end_of_allocation()
    limits = [*([] if budget is None else [began + 60 * budget]), *([] if end is None else [end - MARGIN_SECONDS])]
    session = Session(
        number=next_session(files.records(plan.name)),
        name=datetime.fromtimestamp(began, UTC).strftime("%Y%m%dT%H%M%S.%fZ"),
        warm_up_run=selection.warm_up_run,
        quiet_wait_seconds=selection.quiet_wait_seconds,
        deadline=min(limits, default=None),
        blocks=[
            SessionBlock(block=block, records={run.file: run.key for run in part})
            for block, part in groupby(pending, key=lambda run: run.block)
        ],
        expected=dict(expected or {}),
    )
    write_session(session, files.session(plan.name))
