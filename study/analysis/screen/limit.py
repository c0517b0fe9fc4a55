"""What limits the answer's setting: the parts of its time, and what to try against each."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from study.analysis.answers import Answer
from study.analysis.answers.context import Context, End, capital
from study.analysis.answers.group import Level
from study.analysis.answers.phases import MAIN, MOSTLY, START_UP, WORKERS, summed, with_parts
from study.analysis.answers.switches import Switches
from study.analysis.words import short
from study.artifacts.plan import Plan
from study.base.strict import Strict
from study.config.effect import allows
from study.config.study import Study

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


TRIES = (
    Try(WORKERS, "loader.persistent_workers", True, "let them stay", "all but once"),
    Try(WORKERS, "loader.workers", FEW_WORKERS, f"only {FEW_WORKERS} workers", "unknown"),
    Try(WORKERS, "loader.kind", "device", "images on the device", "all"),
    Try("waiting for data", "loader.kind", "device", "images on the device", "all"),
    Try("computing", "training.memory_format", "channels_last", "channels last", "unknown"),
    Try("computing", "training.precision", "bf16", "bf16", "unknown"),
    Try("validation", "training.validation", "end", "at the end alone", "all but once"),
)


def tries_of(study: Study) -> tuple[Try, ...]:
    """Return what can be tried in a study, the first first."""
    longer = TIMES_THE_EPOCHS * study.training.epochs
    return (*TRIES, Try(START_UP, "training.epochs", longer, "a longer job", "nothing"))


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
    known = [(end, context.level(end)) for end in first.ends(context)]
    ends = [(end, level) for end, level in known if level.phases]
    if not ends:
        return None
    (end, level), found = ends[0], summed(ends[0][1].phases)
    total = sum(found.values())
    largest = max(found, key=lambda name: (name in MAIN, found[name]))
    if found[largest] < LEAST * total:
        return None
    share = f"{short(found[largest])} of the {short(total)} s ({found[largest] / total:.0%})"
    split = with_parts if found.get("computing", 0.0) >= MOSTLY * total else summed
    return Limit(
        phase=largest,
        busy=_busy(level, (end[0].levels | level.setting.levels).get("device")),
        text=f"It takes {share}.",
        parts=list(_parts(plan, found, total, level.resources.get("workers", 0))),
        ends=[(capital(name_of(context, end)), split(own.phases)) for end, own in ends[:2]],
    )


def _busy(level: Level, device: object) -> str:
    percent = level.resources.get("gpu_utilisation_percent" if device == "cuda" else "cpu_percent")
    who = "The GPU is" if device == "cuda" else "The CPUs are"
    return "" if percent is None else f"{who} busy {percent:.0f}% of the time"


def _parts(plan: Plan, found: dict[str, float], total: float, workers: float) -> Iterator[Part]:
    """Yield the parts, the largest first, each with the first change that has an effect in this
    loop."""
    study = plan.study
    runs = [run.settings for run in plan.runs if run.block == 1]
    asked = {*study.factors, *plan.start.config.get("overrides", {})}
    small = [name for name in found if name == "rest" or found[name] < SMALL * total]
    for name in sorted(found.keys() - small, key=found.__getitem__, reverse=True):
        part = Part(name=name, seconds=found[name])
        for one in tries_of(study):
            free = one.part == name and one.key not in study.factors
            fewer = one.key != "loader.workers" or workers > FEW_WORKERS
            if free and fewer and allows(runs, one.key, one.level, asked):
                buys = _buys(one.saves, found[name], total, study)
                tried = {"attempt": one.words, "buys": buys, "key": one.key, "level": one.level}
                part = part.model_copy(update=tried)
                break
        yield part
    if small:
        yield Part(name="rest", seconds=sum(found[name] for name in small))


def _buys(saves: str, seconds: float, total: float, study: Study) -> str:
    """Return what a change buys at most, in words."""
    if saves == "unknown":
        return "a part of it, which these runs cannot tell"
    if saves == "nothing":
        return "it is paid once, whatever the length"
    left = seconds / study.training.every_epoch if saves == "all but once" else 0.0
    return f"{short(seconds - left)} s, {short(total / (total - seconds + left))} times as fast"


def name_of(context: Context, end: End) -> str:
    """Return a setting by its group and its level: ``stock fastai, 64``."""
    group, label = end
    who = context.who(group)
    if label == group.label:
        return who or "the run"
    return f"{who}, {label}" if who else context.setting(label)
