"""What a start will do: its runs and blocks, what an earlier start left half made, and the time that it will take."""

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby

from study.artifacts.durations import expected_seconds
from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.record_store import move_aside, next_session, session_of
from study.artifacts.run import Run
from study.artifacts.session import Session, SessionBlock, read_session, write_session
from study.base.quantities import duration_words, quantity
from study.config.selection import Selection
from study.host.allocation import MARGIN_SECONDS, end_of_allocation


def pending(plan: Plan, files: Results) -> list[Run]:
    """Return the runs that this machine can make and that have no record yet."""
    return [run for run in plan.runs if not run.unavailable and not _is_there(plan, run, files)]


def known_seconds(plan: Plan, files: Results) -> dict[str, float]:
    """Return by their keys the seconds that the runs of ``plan`` take, where earlier records tell them."""
    return expected_seconds({files.record(plan.name, run.file): run.key for run in plan.runs})


def describe(
    plans: Sequence[Plan],
    pending: Mapping[str, Sequence[Run]],
    known: Mapping[str, Mapping[str, float]],
    budget_minutes: float | None,
    files: Results,
) -> list[str]:
    """Return what a start will do, in lines: the runs, where they execute, and how long that is expected to take.

    ``pending`` holds the runs to make by study, ``known`` the seconds of a run by study and key.
    """
    lines = [line for plan in plans for line in summary(plan, files)]
    if not any(pending.values()):
        return [*lines, "nothing is left to measure"]
    times = {key: seconds for study in known.values() for key, seconds in study.items()}
    time = expected_words([run.key for runs in pending.values() for run in runs], times)
    limit = "" if budget_minutes is None else f" (time budget: {budget_minutes:g} min)"
    return [*lines, where(plans[0]), f"expected time: {time}{limit}"]


def where(plan: Plan) -> str:
    """Return the line that says where the runs of ``plan`` execute, and why there."""
    place = "on the host" if plan.engine == "none" else f"in containers of {plan.engine}"
    return f"runs execute {place} ({plan.engine_reason})"


def listed(plan: Plan, runs: Sequence[str]) -> list[str]:
    """Return a line for each of the named runs of ``plan``: its block, its setting and its image."""
    lines = []
    wanted = set(runs)
    for run in (run for run in plan.runs if run.name in wanted):
        image = "" if plan.engine == "none" else f", in {plan.images[run.image].reference}"
        lines.append(f"{plan.name}, block {run.block}: {run.name} ({run.setting.label}){image}")
    return lines


def of_plan(plan: Plan, files: Results) -> list[str]:
    """Return what a start of one study would do, in lines, to follow its table of runs."""
    runs = pending(plan, files)
    lines = ["", f"{plan.name}: {quantity(len(plan.runs), 'run')} planned", *summary(plan, files)]
    time = expected_words([run.key for run in runs], known_seconds(plan, files)) if runs else "none"
    return [*lines, f"expected time: {time}"]


def summary(plan: Plan, files: Results) -> list[str]:
    """Return a line for each device of a study with its runs, and one for each reason why runs cannot be made here."""
    there = Counter(run.settings.device for run in plan.runs if _is_there(plan, run, files))
    lines = []
    for device in dict.fromkeys(run.settings.device for run in plan.runs):
        left = [run for run in pending(plan, files) if run.settings.device == device]
        blocks = len({run.block for run in left})
        todo = f"{quantity(len(left), 'run')} pending in {quantity(blocks, 'block')}" if left else "no run pending"
        if left or there[device]:
            lines.append(f"{plan.name} on {device}: {todo}, {there[device]} done")
        absent = Counter(
            run.unavailable
            for run in plan.runs
            if run.settings.device == device and run.unavailable and not _is_there(plan, run, files)
        )
        lines += [f"{plan.name} on {device}: {quantity(n, 'run')} left out: {why}" for why, n in absent.items()]
    return lines


def expected_words(keys: Sequence[str], known: Mapping[str, float]) -> str:
    """Return how long the runs with these keys are expected to take, from the seconds of a run by known key."""
    seconds = [known[key] for key in keys if key in known]
    unknown = len(keys) - len(seconds)
    if not seconds:
        return "not known until the first block is done"
    words = f"about {duration_words(sum(seconds))}, from earlier runs with the same settings"
    return f"{words}; {quantity(unknown, 'run')} of other settings not counted" if unknown else words


def _is_there(plan: Plan, run: Run, files: Results) -> bool:
    return os.path.lexists(files.record(plan.name, run.file))


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
