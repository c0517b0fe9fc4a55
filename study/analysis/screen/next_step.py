"""What limits the answer's setting: the parts of its time, and what to try against each.

And what to do next: a command that can be typed, with its minutes and what it decides.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import pandas as pd

from study.analysis.answers import Answer
from study.analysis.answers.context import Context, Lack, LevelKey, capital
from study.analysis.answers.phases import MAIN, MOSTLY, START_UP, WORKERS, summed, with_parts
from study.analysis.answers.switches import Switches
from study.analysis.stats.laws import by_name
from study.analysis.stats.optimum import MOST_BLOCKS, blocks_to_find
from study.analysis.table.exclusions import MANY
from study.analysis.table.rows import NOT_YET
from study.analysis.words import device_words, listed, short
from study.artifacts.plan import Plan
from study.base.errors import duration_words, quantity
from study.base.strict import Strict
from study.config.effect import allows
from study.config.settings import in_words

LEAST = 0.1
"""The share of a time below which its largest part limits nothing."""
SMALL = 0.02
"""The share of a time below which a part belongs to the rest."""
TIMES_THE_EPOCHS, FEW_WORKERS = 3, 4
"""How much longer a job is that is tried, and the loader's workers where they start anew in each
epoch: on an H200 4 of them took 7.5 s of stock fastai, 16 took 9.7."""


class Try(NamedTuple):
    """One change against a part of the time."""

    part: str
    key: str
    level: Any
    words: str
    saves: Literal["all", "all but once", "nothing", "unknown"]
    """What it can save of the part at most: nothing where that is paid once whatever the length of
    the job, unknown where these runs cannot tell."""


FIXED = {
    "unknown": "a part of it, which these runs cannot tell",
    "nothing": "it is paid once, whatever the length",
}
"""What a change buys, where that is no number."""
TRIES = (
    Try(WORKERS, "loader.persistent_workers", True, "let them stay", "all but once"),
    Try(WORKERS, "loader.workers", FEW_WORKERS, f"only {FEW_WORKERS} workers", "unknown"),
    Try(WORKERS, "loader.kind", "device", "images on the device", "all"),
    Try("waiting for data", "loader.kind", "device", "images on the device", "all"),
    Try("computing", "training.memory_format", "channels_last", "channels last", "unknown"),
    Try("computing", "training.precision", "bf16", "bf16", "unknown"),
    Try("validation", "training.validation", "end", "at the end alone", "all but once"),
)


class Part(Strict):
    """One part of the time of the answer's setting."""

    name: str
    seconds: float
    attempt: str = ""
    """What to try; empty where no key changes it here."""
    buys: str = ""
    """What that saves at most."""
    key: str = ""
    level: Any = None


class Limit(Strict):
    """Where the time of the answer's setting goes."""

    phase: str
    busy: str = ""
    """How busy the device is, as a sentence."""
    text: str
    parts: list[Part]
    """The largest first."""
    ends: list[tuple[str, dict[str, float]]]
    """The answer's setting and the one that it is compared with: seconds by phase."""

    @property
    def best(self) -> Part | None:
        """The largest part against which something can be tried."""
        return next((part for part in self.parts if part.key), None)


def limit_of(plan: Plan, context: Context, first: Answer | Switches) -> Limit | None:
    """Return what takes the time of the setting that the answer names; None where its parts are not
    known."""
    ends = []
    for end in first.ends(context):
        levels = {level.label: level for level in context.group(end[0]).levels}
        if levels[end[1]].phases:
            ends.append((end, levels[end[1]]))
    if not ends:
        return None
    (end, level), found = ends[0], summed(ends[0][1].phases)
    total = sum(found.values())
    largest = max(found, key=lambda name: (name in MAIN, found[name]))
    if found[largest] < LEAST * total:
        return None
    share = f"{short(found[largest])} of the {short(total)} s ({found[largest] / total:.0%})"
    split = with_parts if found.get("computing", 0.0) >= MOSTLY * total else summed
    on_gpu = (end[0].levels | level.setting.levels).get("device") == "cuda"
    busy = level.resources.get("gpu_utilisation_percent" if on_gpu else "cpu_percent")
    who = "The GPU is" if on_gpu else "The CPUs are"
    return Limit(
        phase=largest,
        busy="" if busy is None else f"{who} busy {busy:.0f}% of the time",
        text=f"It takes {share}.",
        parts=list(_parts(plan, found, total, level.resources.get("workers", 0))),
        ends=[(capital(name_of(context, end)), split(own.phases)) for end, own in ends[:2]],
    )


def _parts(plan: Plan, found: dict[str, float], total: float, workers: float) -> Iterator[Part]:
    """Yield the parts, the largest first, each with the first change that has an effect in this
    loop."""
    study = plan.study
    runs = [run.settings for run in plan.runs if run.block == 1]
    asked = {*study.factors, *plan.start.config.get("overrides", {})}
    small = [name for name in found if name == "rest" or found[name] < SMALL * total]
    longer = TIMES_THE_EPOCHS * study.training.epochs
    tries = (*TRIES, Try(START_UP, "training.epochs", longer, "a longer job", "nothing"))
    for name in sorted(found.keys() - small, key=found.__getitem__, reverse=True):
        part = Part(name=name, seconds=found[name])
        for one in tries:
            free = one.part == name and one.key not in study.factors
            fewer = one.key != "loader.workers" or workers > FEW_WORKERS
            if free and fewer and allows(runs, one.key, one.level, asked):
                seconds, epochs = found[name], study.training.every_epoch
                left = seconds / epochs if one.saves == "all but once" else 0.0
                buys = FIXED.get(one.saves) or (
                    f"{short(seconds - left)} s, "
                    f"{short(total / (total - seconds + left))} times as fast"
                )
                tried = {"attempt": one.words, "buys": buys, "key": one.key, "level": one.level}
                part = part.model_copy(update=tried)
                break
        yield part
    if small:
        yield Part(name="rest", seconds=sum(found[name] for name in small))


def name_of(context: Context, end: LevelKey) -> str:
    """Return a setting by its group and its level: ``stock fastai, 64``."""
    group, label = end
    who = context.who(group)
    if label == group.label:
        return who or "the run"
    return f"{who}, {label}" if who else context.setting(label)


SIZE = "training.batch_size"
LONGEST_SECONDS = 3600.0
"""A next step that takes longer is offered for fewer settings alone."""
MORE_RUNS = 2
"""Further replicates where there is no interval yet, or the machine changed by more than the
settings differ."""


class Next(Strict):
    """The next step."""

    title: str
    """What it decides, and how long it takes."""
    command: str | None
    """Null where nothing can be typed that helps."""
    text: str = ""


def _start(plan: Plan, title: str, text: str = "", **changes: Any) -> Next:
    """Return the next start of a plan, with some changes of its command."""
    return Next(title=title, command=plan.start.again(plan.name, **changes), text=text)


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
        return _start(plan, f"{quantity(missing, 'run')} still to be made")
    what = first.lacks.what if first.lacks else None
    if what == "device":
        absent = {f"a {device_words(run.settings.device)}" for run in plan.runs if run.unavailable}
        return _start(plan, f"measure where {listed(sorted(absent))} is")
    if what == "good runs":
        return Next(title="mend what the runs failed of, then", command=plan.start.retry(plan.name))
    if what in ("interval", "blocks"):
        more = plan.study.replicates if what == "blocks" else MORE_RUNS
        return _replicates(plan, frame, more, "the ratio")
    lack = next((one.lacks for one in (first, *answers) if one.lacks), None)
    if lack and not first.decided:
        if lack.what == "runs":
            return _replicates(plan, frame, lack.runs, "an answer")
        if lack.what == "learning":
            longer = {"training.epochs": TIMES_THE_EPOCHS * plan.study.training.epochs}
            return _start(plan, "train for longer", overrides=longer)
    found = None
    if lack and first.about in ("times", "ways"):
        if lack.what == "calm":
            told = "Close other programs before."
            found = _replicates(plan, frame, MORE_RUNS, "whether it was the machine", told)
        elif lack.what == "tie":
            found = _more_sizes(plan, context, frame) or _tie(plan, context, lack, frame)
    found = found or _beyond(plan, context, first, frame)
    part = limit.best if limit else None
    if found or part is None:
        return found
    # What shows whether the limit is one.
    times = TIMES_THE_EPOCHS if part.key == "training.epochs" else 1
    took = duration_words(times * plan.study.replicates * block_seconds(frame))
    text = f"{capital(part.name)} takes {short(part.seconds)} s: {part.buys}."
    return _start(plan, f"{took} test {part.attempt}", text, overrides={part.key: part.level})


def _beyond(
    plan: Plan, context: Context, first: Answer | Switches, frame: pd.DataFrame
) -> Next | None:
    """Return the start that tries a larger batch size, where the largest that was tried is the
    fastest."""
    key = plan.study.curve_key
    if key != SIZE or first.about != "times" or len(context.groups) != 1:
        return None
    largest, (group,) = max(plan.study.factors[key]), context.groups
    if group.best != str(largest) or len(group.indistinguishable) > 1:
        return None
    if 2 * largest > frame["train_images"].max():
        return None
    # As many blocks more, which hold both: the blocks that are there hold the smaller one alone.
    blocks = plan.study.replicates
    took = duration_words(3 * blocks * block_seconds(frame[frame[key] == largest]))
    title = f"{largest} against {2 * largest}, {took}"
    text = f"{largest} is the largest that was tried."
    overrides = {key: [largest, 2 * largest], "replicates": 2 * blocks}
    return _start(plan, title, text, overrides=overrides)


def _more_sizes(plan: Plan, context: Context, frame: pd.DataFrame) -> Next | None:
    """Return the start that adds sizes, where the time falls and its law is not determined: sizes
    determine it sooner than blocks do."""
    fit = context.groups[0].curve if len(context.groups) == 1 else None
    key = plan.study.curve_key
    if fit is None or fit.verdict.reason != "wide_interval" or key != SIZE:
        return None
    sizes = plan.study.factors[key]
    tried = (min(sizes) // 4, min(sizes) // 2, 2 * max(sizes))
    added = [size for size in tried if 1 < size <= frame["train_images"].max()]
    extra = (frame["process_seconds"] - frame[plan.study.total]).median()
    each = by_name("power").seconds(fit.power.coefficients, added) + extra
    seconds = plan.study.replicates * each.sum()
    if len(added) < 2 or seconds > LONGEST_SECONDS:
        return None
    title = f"{duration_words(seconds)} add {in_words(key)}s {listed(list(map(str, added)))}"
    text = "More sizes determine the law sooner than more blocks, and tell whether it rises."
    return _start(plan, title, text, overrides={key: sorted([*sizes, *added])})


def _replicates(plan: Plan, frame: pd.DataFrame, more: int, what: str, text: str = "") -> Next:
    minutes = duration_words(more * block_seconds(frame))
    overrides = {"replicates": plan.study.replicates + more}
    told = text or f"{quantity(more, 'more block')}."
    return _start(plan, f"{minutes} decide {what}", told, overrides=overrides)


def _tie(plan: Plan, context: Context, lack: Lack, frame: pd.DataFrame) -> Next | None:
    """Return how the two fastest of the tied settings are told apart; None where they are equal
    within the margin."""
    assert lack.group is not None
    group, (best, *others) = context.group(lack.group), lack.labels
    if group.noise is None:
        return None
    rival = min(others, key=group.seconds.__getitem__)
    ratio = group.seconds[rival] / group.seconds[best]
    blocks = blocks_to_find(group.noise.spreads["noise"], ratio)
    pair = f"{best} against {rival}"
    if blocks is None:
        return Next(
            title=f"{pair}: too close to tell here",
            command=None,
            text=f"It needs over {MOST_BLOCKS} blocks.",
        )
    there = group.noise.blocks
    factor = context.factor
    ends = [level for level in group.levels if level.label in (best, rival)]
    outliers = any(level.time_without_outliers for level in ends)
    # An outlier is excluded once it is the only one of many.
    more = max(blocks - there, MANY - there if outliers else 1, 1)
    overrides: dict[str, object] = {"replicates": there + more}
    if factor and factor not in {plan.study.contrast}.union(*plan.study.only):
        chosen = [level.setting.levels[factor] for level in ends]
        overrides = {factor: chosen} | overrides
        frame = frame[frame[factor].astype(str).isin(map(str, chosen))]
    changes: dict[str, Any] = {"overrides": overrides}
    if len({one.setting.levels.get("device") for one in context.groups}) > 1:
        device = group.setting.levels["device"]
        changes = {"devices": [device]} | changes
        frame = frame[frame["device"] == device]
    each = block_seconds(frame)
    if more * each > LONGEST_SECONDS and len(overrides) == 1:
        return None
    told = f"{quantity(more, 'more block')}, {duration_words(each)} each"
    text = f"{told}: 4 of 5 such studies settle it, if the {short(100 * (ratio - 1))}% is real."
    return _start(plan, f"{duration_words(more * each)} decide {pair}", text, **changes)


def block_seconds(frame: pd.DataFrame) -> float:
    """Return the mean seconds of a block: those of its runs from their start to their end."""
    known = frame[frame["process_seconds"].notna()]
    blocks = known.groupby(["session", "block"])["process_seconds"].sum()
    return float(blocks.mean()) if len(blocks) else 0.0
