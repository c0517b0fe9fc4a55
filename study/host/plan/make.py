"""From a study to its runs: factors x replicates, their names, keys and seeded order."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from study.artifacts.plan import Plan
from study.artifacts.run import Run
from study.artifacts.setting import EVERYWHERE, settings_of
from study.base import devices
from study.base.errors import StudyError
from study.config.effect import check_factors
from study.config.settings import Settings, get, with_values
from study.config.study import Study
from study.data import sources, splits
from study.host.engine.engine_choice import EngineChoice
from study.host.plan import process_count
from study.host.plan.keys import Parts

MOST_RUNS = 10**6
"""Ten times what was tried (``benchmarks.many_plans``)."""
ORDERS = 4
"""Orders that are drawn for a block, of which one is taken."""


def make_plan(
    name: str,
    study: Study,
    choice: EngineChoice,
    absent: dict[str, str | None],
    counts: Mapping[str, int | None] | None = None,
    earlier: Plan | None = None,
    machines: Collection[str] | None = None,
) -> Plan:
    """Return the plan of ``study``, with every run checked as far as possible without opening an
    image.

    ``absent`` holds for each device the reason why it cannot be used, or None if it can. ``counts``
    is the number of units of each device (default: one of each usable device), None where it is
    unknown, as on other machines. ``earlier`` is the study's last plan: a run whose device is
    absent takes its number of processes from there. ``machines`` are the classes of machines that
    an executor has; None without one: this machine makes the runs that name no class. Raise
    :class:`StudyError` for a study that cannot be planned.
    """
    counts = counts or {device: int(not reason) for device, reason in absent.items()}
    parts = Parts(name, choice)
    before = _processes_before(earlier)
    combined = list(_combinations(name, study))
    shared = []
    for settings, _ in combined:
        processes = before.get(_levels({key: get(settings, key) for key in study.factors}))
        shared.append(_shared(settings, parts, absent, counts, processes, machines))
    if study.curve and not all(
        type(level) in (int, float) for level in study.factors[study.curve.x]
    ):
        raise StudyError(
            source=f"study {name}",
            key="curve.x",
            value=study.curve.x,
            why=f"its levels are not numbers: {study.factors[study.curve.x]}",
        )
    check_factors(study.factors, [settings for settings, _ in combined], f"study {name}")
    if choice.engine != "none" and len(levels := study.factors.get("process", [])) > 1:
        raise StudyError(
            source=f"study {name}",
            key="process",
            value=levels,
            context=f"with {choice.engine}",
            why="it has no effect there, where each run is fresh, and has one with container none",
        )
    levels = [{key: get(run.settings, key) for key in study.factors} for run in shared]
    # 1 may be 1.0 now
    as_checked = {key: list(dict.fromkeys(own[key] for own in levels)) for key in study.factors}
    full = sources.with_effect(study.full, [run.settings.dataset for run in shared])
    replicates = [runs for _, runs in combined]
    only = [own | {"replicates": runs} for own, runs in zip(levels, replicates, strict=True)]
    study = study.model_copy(
        update={"factors": as_checked, "full": full, "only": only if study.only else []}
    )
    placed = [
        run.model_copy(update={"setting": setting})
        for run, setting in zip(shared, settings_of(study, levels), strict=True)
    ]
    return Plan(
        name=name,
        study=study,
        runs=_blocks(placed, replicates, study.seed),
        engine=choice.engine,
        engine_reason=choice.reason,
        images=parts.images,
        environments=parts.environments,
        packages=parts.packages,
    )


def _combinations(name: str, study: Study) -> Iterator[tuple[Settings, int]]:
    """Yield the checked settings of each combination of levels that the study runs, and the number
    of their runs.

    Raise :class:`StudyError` once these are too many.
    """
    base = {key: value for key, value in study.model_dump().items() if key in Settings.model_fields}
    runs = 0
    for combination in itertools.product(*study.factors.values()):
        levels = dict(zip(study.factors, combination, strict=True))
        runs += (replicates := study.runs_of(levels))
        if runs > MOST_RUNS:
            raise StudyError(
                f"study {name}: more than {MOST_RUNS} runs, "
                "replicates included: fewer can be planned"
            )
        if replicates:
            yield Settings.of_values(with_values(base, levels), f"study {name}"), replicates


def _shared(
    settings: Settings,
    parts: Parts,
    absent: Mapping[str, str | None],
    counts: Mapping[str, int | None],
    before: int | None,
    machines: Collection[str] | None,
) -> Run:
    """Return what all runs with these settings share: the processes counted, data and weights known
    by their keys. It has no name and no place yet.

    Raise :class:`StudyError` if the data, the processes, the batch size or the model do not allow
    it.
    """
    dataset, train_images = parts.data(settings)
    devices, trouble = counts.get(settings.device, 0), None
    if settings.command:
        if devices is not None and settings.gpus > devices:
            trouble = f"command.gpus is {settings.gpus}, and this machine has {devices}"
    else:
        settings, trouble = process_count.resolve(
            settings, devices, parts.study, train_images, before
        )
        splits.check_batch_size(settings, train_images, parts.study)
    weights = parts.weights(settings)
    return Run(
        name="",
        setting=EVERYWHERE,
        block=0,
        position=0,
        settings=settings,
        dataset=dataset,
        weights=weights,
        key=parts.key(settings, dataset, weights),
        environment=parts.environment(settings),
        unavailable=absent.get(settings.device) or trouble or _not_here(settings, parts, machines),
    )


def _blocks(shared: Sequence[Run], replicates: Sequence[int], seed: int) -> list[Run]:
    """Return the runs: in each block every setting that has a replicate left, in the block's own
    seeded order."""
    # Checked once: a replicate differs in three values alone, and all share one set of the names of
    # what was given.
    given = {*Run.model_fields}
    runs: list[Run] = []
    for block, order in enumerate(orders_of(replicates, seed), start=1):
        for index in order:
            values = vars(shared[index]) | {"block": block, "position": len(runs) + 1}
            values["name"] = f"{shared[index].setting.short}-r{block}"
            runs.append(Run.model_construct(given, **values))
    return runs


def orders_of(replicates: Sequence[int], seed: int) -> Iterator[list[int]]:
    """Yield the order of each block: the places of the settings that have a replicate left.

    A run may be slower after a hot one, or early in its block. So of a few drawn orders the one
    counts in which settings follow each other (the last one of the block before counts, too) and
    have places in the block that they had least before. Williams' squares (1949) hold no setting
    that follows itself: of three equal settings, of which one makes the next run 10% slower, 13%
    of studies call one slower after ten blocks, and 2% so. And the more is balanced, the more
    a neighbour of a certain period falls on one setting alone.

    Of two settings each goes first in one block of every two. Which one begins these two is drawn:
    if they alternated, a neighbour that wakes up every four runs would fall on one of them alone.
    """
    met, last = Counter[tuple[int | str, int]](), list[int]()

    def pairs(order: list[int]) -> list[tuple[int | str, int]]:
        """Return each setting with the one before it, and with its place in the block."""
        places = [(f"place {place}", setting) for place, setting in enumerate(order)]
        return [*itertools.pairwise(last + order), *places]

    for block in range(1, max(replicates, default=0) + 1):
        order = [index for index, count in enumerate(replicates) if count >= block]
        two = len(order) == 2
        draw = random.Random(f"{seed}/{(block + 1) // 2 if two else block}")
        drawn = [[*order] for _ in range(1 if two else ORDERS)]
        for one in drawn:
            draw.shuffle(one)
        order = min(drawn, key=lambda one: sum(met[pair] for pair in pairs(one)))
        if two and block % 2 == 0:
            order.reverse()
        met.update(pairs(order))
        last = order[-1:]
        yield order


def _processes_before(earlier: Plan | None) -> dict[str, int]:
    """Return the number of processes that ``earlier`` gives the runs with each combination of
    levels.

    If the number is itself a factor, no level ``auto`` is among them: the earlier plan then holds
    numbers, and no longer says which of them was ``auto``.
    """
    found = [
        (_levels(run.setting.levels), run.settings.training.processes)
        for run in (earlier.runs if earlier else [])
    ]
    return {levels: processes for levels, processes in found if processes != "auto"}


def _levels(factors: dict[str, Any]) -> str:
    return json.dumps(factors, sort_keys=True)


def _not_here(settings: Settings, parts: Parts, machines: Collection[str] | None) -> str | None:
    """Return why a run cannot be made on such a device, without an engine or without an executor;
    None if it can.

    Raise :class:`StudyError` if the executor's machines have no class of this name.
    """
    if settings.image is not None and not parts.images:
        return (
            "its image needs a container engine, and runs execute on the host "
            f"({parts.choice.reason})"
        )
    if settings.environment and settings.device == "cuda" and machines is None:
        lock = Path(settings.environment).expanduser()
        if trouble := devices.unfit(devices.TorchBuild.of_lock(lock)):
            return trouble
    if settings.machine is None:
        return None
    if machines is None:
        return f"machine {settings.machine} is to be had from an executor, and this start has none"
    if settings.machine not in machines:
        raise StudyError(
            source=f"study {parts.study}",
            key="machine",
            value=settings.machine,
            allowed=machines or "none: give `machines` in the configuration",
        )
    return None
