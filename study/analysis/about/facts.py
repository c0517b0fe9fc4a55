"""Name and value of each fact about the runs of a study."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from study.analysis.words import bytes_words, listed, short_key
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.base.errors import quantity
from study.config import names
from study.config.names import level_words
from study.config.sections import Training
from study.config.settings import description, get
from study.config.study import TOTALS_OF_INFERENCE, Study, shown


def facts_of(plan: Plan, records: Mapping[str, Record], warm_up_runs: Sequence[Record]) -> dict[str, str]:
    """Return each fact about the runs by its name; a fact that differs between runs has all of its values."""
    study, facts = plan.study, {}
    training = study.training
    most = "at most " if training.target_accuracy else ""
    stages = f"{training.freeze_epochs} frozen and {most}{training.epochs} unfrozen epochs"
    stages = stages if training.freeze_epochs else f"{most}{training.epochs} epoch(s)"
    name, loop = (_levels(study, key) for key in ("model.name", "training.loop"))
    facts["Job"] = f"{name}, {loop} loop, {stages}, {study.dataset.image_size} px{_training(training)}"
    if study.total in TOTALS_OF_INFERENCE:
        asked = study.inference
        calibrated = min([asked.calibration_images, *(r.data.train_images for r in records.values() if r.data)])
        facts["Inference"] = (
            f"{asked.batches} timed batches a run, or one pass over the validation images where that is more, "
            f"after {asked.warm_up_batches} of warm-up; the same trained weights for every setting of a device; "
            f"int8 calibrated on {calibrated} training images"
        )
    levels = [f"{short_key(key)}: {_shown(study, key)}" for key in study.factors]
    facts["Factors"] = "; ".join(levels) or "none"
    facts["Replicates"] = f"{study.runs_a_setting}, in randomised complete blocks (seed {study.seed})"
    limits = study.limits
    told = [f"{limits.memory_gib:g} GiB of memory"] if limits.memory_gib else []
    told += [f"{limits.cpus} CPU(s)"] if limits.cpus else []
    told += [f"{limits.timeout_seconds:g} s"] if limits.timeout_seconds else []
    if told:
        facts["Limits of a run"] = ", ".join(told)
    used = [record for record in records.values() if record.outcome == "ok"]
    for name, value_of in OF_RECORDS.items():
        if distinct := sorted({value for record in used if (value := value_of(record))}):
            facts[name] = "; ".join(distinct)
    made = {record.run for record in records.values()}
    away = Counter(run.unavailable for run in plan.runs if run.unavailable and run.name not in made)
    if away:
        facts["Unavailable"] = "; ".join(f"{quantity(count, 'run')}: {reason}" for reason, count in away.items())
    warmed = {record.settings.device for record in records.values() if record.warmed_up}
    if seconds := [one.process_seconds for one in warm_up_runs if one.settings.device in warmed]:
        count, least, most = quantity(len(seconds), "run"), f"{min(seconds):.1f}", f"{max(seconds):.1f}"
        of = most if least == most else f"{least} to {most}"
        facts["Warm-up runs"] = f"{count} of {of} s, at each start for each way of computing and shape; not counted"
    return facts


def glossary(study: Study) -> list[tuple[str, str]]:
    """Return each name that the study gives with its levels, and each factor with its levels and what it is.

    Where a setting has a level of one factor there are only the names.
    """
    whole = names.whole(study.names, study.factors, study.only)
    told = [
        (name, ", ".join(f"{key}: {_as_written(level)}" for key, level in own.items())) for name, own in whole.items()
    ]
    if len(study.compared) < 3:
        return told
    keys = [key for key in study.compared if key != "device"]
    return [*told, *((f"{short_key(key)} ({_shown(study, key)})", description(key)) for key in keys)]


def _as_written(level: Any) -> str:
    return str(level).lower() if isinstance(level, bool) else str(level)


def _shown(study: Study, key: str) -> str:
    """Return the levels of a factor in words, each with what the study's file has where that is something else."""
    told = []
    for level in study.factors[key]:
        word, short = level_words(key, level), str(shown(study, key, level))
        plain = short if word == str(level) else word
        alike = isinstance(level, bool) or key == "device" or plain == short
        told.append(plain if alike else f"{word} = {short}")
    return ", ".join(told)


def _levels(study: Study, key: str) -> str:
    return listed([str(level) for level in study.factors.get(key, [get(study, key)])])


PROCESSES = {
    "forked": "each run forked from a process that had imported torch and done nothing else",
    "fresh": "each run started from nothing",
}


def _training(training: Training) -> str:
    """Return the settings of the training that are not the default, each with a comma before it."""
    rule = training.learning_rate_rule.replace("_", " ")
    rate = f"learning rate {training.learning_rate:g} at {training.reference_batch_size} images a step, {rule} rule"
    told = [
        *([training.optimizer] if training.optimizer != "adamw" else []),
        *([f"{training.schedule} learning rate"] if training.schedule != "one_cycle" else []),
        *([rate] if training.learning_rate_rule != "constant" else []),
        *([f"until an accuracy of {training.target_accuracy:g}"] if training.target_accuracy else []),
        *([f"{training.gradient_accumulation} micro-batches a step"] if training.gradient_accumulation > 1 else []),
        *([training.precision] if training.precision != "auto" else []),
        *(["validated at the end alone"] if training.validation == "end" else []),
    ]
    return "".join(f", {item}" for item in told)


def _engine(record: Record) -> str:
    software = record.software
    if software.engine == "none":
        return f"host ({software.engine_reason})"
    digest = f", digest {software.image_digest.removeprefix('sha256:')[:12]}" if software.image_digest else ""
    return (
        f"{record.settings.device}: {software.engine} {software.engine_version} ({software.engine_reason}), image "
        f"{(software.image or 'unknown').removeprefix('sha256:')[:12]}{digest}"
    )


def _data(record: Record) -> str | None:
    if record.data is None:
        return None
    path = record.settings.dataset.path
    name = f"{record.data.source} ({path})" if path else record.data.source
    return (
        f"{name}: {record.data.train_images} images to train, {record.data.valid_images} to validate, "
        f"{len(record.data.classes)} classes (checksum {record.data.sha256[:12]})"
    )


def _device(record: Record) -> str | None:
    machine = record.machine
    if machine is None:
        return None
    cuda = f", driver {machine.driver}, CUDA {machine.cuda}, cuDNN {machine.cudnn}" if machine.cuda else ""
    clock = f", up to {machine.device_max_sm_mhz} MHz" if machine.device_max_sm_mhz else ""
    power = f", limited to {machine.device_power_limit_watts:.0f} W" if machine.device_power_limit_watts else ""
    return f"{record.settings.device}: {machine.device_name}{clock}{power}{cuda}"


def _arithmetic(record: Record) -> str | None:
    """Return the arithmetic of a run's precision; None for a record without it, which is an older one."""
    if record.fp32 is None:
        return None
    names = {"ieee": "IEEE fp32"}
    products, convolutions = (
        names.get(name, name.upper()) for name in (record.fp32.products, record.fp32.convolutions)
    )
    where, precision = record.settings.device, record.settings.training.precision
    if precision in ("bf16", "fp16"):
        return f"{where}: {precision} by automatic mixed precision"
    if products == convolutions:
        return f"{where}: {products}"
    return f"{where}: matrix products in {products}, convolutions in {convolutions}"


def _processor(record: Record) -> str | None:
    machine = record.machine
    if machine is None or record.measurement is None:
        return None
    return (
        f"{machine.cpu_name}, {machine.cpu_cores} cores, {machine.cpu_threads} threads, "
        f"{bytes_words(machine.memory_bytes)}"
        + (f", up to {machine.cpu_max_mhz:.0f} MHz" if machine.cpu_max_mhz else "")
        + (f", governor {machine.cpu_governor}" if machine.cpu_governor else "")
        + (f", with {', '.join(machine.cpu_units)}" if machine.cpu_units else "")
        + (", a virtual machine" if machine.virtualised else "")
        + f"; {record.measurement.threads} torch threads"
    )


def _loader(record: Record) -> str | None:
    if record.measurement is None:
        return None
    if record.settings.loader.kind == "device":
        return "images decoded before the clock starts, resident on the device"
    return f"{record.measurement.workers} worker processes"


def _software(record: Record) -> str | None:
    machine = record.machine
    if machine is None:
        return None
    commit = (record.software.git_commit or "unknown")[:12] + (", changed since" if record.software.git_dirty else "")
    return f"{machine.software}; commit {commit}"


OF_RECORDS: dict[str, Callable[[Record], str | None]] = {
    "Data": _data,
    "Weights": lambda record: f"{record.weights.kind}: {record.weights.reason}" if record.weights else None,
    "Arithmetic": _arithmetic,
    "Device": _device,
    "Processor": _processor,
    "Loader": _loader,
    "Software": _software,
    "Engine": _engine,
    "Process": lambda record: PROCESSES[record.started_as],
}
"""What each fact about the runs says of one record."""
