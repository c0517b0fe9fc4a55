"""What to do next: a command that can be typed, with its minutes and what it decides."""

import math
from collections.abc import Sequence

import pandas as pd
from pydantic import Field

from study.analysis.answers.answer import Answer
from study.analysis.answers.context import Context
from study.analysis.answers.fastest import CannotSay, Fastest, NothingSucceeded
from study.analysis.answers.switches import Switches
from study.analysis.stats.equivalence import MOST_BLOCKS, blocks_to_find
from study.analysis.table.rows import NOT_YET
from study.analysis.words import device_words, listed, short
from study.artifacts.plan import Plan
from study.base.durations import duration_words, quantity
from study.base.strict import Strict

TIMES_THE_EPOCHS = 3
RUNS_ON_A_CHANGING_MACHINE = 2
"""Further replicates where the machine changed by more than the settings differ."""


class Next(Strict):
    """The next step."""

    title: str = Field(description="What it decides, and how long it takes.")
    command: str | None = Field(description="Null where nothing can be typed that helps.")
    text: str = ""


def next_of(
    plan: Plan, context: Context, first: Answer | Switches, answers: Sequence[Answer], frame: pd.DataFrame
) -> Next | None:
    """Return what decides the open part of the answer; None where nothing is open."""
    missing = int((frame["message"] == NOT_YET).sum())
    if missing:
        return Next(title=f"{quantity(missing, 'run')} still to be made", command=plan.start.again(plan.name))
    if isinstance(first, NothingSucceeded) and not first.made:
        absent = {device_words(run.settings.device, article=True) for run in plan.runs if run.unavailable}
        return Next(title=f"measure where {listed(sorted(absent))} is", command=plan.start.again(plan.name))
    if isinstance(first, NothingSucceeded):
        return Next(title="mend what the runs failed of, then", command=f"python -m study retry {plan.name}")
    open_one = next(
        (one for one in (first, *answers) if not one.decided and isinstance(one, Fastest | CannotSay)), None
    )
    if first.decided and not isinstance(open_one, Fastest):
        return None
    if isinstance(open_one, CannotSay):
        return _more_runs(plan, open_one, frame)
    if isinstance(open_one, Fastest):
        return _machine(plan, frame) if open_one.machine else _tie(plan, context, open_one, frame)
    return _replicates(plan, frame, 2 * plan.study.replicates, "the ratio")


def _more_runs(plan: Plan, answer: CannotSay, frame: pd.DataFrame) -> Next:
    if not answer.more_runs:
        epochs = TIMES_THE_EPOCHS * plan.study.training.epochs
        return Next(
            title="train for longer", command=plan.start.again(plan.name, overrides={"training.epochs": epochs})
        )
    return _replicates(plan, frame, plan.study.replicates + answer.more_runs, "an answer")


def _machine(plan: Plan, frame: pd.DataFrame) -> Next:
    more = plan.study.replicates + RUNS_ON_A_CHANGING_MACHINE
    return _replicates(plan, frame, more, "the machine's part", "Close other programs before.")


def _replicates(plan: Plan, frame: pd.DataFrame, replicates: int, what: str, text: str = "") -> Next:
    more = replicates - plan.study.replicates
    minutes = duration_words(more * block_seconds(frame))
    command = plan.start.again(plan.name, overrides={"replicates": replicates})
    return Next(title=f"{minutes} decide {what}", command=command, text=text or f"{quantity(more, 'more block')}.")


def _tie(plan: Plan, context: Context, answer: Fastest, frame: pd.DataFrame) -> Next | None:
    """Return how the two fastest of the tied settings are told apart; None where they are equal within the margin."""
    group = context.group(answer.group)
    known = {label: context.seconds(answer.group, label) for label in answer.tied if label not in answer.equivalent}
    rivals = {label: seconds for label, seconds in known.items() if seconds}
    if not rivals or group is None or group.sensitivity is None:
        return None
    rival = min(rivals, key=rivals.__getitem__)
    ratio = rivals[rival] / answer.time.value
    blocks = blocks_to_find(group.sensitivity, ratio)
    pair = f"{answer.level.label} against {rival}"
    if blocks is None:
        return Next(title=f"{pair}: too close to tell here", command=None, text=f"It needs over {MOST_BLOCKS} blocks.")
    there = math.floor(group.sensitivity.blocks)
    own = frame[frame["run"].isin(_runs(frame, context, answer, [answer.level.label, rival]))]
    more, each = max(blocks - there, 1), block_seconds(own if len(own) else frame)
    overrides: dict[str, object] = {"replicates": there + more}
    if context.factor and not plan.study.only and not plan.study.contrast:
        chosen = [
            level.setting.levels[context.factor] for level in group.levels if level.label in (answer.level.label, rival)
        ]
        overrides = {context.factor: chosen} | overrides
    return Next(
        title=f"{duration_words(more * each)} decide {pair}",
        command=plan.start.again(plan.name, overrides=overrides),
        text=f"{quantity(more, 'more block')}, {duration_words(each)} each: 4 of 5 such studies settle it, if the "
        f"{short(100 * (ratio - 1))}% is real.",
    )


def _runs(frame: pd.DataFrame, context: Context, answer: Fastest, labels: Sequence[str]) -> list[str]:
    """Return the names of the runs of some levels of the answer's group."""
    factor = context.factor
    if factor is None:
        return []
    levels = [str(level.setting.levels[factor]) for label in labels if (level := context.level(answer.group, label))]
    rows = frame[frame[factor].astype(str).isin(levels)]
    for key, own in answer.group.levels.items():
        rows = rows[rows[key].astype(str) == str(own)] if key in rows else rows
    return [str(name) for name in rows["run"]]


def block_seconds(frame: pd.DataFrame) -> float:
    """Return the mean seconds of a block: those of its runs from their start to their end."""
    known = frame[frame["process_seconds"].notna()]
    blocks = known.groupby(["session", "block"])["process_seconds"].sum()
    return float(blocks.mean()) if len(blocks) else 0.0
