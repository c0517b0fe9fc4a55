"""What several results folders hold of the same work, read to be compared."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from study.analysis.stats.usable import usable_runs
from study.analysis.table.tables import read_table
from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.run import Run
from study.artifacts.setting import setting_of
from study.base.errors import StudyError
from study.config.settings import decisive, flat
from study.config.times import TimeName
from study_compare.side import PHASES, STATES, Side

MADE_BY = ("device", "limits", "process", "machine")
"""Settings that are the circumstances of the work, and not the work: they are told where they
differ."""
Work = dict[str, Any]
"""What a run does: its decisive settings by dotted key, and the checksum of its data."""


@dataclass(frozen=True)
class _Result:
    """One study of one folder."""

    name: str
    plan: Plan
    runs: pd.DataFrame
    """The runs that count, with a column ``seconds``."""
    works: dict[str, Work]
    """By the run's name."""
    records: Mapping[str, Record]

    @property
    def devices(self) -> set[str]:
        return set(self.runs["device"])


@dataclass(frozen=True)
class Same:
    """What results hold of the same work in one study."""

    study: str
    total: TimeName
    margins: dict[str, float]
    """The margin of equivalence in the plan of each result."""
    settings: list[str]
    """Those that every result has, in the order of the study's levels."""
    sides: list[Side]
    left_out: dict[str, list[str]]
    """Settings that some other result lacks, by the result."""
    differs: dict[str, list[str]]
    """What machine and software each result had, where that differs: a value a result."""


def studies_of(folders: Sequence[Path], names: Sequence[str]) -> list[str]:
    """Return the studies to be compared: those of ``names``, else all that every folder holds.

    Raise :class:`StudyError` if there is none.
    """
    for folder in folders:
        if not folder.is_dir():
            raise StudyError(f"{folder}: not a results folder: no such folder")
    held = [{plan.parent.name for plan in folder.glob("*/plan.json")} for folder in folders]
    for folder, studies in zip(folders, held, strict=True):
        if not studies:
            raise StudyError(f"{folder}: not a results folder: it holds no <study>/plan.json")
        for name in names:
            if name not in studies:
                raise StudyError(
                    f"--study: {folder} holds no study {name!r}; allowed: "
                    f"{', '.join(sorted(studies))}"
                )
    shared = sorted(set.intersection(*held))
    if not shared:
        told = "; ".join(
            f"{folder}: {', '.join(sorted(one))}" for folder, one in zip(folders, held, strict=True)
        )
        raise StudyError(f"compare: no study is in every folder: {told}")
    return list(names) or shared


def same_work(study: str, folders: Sequence[Path]) -> Same:
    """Return the runs of each folder that do the same work in ``study``.

    Raise :class:`StudyError` with the first difference if no setting of one result is in every
    other.
    """
    names = _names(folders)
    results = [_read(name, study, folder) for name, folder in zip(names, folders, strict=True)]
    first, *others = results
    total = first.plan.study.total
    for other in others:
        if other.plan.study.total != total:
            raise StudyError(
                f"{study}: the time that is compared is {total} in {first.name} "
                f"and {other.plan.study.total} in {other.name}"
            )
    across = not set.intersection(*(result.devices for result in results))
    if across and any(len(result.devices) > 1 for result in results):
        raise StudyError(f"{study}: no device is in every result, and one has several")
    keys = [{run: _key(work, across) for run, work in result.works.items()} for result in results]
    shared = set.intersection(*(set(one.values()) for one in keys))
    if not shared:
        raise StudyError(f"{study}: the work is not the same: {_first_difference(results)}")
    labels = {keys[0][run.name]: _label(first.plan, run, across) for run in _in_order(first)}
    return Same(
        study=study,
        total=total,
        margins={result.name: result.plan.study.equivalence_margin for result in results},
        settings=list(dict.fromkeys(label for key, label in labels.items() if key in shared)),
        sides=[
            _side(result, one, {key: labels[key] for key in shared})
            for result, one in zip(results, keys, strict=True)
        ],
        left_out={
            result.name: _left_out(result, one, shared, across)
            for result, one in zip(results, keys, strict=True)
        },
        differs=_differences([list(result.records.values()) for result in results]),
    )


def _names(folders: Sequence[Path]) -> list[str]:
    """Return a name for each folder: the shortest end of its path that no other one has."""
    parts = [folder.resolve().parts for folder in folders]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(one[-length:]) for one in parts]
        if len(set(names)) == len(names):
            return names
    raise StudyError(f"compare: {folders[0]} is given twice")


def _read(name: str, study: str, folder: Path) -> _Result:
    files = Results(folder)
    plan = Plan.read(files.plan(study))
    frame, found = read_table(plan, files.records(study), files.telemetry_folder(study))
    runs = usable_runs(frame, plan.study.total)
    if runs.empty:
        raise StudyError(f"{study}: {name} has no run that counts")
    records = {run: record for run, record in found.included.items() if run in set(runs["run"])}
    works = {run: _work(record) for run, record in records.items()}
    return _Result(name, plan, runs.assign(seconds=runs[plan.study.total]), works, records)


def _work(record: Record) -> Work:
    """Return what a run did: a run's threads are those of its machine, and its data those that it
    read."""
    data = record.data.sha256 if record.data else None
    return {**dict(flat("", decisive(record.settings))), "data": data}


def _key(work: Work, across: bool) -> str:
    left = {
        key: value
        for key, value in work.items()
        if key.partition(".")[0] not in (MADE_BY if across else MADE_BY[1:])
    }
    return json.dumps(left, sort_keys=True)


def _left_out(
    result: _Result, keys: Mapping[str, str], shared: set[str], across: bool
) -> list[str]:
    """Return the settings of a result that some other one lacks."""
    left = [run for run in _in_order(result) if keys[run.name] not in shared]
    return list(dict.fromkeys(_label(result.plan, run, across) for run in left))


def _in_order(result: _Result) -> list[Run]:
    """Return the runs that count in the order of the study's levels."""
    orders = result.plan.study.factors
    runs = [run for run in result.plan.runs if run.name in result.works]
    return sorted(
        runs,
        key=lambda run: [levels.index(run.setting.levels[key]) for key, levels in orders.items()],
    )


def _label(plan: Plan, run: Run, across: bool) -> str:
    left_out = {"control", *(["device"] if across else [])}
    varied = [
        key for key, levels in plan.study.factors.items() if len(levels) > 1 and key not in left_out
    ]
    return setting_of(plan.study, {key: run.setting.levels[key] for key in varied}).label


def _differing(one: Work, two: Work) -> list[str]:
    decides = (key for key in one if key.partition(".")[0] not in MADE_BY)
    return [key for key in decides if one[key] != two.get(key)]


def _first_difference(results: Sequence[_Result]) -> str:
    """Return the key in which the most alike runs of the first two results that share none
    differ."""
    first = results[0]
    for other in results[1:]:
        pairs = product(first.works.values(), other.works.values())
        one, two = min(pairs, key=lambda pair: len(_differing(*pair)))
        differing = _differing(one, two)[:3]
        if differing:
            return "; ".join(
                f"{key} is {one[key]!r} in {first.name} and {two.get(key)!r} in {other.name}"
                for key in differing
            )
    return "no setting is in every result"


def _side(result: _Result, keys: Mapping[str, str], labels: Mapping[str, str]) -> Side:
    runs = result.runs.assign(
        setting=[labels.get(keys.get(run, ""), "") for run in result.runs["run"]],
        start=result.runs["session"],
    )
    columns = [
        "setting",
        "seconds",
        "start",
        "started",
        "accuracy",
        "valid_images",
        *PHASES,
        *STATES,
    ]
    counted = runs.loc[runs["setting"] != "", columns].sort_values("started", kind="stable")
    numbers = dict.fromkeys((*PHASES, *STATES), float)
    return Side(result.name, counted.astype(numbers), result.plan.study.learning_margin)


def _differences(records: Sequence[Sequence[Record]]) -> dict[str, list[str]]:
    """Return the facts of machine and software that differ between results, each with its value in
    every result.

    A package that only one of them noted is none: an image tells all that it holds, a host what it
    imports.
    """
    told = [_facts(each) for each in records]
    rows = {
        key: [facts[key] for facts in told]
        for key in told[0]
        if all(key in facts for facts in told)
    }
    return {key: values for key, values in rows.items() if len(set(values)) > 1}


def _facts(records: Sequence[Record]) -> dict[str, str]:
    """Return what is known of machine and software; several values where the runs differ."""
    found: dict[str, dict[str, None]] = {}
    for record in records:
        for key, value in _facts_of(record).items():
            found.setdefault(key, {})[value] = None
    return {key: " or ".join(values) for key, values in found.items()}


def _facts_of(record: Record) -> dict[str, str]:
    machine, software = record.machine, record.software
    facts = {
        "version of this project": software.study_version,
        "commit": software.git_commit or "unknown",
        "lock": (software.lock_sha256 or "unknown")[:12],
        "engine": software.engine,
        "image": (software.image or "none")[:19],
        "started as": record.started_as,
    }
    if machine:
        facts |= {
            "device": machine.device_name,
            "processor": machine.cpu_name,
            "logical CPUs": str(machine.cpu_threads),
            "memory": f"{machine.memory_bytes / 2**30:.0f} GiB",
            "driver": machine.driver or "none",
            "CUDA": machine.cuda or "none",
            "cuDNN": str(machine.cudnn or "none"),
            "system": machine.system,
            "Python": machine.python,
        }
        facts |= machine.libraries
    return facts
