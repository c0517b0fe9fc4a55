"""What to do next: a command that can be typed, with its minutes and what it decides."""

import math
from collections.abc import Sequence

import pandas as pd
from pydantic import Field

from study.analysis.answers import Answer
from study.analysis.answers.context import Context
from study.analysis.answers.contrast import Contrast, NoRatio
from study.analysis.answers.fastest import CannotSay, Fastest, NothingSucceeded
from study.analysis.answers.switches import Switches
from study.analysis.screen.limit import COMPUTING, START_UP, WAITING, Limit
from study.analysis.stats.equivalence import MOST_BLOCKS, blocks_to_find
from study.analysis.table.exclusions import MANY
from study.analysis.table.rows import NOT_YET
from study.analysis.words import device_words, listed, short
from study.artifacts.plan import Plan
from study.base.errors import duration_words, quantity
from study.base.strict import Strict
from study.config.effect import allows

SIZES = ("training.batch_size", "inference.batch_size")
TIMES_THE_EPOCHS = 3
LONGEST_SECONDS = 3600.0
"""A next step that takes longer is offered for fewer settings alone."""
MORE_RUNS = 2
"""Further replicates where there is no interval yet, or the machine changed by more than the
settings differ."""


class Next(Strict):
    """The next step."""

    title: str = Field(description="What it decides, and how long it takes.")
    command: str | None = Field(description="Null where nothing can be typed that helps.")
    text: str = ""


def next_of(
    plan: Plan,
    context: Context,
    first: Answer | Switches,
    answers: Sequence[Answer],
    limit: Limit | None,
    frame: pd.DataFrame,
) -> Next | None:
    """Return what decides the open part of the answer, or else what tests the limit."""
    missing = int((frame["message"] == NOT_YET).sum())
    if missing:
        return Next(
            title=f"{quantity(missing, 'run')} still to be made",
            command=plan.start.again(plan.name),
        )
    if isinstance(first, NothingSucceeded) and not first.made:
        absent = {f"a {device_words(run.settings.device)}" for run in plan.runs if run.unavailable}
        return Next(
            title=f"measure where {listed(sorted(absent))} is", command=plan.start.again(plan.name)
        )
    if isinstance(first, NothingSucceeded):
        return Next(title="mend what the runs failed of, then", command=plan.start.retry(plan.name))
    if isinstance(first, Contrast | NoRatio) and not first.decided:
        told = isinstance(first, Contrast) and first.most.ratio.low is not None
        more = plan.replicates if told else MORE_RUNS
        return _replicates(plan, frame, plan.replicates + more, "the ratio")
    open_one = next(
        (
            one
            for one in (first, *answers)
            if not one.decided and isinstance(one, Fastest | CannotSay)
        ),
        None,
    )
    if isinstance(open_one, CannotSay) and not first.decided:
        if open_one.more_runs:
            return _replicates(plan, frame, plan.replicates + open_one.more_runs, "an answer")
        longer = {"training.epochs": TIMES_THE_EPOCHS * plan.study.training.epochs}
        return Next(title="train for longer", command=plan.start.again(plan.name, overrides=longer))
    found = None
    if isinstance(open_one, Fastest) and not isinstance(first, Switches | Contrast):
        more = plan.replicates + MORE_RUNS
        found = (
            _replicates(
                plan, frame, more, "whether it was the machine", "Close other programs before."
            )
            if open_one.machine
            else _tie(plan, context, open_one, frame)
        )
    return found or _beyond(plan, first, frame) or _test_of_limit(plan, limit, frame)


def _beyond(plan: Plan, first: Answer | Switches, frame: pd.DataFrame) -> Next | None:
    """Return the start that tries a larger batch size, where the largest that was tried is the
    fastest."""
    key = plan.study.curve.x if plan.study.curve else ""
    if not isinstance(first, Fastest) or first.tied or key not in SIZES:
        return None
    largest = max(plan.study.factors[key])
    if first.level.levels.get(key) != largest:
        return None
    if key == "training.batch_size" and 2 * largest > frame["train_images"].max():
        return None
    # As many blocks more, which hold both: the blocks that are there hold the smaller one alone.
    blocks = plan.replicates
    took = duration_words(3 * blocks * block_seconds(frame[frame[key] == largest]))
    return Next(
        title=f"{largest} against {2 * largest}, {took}",
        command=plan.start.again(
            plan.name, overrides={key: [largest, 2 * largest], "replicates": 2 * blocks}
        ),
        text=f"{largest} is the largest that was tried.",
    )


def _test_of_limit(plan: Plan, limit: Limit | None, frame: pd.DataFrame) -> Next | None:
    """Return the start that shows whether the limit is one; None where no setting takes it away."""
    training = plan.study.training
    epochs = TIMES_THE_EPOCHS * training.epochs
    tests: dict[str, tuple[str, object, str, int]] = {
        START_UP: (
            "training.epochs",
            epochs,
            f"a job of {epochs + training.freeze_epochs} epochs",
            TIMES_THE_EPOCHS,
        ),
        WAITING: ("loader.kind", "device", "the same without the loader", 1),
    }
    if {run.settings.device for run in plan.runs} == {"cuda"}:
        tests[COMPUTING] = ("training.precision", "bf16", "the same in bf16", 1)
    if limit is None or limit.phase not in tests or tests[limit.phase][0] in plan.study.factors:
        return None
    key, level, what, times = tests[limit.phase]
    asked = {*plan.study.factors, *plan.start.config.get("overrides", {})}
    if not allows([run.settings for run in plan.runs if run.block == 1], key, level, asked):
        return None
    took = duration_words(times * plan.replicates * block_seconds(frame))
    return Next(
        title=f"{what}, {took}", command=plan.start.again(plan.name, overrides={key: level})
    )


def _replicates(
    plan: Plan, frame: pd.DataFrame, replicates: int, what: str, text: str = ""
) -> Next:
    more = replicates - plan.replicates
    minutes = duration_words(more * block_seconds(frame))
    command = plan.start.again(plan.name, overrides={"replicates": replicates})
    return Next(
        title=f"{minutes} decide {what}",
        command=command,
        text=text or f"{quantity(more, 'more block')}.",
    )


def _tie(plan: Plan, context: Context, answer: Fastest, frame: pd.DataFrame) -> Next | None:
    """Return how the two fastest of the tied settings are told apart; None where they are equal
    within the margin."""
    group = context.group(answer.group)
    known = {
        label: context.seconds(answer.group, label)
        for label in answer.tied
        if label not in answer.equivalent
    }
    rivals = {label: seconds for label, seconds in known.items() if seconds}
    if not rivals or group is None or group.noise is None:
        return None
    rival = min(rivals, key=rivals.__getitem__)
    ratio = rivals[rival] / answer.time.value
    blocks = blocks_to_find(group.noise.spreads["noise"], ratio)
    pair = f"{answer.level.label} against {rival}"
    if blocks is None:
        return Next(
            title=f"{pair}: too close to tell here",
            command=None,
            text=f"It needs over {MOST_BLOCKS} blocks.",
        )
    there, factor = math.floor(group.noise.blocks), context.factor
    far = any(
        level.time_without_far
        for level in group.levels
        if level.label in (answer.level.label, rival)
    )
    # A far run is set aside once it is the only one of many.
    more = max(blocks - there, MANY - there if far else 1, 1)
    overrides: dict[str, object] = {"replicates": there + more}
    ends = [
        level.setting.levels for level in group.levels if level.label in (answer.level.label, rival)
    ]
    if factor and factor not in {plan.study.contrast}.union(*plan.study.only):
        chosen = [levels[factor] for levels in ends]
        overrides = {factor: chosen} | overrides
        frame = frame[frame[factor].astype(str).isin(map(str, chosen))]
    changes: dict[str, object] = {"overrides": overrides}
    if len({one.setting.levels.get("device") for one in context.groups}) > 1:
        changes = {"devices": [group.setting.levels["device"]]} | changes
        frame = frame[frame["device"] == group.setting.levels["device"]]
    each = block_seconds(frame)
    if more * each > LONGEST_SECONDS and len(overrides) == 1:
        return None
    return Next(
        title=f"{duration_words(more * each)} decide {pair}",
        command=plan.start.again(plan.name, **changes),
        text=f"{quantity(more, 'more block')}, {duration_words(each)} each: 4 of 5 such "
        "studies settle it, if the "
        f"{short(100 * (ratio - 1))}% is real.",
    )


def block_seconds(frame: pd.DataFrame) -> float:
    """Return the mean seconds of a block: those of its runs from their start to their end."""
    known = frame[frame["process_seconds"].notna()]
    blocks = known.groupby(["session", "block"])["process_seconds"].sum()
    return float(blocks.mean()) if len(blocks) else 0.0
