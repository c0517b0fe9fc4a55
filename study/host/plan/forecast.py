"""What a start will do: its runs and blocks, and the time that it will take."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from study.artifacts.block import Block, blocks_of, expected_seconds
from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.record_store import Session, next_session
from study.artifacts.run import Run
from study.base.devices import surroundings
from study.base.errors import duration_words, quantity
from study.base.extras import scheduler
from study.config.selection import Selection

MARGIN_SECONDS = 60.0
"""Seconds before the end of an allocation in which no run is begun: the last record is to be
written, and a report."""


def pending(plan: Plan, files: Results) -> list[Run]:
    """Return the runs that a start makes: those of each block that lacks a record, and so is
    measured as a whole."""
    return list(
        chain.from_iterable(block.runs for block in blocks_of(plan, files) if block.missing(files))
    )


def describe(plans: Sequence[Plan], budget_minutes: float | None, files: Results) -> list[str]:
    """Return what a start will do, in lines: the runs, where they execute, and how long that is
    expected to take."""
    lines = []
    keys = []
    times = dict[str, float]()
    for plan in plans:
        runs = pending(plan, files)
        lines += summary(plan, runs, files)
        keys += [run.key for run in runs]
        times |= expected_seconds(plan.name, files)
    if not keys:
        return [*lines, "nothing is left to measure"]
    limit = "" if budget_minutes is None else f" (time budget: {budget_minutes:g} min)"
    return [*lines, where(plans[0]), f"expected time: {expected_words(keys, times)}{limit}"]


def where(plan: Plan) -> str:
    """Return the line that says where the runs of ``plan`` execute, and why there."""
    place = "on the host" if plan.engine == "none" else f"in containers of {plan.engine}"
    inside = f"{surroundings()}; " if surroundings() else ""
    return f"runs execute {place} ({inside}{plan.engine_reason})"


def listed(plan: Plan, block: Block) -> list[str]:
    """Return what a block holds, in lines: each run with its setting, and with its device and
    image."""
    runs = quantity(len(block.runs), "run")
    lines = [f"{plan.name}, block {block.number} of {plan.blocks}: {runs}, one after the other"]
    for run in block.runs:
        own = f" with {Path(plan.environments[run.environment]).name}" if run.environment else ""
        place = (
            f"on the host{own}"
            if plan.engine == "none"
            else f"in {plan.images[run.image].reference}"
        )
        lines.append(f"    {run.name} ({run.setting.label}): {run.settings.device}, {place}")
    return lines


def of_plan(plan: Plan, files: Results) -> list[str]:
    """Return what a start of one study would do, in lines, to follow its table of runs."""
    runs = pending(plan, files)
    planned = f"{plan.name}: {quantity(len(plan.runs), 'run')} planned"
    keys = [run.key for run in runs]
    time = expected_words(keys, expected_seconds(plan.name, files)) if runs else "none"
    return ["", planned, *summary(plan, runs, files), f"expected time: {time}"]


def summary(plan: Plan, todo: Sequence[Run], files: Results) -> list[str]:
    """Return a line for each device of a study with its runs, of which those of ``todo`` are to be
    made, and one for each reason why runs cannot be made here."""
    names = {run.name for run in todo}
    lines = []
    folder = files.records(plan.name)
    for device in dict.fromkeys(run.settings.device for run in plan.runs):
        runs = [run for run in plan.runs if run.settings.device == device]
        there = {run.name for run in runs if os.path.lexists(f"{folder}/{run.file}")}
        left = [run for run in runs if run.name in names]
        done = len(there - names)
        blocks = len({run.block for run in left})
        words = (
            f"{quantity(len(left), 'run')} pending in {quantity(blocks, 'block')}"
            if left
            else "no run pending"
        )
        if left or done:
            lines.append(f"{plan.name} on {device}: {words}, {done} done")
        absent = Counter(
            run.unavailable for run in runs if run.unavailable and run.name not in there
        )
        lines += [
            f"{plan.name} on {device}: {quantity(n, 'run')} left out: {why}"
            for why, n in absent.items()
        ]
    return lines


def expected_words(keys: Sequence[str], known: Mapping[str, float]) -> str:
    """Return how long the runs with these keys are expected to take, from the seconds of a run by
    known key."""
    seconds = [known[key] for key in keys if key in known]
    unknown = len(keys) - len(seconds)
    if not seconds:
        return "not known until the first block is done"
    words = f"about {duration_words(sum(seconds))}, from earlier runs with the same settings"
    return (
        f"{words}; {quantity(unknown, 'run')} of other settings not counted" if unknown else words
    )


def note(plan: Plan, selection: Selection, began: float, files: Results) -> None:
    """Write what is the same in every run that this start makes in a study.

    ``began`` is the start's time in epoch seconds.
    """
    budget, known = selection.time_budget_minutes, scheduler()
    end = known.end_of_allocation() if known else None
    limits = [] if budget is None else [began + 60 * budget]
    limits += [] if end is None else [end - MARGIN_SECONDS]
    session = Session(
        number=next_session(files.records(plan.name)),
        name=datetime.fromtimestamp(began, UTC).strftime("%Y%m%dT%H%M%S.%fZ"),
        began=began,
        warm_up_run=selection.warm_up_run,
        quiet_wait_seconds=selection.quiet_wait_seconds,
        deadline=min(limits, default=None),
    )
    session.write(files.session(plan.name))
