"""The job line: what was trained, on how many images, on which machine, in how many runs, and
when."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime

from study.analysis.words import device_words, listed
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.base.errors import quantity
from study.config.sections import is_own, short_name
from study.config.settings import get
from study.config.study import Study
from study.config.times import INFERENCE


def job_of(plan: Plan, records: Mapping[str, Record]) -> list[str]:
    """Return the parts of the job line; what the study varies is in its question and its chart, and
    not here."""
    used = [record for record in records.values() if record.outcome == "ok"]
    size = "reduced size" if plan.study.full else ""
    if plan.study.rung:
        size = "shortened for this machine by its ladder"
    told = [
        _training(plan.study, used),
        size,
        _images(used),
        *_machines(used),
        runs_of(plan, records),
    ]
    return [*filter(None, told), *_days(list(records.values()))]


def _training(study: Study, used: Sequence[Record]) -> str:
    told = []
    if "model.name" not in study.factors:
        told.append(model_words(study.model.name))
    kinds = {
        record.weights.kind
        for record in used
        if record.weights and not is_own(record.settings.model.name)
    }
    if len(kinds) == 1:
        told.append({"random": "random weights"}.get(*kinds, "ImageNet weights"))  # type: ignore[call-overload]
    timed = study.total != INFERENCE
    if timed and "training.epochs" not in study.factors:
        most = "at most " * bool(study.training.target_accuracy)
        told.append(f"{most}{quantity(study.training.every_epoch, 'epoch')}")
    for key, words in (("training.batch_size", "batch size {}"), ("training.precision", "{}")):
        level = get(study, key)
        if timed and key not in study.factors and level not in ("auto", "fp32"):
            told.append(words.format(level))
    return ", ".join(told)


def model_words(name: str) -> str:
    """Return a model's name as people write it: ``ResNet-18``; a user's own by its factory."""
    found = re.fullmatch(r"resnet(\d+)", name)
    return f"ResNet-{found[1]}" if found else short_name(name)


def _images(used: Sequence[Record]) -> str:
    told = []
    for record in used:
        if record.data:
            data = record.settings.dataset
            told.append(f"{record.data.train_images} {data.images_words} of {data.image_size} px")
    return listed(list(dict.fromkeys(told))[:2]) if told else ""


def _machines(used: Sequence[Record]) -> list[str]:
    beside = any(record.settings.device != "cpu" for record in used)
    told: dict[str, None] = {}
    for record in sorted(used, key=lambda one: one.settings.device == "cpu"):
        machine = record.machine
        if machine and record.settings.device != "cpu":
            told[machine.device_name] = None
        elif machine:
            name = processor_words(machine.cpu_name)
            cores = machine.cpu_cores or 1
            share = _share_of(record, cores)
            brief = f"{share}{cores} {name.partition(' ')[2] or name} core{'s' * (cores != 1)}"
            told[brief if beside else f"{name}, {share}{quantity(cores, 'core')}"] = None
    return list(told)


def _share_of(record: Record, cores: int) -> str:
    """Return ``16 of`` where torch itself chose fewer threads than the machine has cores: it may
    use no others."""
    measured = record.measurement
    chosen = record.settings.training.threads == "auto"
    return f"{measured.threads} of " if measured and chosen and measured.threads < cores else ""


def processor_words(name: str) -> str:
    """Return a processor's name without marks, clock and the word: ``AMD EPYC 7B13``."""
    name = re.sub(r"\((R|TM)\)|@.*|\b(Processor|CPU)\b|\b\d+-Core\b", " ", name)
    return " ".join(name.split())


def runs_of(plan: Plan, records: Mapping[str, Record]) -> str:
    """Return the number of runs, of each setting, and of those that failed or that no device is
    there for."""
    done = [record for record in records.values() if record.outcome == "ok"]
    failed = Counter(
        record.outcome for record in records.values() if record.outcome not in ("ok", "unavailable")
    )
    planned = sum(not run.unavailable for run in plan.runs)
    if not done:
        told = ["no run"]
    elif len(records) < planned:
        told = [f"{len(done)} of {planned} runs"]
    else:
        told = [f"{quantity(len(done), 'run')}, {plan.study.runs_a_setting} each"]
    why = {"out_of_memory": "out of memory"}
    told += [
        f"{count} failed{f': {why[kind]}' if kind in why else ''}" for kind, count in failed.items()
    ]
    made = {record.settings.device for record in done}
    away = {run.settings.device for run in plan.runs if run.unavailable} - made
    told += [f"no {device_words(device)} here" for device in sorted(away)]
    return "; ".join(told)


def _days(records: Sequence[Record]) -> list[str]:
    days = sorted({day for record in records if (day := _day(record.started))})
    if not days:
        return []
    return [
        f"{days[0]:%-d %b %Y}" if len(days) == 1 else f"{days[0]:%-d %b} to {days[-1]:%-d %b %Y}"
    ]


def _day(started: str) -> date | None:
    """Return the day of a time, or None for a text that is none: a record may come from
    anywhere."""
    try:
        return datetime.fromisoformat(started).date()
    except ValueError:
        return None
