"""The table of timings: one row for each planned run, and for each record that was excluded.

Its columns are declared in :mod:`study.artifacts.timing`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from statistics import fmean, median
from typing import Any

import numpy as np
import pandas as pd

from study.analysis.table.exclusions import keys_of, with_exclusions
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.run import Run
from study.artifacts.samples import CommandSamples, Measurement
from study.artifacts.setting import part_of
from study.artifacts.timing import Timing, columns, dtype
from study.config.command import Output
from study.config.settings import get
from study.config.study import Study, display_level
from study.config.times import OF_A_STEP, PHASES


def always(study: Study) -> tuple[str, ...]:
    """Return the dotted keys that are columns of a table, whether they are factors of the study or
    not."""
    return () if study.command else ("training.batch_size",)


Values = dict[str, Any]
"""What a record tells, by column."""
Sampled = Values | str
"""What the samples of a run tell, or the reason why they are not used."""
TYPES = {name: dtype(name) for name in Timing.model_fields}
"""The type of each declared column."""
RECORDED = {
    "outcome",
    "message",
    "session",
    "started",
    "process_seconds",
    "warmed_up",
    "started_as",
    "node",
    "quiet",
}
"""The fields of a record that are columns as they are."""
MEASURED = {
    "setup_seconds",
    "model_seconds",
    "fit_seconds",
    "compile_seconds",
    "parameters",
    "threads",
    "workers",
}
"""Those of the measurement of a training."""
NOT_YET = "not run yet"
"""The message of a planned run that this machine can make and that has no record."""


def table_of(
    plan: Plan, counted: Mapping[str, Values], aside: Iterable[tuple[Run, Values]]
) -> pd.DataFrame:
    """Return the table of timings: one row per planned run, in the planned order, and then one per
    record ``aside``.

    The columns are those of :class:`Timing` and one for each factor of the study, named by its
    dotted key. A quantity that a run lacks is NaN. ``counted`` holds what is known of a run by its
    name.
    """
    every = []
    for run in plan.runs:
        absent = {"outcome": "unavailable", "message": run.unavailable or NOT_YET}
        every.append((run, counted.get(run.name) or absent))
    every += aside
    return with_exclusions(plan.study, as_table(_row(plan, run, values) for run, values in every))


def as_table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows (values by column) as a table with every column of :class:`Timing`, in its order
    and its types.

    Keys that :class:`Timing` does not declare become columns, too: they are the study's factors.
    """
    rows = list(rows)
    names = columns(dict.fromkeys(chain.from_iterable(rows)))
    numbers = [name for name, kind in TYPES.items() if kind == "float64"]
    # One array of all numbers: pandas converts column by column, which takes longer than all else
    # on a small table.
    floats = np.array([[row.get(name) for name in numbers] for row in rows], float).reshape(
        len(rows), len(numbers)
    )
    rest = pd.DataFrame(rows, columns=[name for name in names if name not in numbers])
    rest = rest.where(rest.notna(), np.nan).astype(
        {name: TYPES[name] for name in rest if name in TYPES}
    )
    # The copy has one block for each type, not one for each column.
    return pd.concat([pd.DataFrame(floats, columns=numbers, index=rest.index), rest], axis=1)[
        names
    ].copy()


def values_of(record: Record, sampled: Sampled | None) -> Values:
    """Return what a record and its telemetry tell."""
    values = _recorded(record)
    if isinstance(sampled, str):
        values["samples_refused"] = sampled
    elif sampled:
        values |= sampled
    measured = record.measurement
    if record.command:
        sizes = [record.command.peak_resident_bytes, values.get("peak_tree_resident_bytes")]
        values["peak_host_resident_bytes"] = max(filter(None, sizes), default=None)
        return values | _commanded(record.command, record.settings.output)
    return values | _measured(record, measured) if measured else values


def _row(plan: Plan, run: Run, values: Values) -> Values:
    level_keys, group_keys = keys_of(plan.study)
    levels = {"device": run.settings.device} | run.setting.levels
    planned: Values = {
        "study": plan.name,
        "run": run.name,
        "key": run.key,
        "block": run.block,
        "position": run.position,
        "device": run.settings.device,
        "precision": run.settings.training.precision,
        "group": part_of(plan.study, levels, group_keys).label,
        "level": part_of(plan.study, levels, level_keys).label,
    }
    values = planned | values
    images, joules = values.get("images_processed"), values.get("energy_joules")
    if images is not None and joules:
        values["images_per_joule"] = images / joules
    used, reserved = values.get("peak_device_used_bytes"), values.get("peak_device_reserved_bytes")
    # the samples missed it: torch alone held more
    if used is not None and reserved is not None and used < reserved:
        values["peak_device_used_bytes"] = None
    factors = {key: get(run.settings, key) for key in (*always(plan.study), *plan.study.factors)}
    return Timing.model_validate(dict.fromkeys(Timing.model_fields) | values).model_dump() | {
        key: display_level(plan.study, key, level) for key, level in factors.items()
    }


def _recorded(record: Record) -> Values:
    software, machine = record.software, record.machine
    dirty = "+" if software.git_dirty else ""
    versions = f"{machine.software}, " if machine else ""
    engine = "on the host" if software.engine == "none" else f"in {software.engine}"
    commit = (software.git_commit or "unknown")[:8]
    values = record.model_dump(include=RECORDED) | {
        "disturbed": "; ".join(record.disturbed) or None,
        "others_cpu_percent": record.observed.others_cpu_percent if record.observed else None,
        "device_name": machine.device_name if machine else None,
        "weights": record.weights.kind if record.weights else None,
        "software": f"{versions}{engine}, commit {commit}{dirty}",
        "image_id": software.image,
        "idle_watts": record.device_watts_before,
    }
    if record.data:
        values["valid_images"] = record.data.valid_images
        # The share of the most frequent class; where files hold images of several classes, whose
        # counts are unknown, that of equal ones.
        most = (record.data.valid_majority_images or 0) / record.data.valid_images
        values["chance_accuracy"] = max(most, 1 / len(record.data.classes))
    workload = record.reference_workload
    if workload:
        values["reference_seconds"] = workload.seconds
        values["host_reference_seconds"] = workload.host_seconds
    if record.timeline:
        values |= record.timeline.model_dump()
    return values


UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0}
"""Seconds of a unit in which a command prints its times."""
TAKEN: Mapping[str, Callable[[Sequence[float]], float]] = {
    "last": lambda told: told[-1],
    "median": median,
    "mean": fmean,
    "sum": sum,
    # The nearest rank: always a measured value, never interpolated.
    "p99": lambda told: float(np.percentile(told, 99, method="inverted_cdf")),
}


def printed_seconds(told: Sequence[float], output: Output) -> float | None:
    """Return the time that a command measured itself, from the numbers that it printed; None where
    they tell none.

    Of a rate it is the time of 1000: rates become times before they are taken together.
    """
    if output.unit == "per s":
        seconds = [1000 / value for value in told[output.skip :] if value > 0]
    else:
        seconds = [UNITS[output.unit] * value for value in told[output.skip :]]
    found = TAKEN[output.take](seconds) if seconds else 0.0
    return found if found > 0 else None


def _commanded(measured: CommandSamples, output: Output) -> Values:
    """Return the columns of a run of a command."""
    told, marked = measured.printed, measured.marked_seconds
    accuracy = told["accuracy"][-1] if told.get("accuracy") else None
    return {
        "command_seconds": measured.seconds,
        "marked_seconds": marked,
        "command_start_seconds": None if marked is None else max(0.0, measured.seconds - marked),
        "printed_seconds": printed_seconds(told.get("seconds", []), output),
        "accuracy": accuracy / 100 if accuracy is not None and accuracy > 1 else accuracy,
        "loss": told["loss"][-1] if told.get("loss") else None,
    }


def _measured(record: Record, measured: Measurement) -> Values:
    full = max((step.images for step in measured.steps), default=0)
    stages = [epoch.stage for epoch in measured.epochs]
    steady = [
        step
        for step in measured.steps
        if not step.warm_up and stages[step.epoch - 1] == "unfrozen" and step.images == full
    ]
    step_seconds = median(step.seconds for step in steady) if steady else None
    of_a_step = {
        name: median(getattr(step, name.removeprefix("step_")) for step in steady)
        for name in OF_A_STEP
        if steady
    }
    first_waits = {step.epoch: step.data_wait_seconds for step in reversed(measured.steps)}
    images = sum(epoch.images for epoch in measured.epochs)
    train_seconds = sum(epoch.train_seconds for epoch in measured.epochs)
    valid_seconds = sum(epoch.valid_seconds for epoch in measured.epochs)
    phases = {
        f"{name}_seconds": sum(getattr(step, f"{name}_seconds") for step in measured.steps)
        for name in PHASES
    }
    warm_up_extra_seconds = _warm_up_extra(measured, stages)
    last, target = measured.epochs[-1], measured.target
    # The peaks of tensors' memory of all training processes.
    memories = [replica.memory for replica in measured.replicas] or [measured.memory]
    peaks = [memory.device_allocated_bytes for memory in memories]
    return measured.model_dump(include=MEASURED) | {
        "blog_seconds": measured.model_seconds + measured.fit_seconds,
        "train_seconds": train_seconds,
        "steady_seconds": train_seconds - warm_up_extra_seconds if step_seconds else None,
        "epoch_seconds": train_seconds / len(measured.epochs),
        "valid_seconds": valid_seconds,
        "step_seconds": step_seconds,
        **of_a_step,
        **phases,
        "other_seconds": measured.fit_seconds - valid_seconds - sum(phases.values()),
        "first_batch_seconds": fmean(first_waits.values()),
        # Without a worker, as with images on the device, nothing starts.
        "loader_start_seconds": fmean(e.loader_start_seconds for e in measured.epochs)
        if measured.workers
        else None,
        "loader_end_seconds": sum(epoch.loader_end_seconds for epoch in measured.epochs),
        "warm_up_extra_seconds": warm_up_extra_seconds,
        "decoder_difference": measured.decoder_difference.mean
        if measured.decoder_difference
        else None,
        "images_per_second": images / train_seconds,
        "images_processed": images,
        "steps": sum(epoch.steps for epoch in measured.epochs),
        "warm_up_steps": sum(step.warm_up for step in measured.steps),
        "train_images": record.data.train_images if record.data else None,
        "accuracy": last.accuracy,
        "learning_rate": record.settings.training.scaled_learning_rate,
        "reached_target": target.reached if target else None,
        "target_epochs": target.epochs if target else None,
        "target_seconds": target.seconds if target else None,
        "valid_loss": last.valid_loss,
        "peak_device_allocated_bytes": measured.memory.device_allocated_bytes,
        "peak_device_reserved_bytes": measured.memory.device_reserved_bytes,
        "peak_host_resident_bytes": measured.memory.host_resident_bytes,
        "replicas": len(measured.replicas) or 1,
        "global_batch_size": measured.global_batch_size or record.settings.training.batch_size,
        "replica_batch_size": measured.replica_batch_size or record.settings.training.batch_size,
        "peak_all_device_allocated_bytes": sum(filter(None, peaks)) if None not in peaks else None,
    }


def _warm_up_extra(measured: Measurement, stages: Sequence[str]) -> float:
    """Return the seconds that warm-up steps took beyond the median steady step of their stage,
    without data waits.

    They include the first use of each kernel, cuDNN's search, the allocator and compilation.
    """
    extra = 0.0
    for stage in dict.fromkeys(stages):
        group = [step for step in measured.steps if stages[step.epoch - 1] == stage]
        steady = [step.seconds - step.data_wait_seconds for step in group if not step.warm_up]
        usual = median(steady) if steady else 0.0
        extra += sum(
            max(0.0, step.seconds - step.data_wait_seconds - usual)
            for step in group
            if step.warm_up
        )
    return extra
