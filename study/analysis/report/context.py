"""The content of the page on one study, as values for the template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from study.analysis.published.beside import Series, beside
from study.analysis.published.claims import examine
from study.analysis.published.claims.measured import measured_here
from study.analysis.published.table import read_published
from study.analysis.report.epochs import EpochRow, epoch_rows, padded, published_epochs
from study.analysis.stats.analysis import Analysis
from study.analysis.stats.usable import with_reasons
from study.analysis.table.progress import progress_of
from study.analysis.wording.answer import answer_sentence
from study.analysis.wording.caveats import caveat_sentence
from study.analysis.wording.progress import missing_sentence, progress_sentence
from study.analysis.words import bytes_words, short_key, total_words
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.weights import fell_back
from study.config.networks import is_transfer
from study.config.sections import Training
from study.config.study import TOTALS_OF_INFERENCE, Study, shown


@dataclass(frozen=True)
class StudyView:
    """One study's part of the page."""

    name: str
    title: str
    question: str
    answer: list[str]
    banners: list[str]
    warnings: list[str]
    figures: list[dict[str, str]]
    analysis: Analysis
    axis: str
    total: str
    rate: str
    facts: list[tuple[str, str]]
    epochs: list[EpochRow]
    runs: list[dict[str, Any]]
    counts: str
    beside: list[Series]
    published: str | None
    """The published study beside this one; the page opens the claims of these."""
    measured: dict[tuple[int, ...], list[str]]
    """What this study says of a published claim, by the claim's lines."""


def view(
    plan: Plan,
    records: dict[str, Record],
    frame: pd.DataFrame,
    analysis: Analysis,
    figures: list[dict[str, str]],
    primers: Sequence[Record] = (),
    refused_aside: Mapping[str, str] | None = None,
) -> StudyView:
    """Return all values that the template shows on one study. ``primers`` are those of every start in the folder.

    ``refused_aside`` holds the reason for each file among the records set aside that does not fit; the analysis names
    those of the other records.
    """
    study = plan.study
    done = [record for record in records.values() if record.outcome == "ok"]
    return StudyView(
        name=plan.name,
        title=study.title,
        question=study.question,
        answer=[answer_sentence(answer) for answer in analysis.answer],
        banners=[*_unfinished(plan, records), *_reduced(study), *_banners(list(records.values()))],
        warnings=[
            *map(caveat_sentence, analysis.warnings),
            *_left_out(records),
            *(f"{name}, set aside before, does not fit: {why}." for name, why in (refused_aside or {}).items()),
            *_without_checksum(records),
        ],
        figures=figures,
        analysis=analysis,
        axis=short_key(study.curve.x)
        if study.curve
        else ", ".join(short_key(key) for key in study.compared) or "setting",
        total=total_words(analysis.y),
        rate="images/s" if study.total in TOTALS_OF_INFERENCE else "images/s in training",
        facts=[*_facts(plan, records), *_primers(records, primers)],
        epochs=_epochs(plan, records),
        runs=_runs(with_reasons(study, frame), analysis.y),
        counts=_counts(plan, done),
        beside=beside(study, frame, read_published()) if study.published else [],
        published=study.published,
        measured={claim.lines: measured_here(claim, study, analysis) for claim in examine(read_published())},
    )


def _epochs(plan: Plan, records: dict[str, Record]) -> list[EpochRow]:
    """Return our epochs, and those that the document beside the study prints."""
    study = plan.study
    ours = [] if study.total in TOTALS_OF_INFERENCE else epoch_rows(plan, records)
    theirs = published_epochs(study.published, read_published()) if ours and study.published else []
    return padded([*ours, *theirs])


def _counts(plan: Plan, done: list[Record]) -> str:
    """Return a sentence on the number of runs that succeeded, their accuracy, and the weights at their start."""
    text = f"{len(done)} of {len(plan.runs)} planned runs succeeded."
    reached = [record.measurement.epochs[-1].accuracy for record in done if record.measurement]
    known = [value for value in reached if value is not None]
    kinds = sorted(
        {{"imagenet": "ImageNet", "file": "the given", "random": "random"}[r.weights.kind] for r in done if r.weights}
    )
    if known and kinds:
        reached_words = " to ".join(dict.fromkeys(f"{value:.0%}" for value in (min(known), max(known))))
        text += f" They reached an accuracy of {reached_words}, from {' and '.join(kinds)} weights."
    return text


def _unfinished(plan: Plan, records: dict[str, Record]) -> list[str]:
    """Return a banner that says how far the study is; none where it is whole."""
    progress = progress_of(plan, records)
    missing = missing_sentence(progress)
    return [f"{progress_sentence([progress])} {missing}"] if missing else []


def _reduced(study: Study) -> list[str]:
    """Return a banner that lists the keys of a reduced size with their full values; none at full size."""
    if not study.full:
        return []
    keys = [
        f"{key} {_plain(value)} in place of {_plain(study.full[key])}"
        for key, value in study.reduced.items()
        if key in study.full
    ]
    return [f"Reduced size: {'; '.join(keys)}. The full size: --config size=full"]


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "its default" if value is None else str(value)


def _banners(records: list[Record]) -> list[str]:
    banners = []
    if any(record.data and record.data.generated for record in records):
        banners.append(
            "The images are generated, not photographs: the times are valid, the accuracies hold for drawn images only."
        )
    # Networks that have no pretrained weights need no banner for random ones.
    weighted = [record for record in records if record.weights and is_transfer(record.settings.model.name)]
    random = [record for record in weighted if record.weights and record.weights.kind == "random"]
    again = (
        f" To look for ImageNet weights again: python -m study retry {records[0].study} --weights" if records else ""
    )
    for reason in sorted({record.weights.reason for record in random if record.weights}):
        who = "Every run starts" if len(random) == len(weighted) else f"{len(random)} of {len(weighted)} runs start"
        sought = any(record.weights and fell_back(record.weights) for record in random)
        banners.append(
            f"{who} from random weights ({reason}): the times are valid, the accuracies are not those of transfer "
            "learning." + (again if sought else "")
        )
    return banners


def _left_out(records: dict[str, Record]) -> list[str]:
    counts = {record.data.left_out for record in records.values() if record.data and record.data.left_out}
    return (
        [f"{max(counts)} file(s) of the data were left out; the manifest lists each with the reason."] if counts else []
    )


def _without_checksum(records: dict[str, Record]) -> list[str]:
    count = sum(record.record_sha256 is None for record in records.values())
    return [f"{count} record(s) carry no checksum of their own: an edit would not show."] if count else []


def _facts(plan: Plan, records: dict[str, Record]) -> list[tuple[str, str]]:
    """Return name and value of each fact about the runs; a fact that differs between runs has all of its values."""
    study, facts = plan.study, []
    training = study.training
    most = "at most " if training.target_accuracy else ""
    stages = f"{training.freeze_epochs} frozen and {most}{training.epochs} unfrozen epochs"
    stages = stages if training.freeze_epochs else f"{most}{training.epochs} epoch(s)"
    name = ", ".join(map(str, study.factors.get("model.name", [study.model.name])))
    facts.append(
        (
            "Job",
            f"{name}, {training.loop} loop, {stages}, {study.dataset.image_size} px{_training(training)}",
        )
    )
    if study.total in TOTALS_OF_INFERENCE:
        asked = study.inference
        facts.append(
            (
                "Inference",
                f"{asked.batches} timed batches a run, or one pass over the validation images where that is more, "
                f"after {asked.warm_up_batches} of warm-up; the same trained weights for every setting of a device; "
                f"int8 calibrated on {asked.calibration_images} training images",
            )
        )
    levels = [f"{short_key(k)}: {', '.join(str(shown(study, k, x)) for x in v)}" for k, v in study.factors.items()]
    facts.append(("Factors", "; ".join(levels) or "none"))
    facts.append(("Replicates", f"{study.replicates}, in randomised complete blocks (seed {study.seed})"))
    limits = study.limits
    told = [f"{limits.memory_gib:g} GiB of memory"] if limits.memory_gib else []
    told += [f"{limits.cpus} CPU(s)"] if limits.cpus else []
    told += [f"{limits.timeout_seconds:g} s"] if limits.timeout_seconds else []
    if told:
        facts.append(("Limits of a run", ", ".join(told)))
    used = [record for record in records.values() if record.outcome == "ok"]

    def add(name: str, values: list[str | None]) -> None:
        distinct = sorted({value for value in values if value})
        if distinct:
            facts.append((name, "; ".join(distinct)))

    add("Data", [_data(record) for record in used])
    add("Weights", [f"{r.weights.kind}: {r.weights.reason}" if r.weights else None for r in used])
    add("Arithmetic", [_arithmetic(record) for record in used])
    add("Device", [_device(record) for record in used])
    add("Processor", [_processor(record) for record in used])
    add("Loader", [_loader(record) for record in used])
    add("Software", [_software(record) for record in used])
    add("Engine", [_engine(record) for record in used])
    return facts


def _primers(records: dict[str, Record], primers: Sequence[Record]) -> list[tuple[str, str]]:
    """Return the number and the times of the primers on the devices of these records."""
    used = {record.settings.device for record in records.values() if record.primed}
    seconds = [f"{primer.process_seconds:.1f}" for primer in primers if primer.settings.device in used]
    told = f"{len(seconds)} run(s), one at each start on each device, of {', '.join(seconds)} s; in no number"
    return [("Primers", told)] if seconds else []


def _training(training: Training) -> str:
    """Return the settings of the training that are not the default, each with a comma before it."""
    told = [
        *([training.optimizer] if training.optimizer != "adamw" else []),
        *([f"{training.schedule} learning rate"] if training.schedule != "one_cycle" else []),
        *([_rate(training)] if training.learning_rate_rule != "constant" else []),
        *([f"until an accuracy of {training.target_accuracy:g}"] if training.target_accuracy else []),
        *([f"{training.gradient_accumulation} micro-batches a step"] if training.gradient_accumulation > 1 else []),
        *([training.precision] if training.precision != "auto" else []),
        *(["validated at the end alone"] if training.validation == "end" else []),
    ]
    return "".join(f", {item}" for item in told)


def _rate(training: Training) -> str:
    """Return the rule of the learning rate in words."""
    rule = training.learning_rate_rule.replace("_", " ")
    return f"learning rate {training.learning_rate:g} at {training.reference_batch_size} images a step, {rule} rule"


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
    libraries = ", ".join(f"{name} {version}" for name, version in machine.libraries.items())
    commit = (record.software.git_commit or "unknown")[:12] + (", changed since" if record.software.git_dirty else "")
    return f"Python {machine.python}, {libraries}; commit {commit}"


def _runs(frame: pd.DataFrame, y: str) -> list[dict[str, Any]]:
    columns = [
        "run",
        "outcome",
        y,
        "accuracy",
        "steps",
        "images_processed",
        "peak_device_allocated_bytes",
        "peak_host_resident_bytes",
        "session",
        "disturbed",
        "set_aside",
    ]
    table = frame[columns].rename(columns={y: "seconds"})
    rows = [
        {str(key): None if pd.isna(value) else value for key, value in row.items()}
        for row in table.to_dict(orient="records")
    ]
    return [row | {"outcome": _outcome(row)} for row in rows]


def _outcome(row: dict[str, Any]) -> str:
    """Return the outcome of a record, with the marks that it bears."""
    told = [str(row["outcome"]).replace("_", " ")]
    told += ["disturbed"] if row["disturbed"] else []
    if row["set_aside"]:
        told.append("set aside" if row["set_aside"] == "disturbed" else f"set aside: {row['set_aside']}")
    return ", ".join(told)
