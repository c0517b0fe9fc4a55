"""Cells of whole answers: ways to train, contrasts, the best combination, and runs that a time
limit ended."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.simulated import SECONDS, SLOWED
from benchmarks.trials import JOINT, Cell, Trial, holds, study_of
from study.analysis.answers.group import Group, group_of
from study.analysis.answers.switches import switches_of
from study.analysis.answers.ways import ways_of
from study.analysis.caveats.base import Seen
from study.analysis.caveats.conditions import CarryOver
from study.analysis.groups import GroupFit, groups_of
from study.analysis.ratios import overall_of
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.mixed_model import Array
from study.analysis.stats.usable import usable_runs
from study.analysis.table.exclusions import keys_of, with_exclusions
from study.analysis.table.rows import as_table
from study.artifacts.checked import Records
from study.artifacts.record import TIMED_OUT
from study.artifacts.setting import part_of, parts_of, setting_of
from study.config.study import Study
from study.host.plan.make import orders_of

SIZE = "training.batch_size"
WAY = "training.optimizer_implementation"
PRECISION = "training.precision"
CURVE = {"x": SIZE, "y": "fit_seconds"}
WAYS = study_of({WAY: ["auto", "fused", "foreach"], SIZE: [16, 32, 64, 128]}, curve=CURVE)
LIMITED = study_of({SIZE: [16, 32, 64]}, curve=CURVE)
SWITCHES: dict[str, list[Any]] = {
    PRECISION: ["fp32", "bf16"],
    "training.memory_format": ["contiguous", "channels_last"],
    WAY: ["auto", "fused"],
    "dataset.image_size": [32, 64],
    SIZE: [16, 32],
    "training.epochs": [1, 2],
}
MACHINE_NOISE = 0.02
"""Standard deviation of the reference workload's log seconds."""


def table(
    study: Study,
    logs: Array,
    order: Array,
    drift: Array | None = None,
    limit: float = np.inf,
    starts: bool = False,
) -> pd.DataFrame:
    """Return the marked table of one start, or of ``starts`` of one block each, with log seconds
    (blocks, settings), the settings as the study's product.

    ``order`` has the place of each run in its block, ``drift`` the log of its reference workload. A
    run of the last setting that takes longer than the ``limit`` is ended.
    """
    keys = [key for key in study.factors if key != "device"]
    cells = []
    for levels in product(*(study.factors[key] for key in keys)):
        own = {"device": "cpu"} | dict(zip(keys, levels, strict=True))
        level, group = (part_of(study, own, part).label for part in keys_of(study))
        cells.append(own | {"level": level, "group": group})
    rows: list[dict[str, Any]] = []
    for block, place in product(range(len(logs)), range(len(cells))):
        seconds = SECONDS * float(np.exp(logs[block, place]))
        started = pd.Timestamp(
            60 * (block * len(cells) + order[block, place]), unit="s", tz="UTC"
        ).isoformat()
        ended = seconds > limit and place == len(cells) - 1
        done = (
            {"outcome": "failed", "message": f"{TIMED_OUT} after {limit:g} s"}
            if ended
            else {"outcome": "ok"}
        )
        times = {} if ended else {"fit_seconds": seconds, "train_seconds": seconds}
        row = {
            "study": "s",
            "key": "0",
            "run": f"{block} {place}",
            "precision": "fp32",
            "session": block + 1 if starts else 1,
            "block": block + 1,
            "position": len(rows) + 1,
            "started": started,
            "warmed_up": True,
        }
        state = {} if drift is None else {"reference_seconds": float(np.exp(drift[block, place]))}
        rows.append(row | cells[place] | done | times | state)
    return with_exclusions(study, as_table(rows))


def groups_by(study: Study, key: str, frame: pd.DataFrame) -> list[GroupFit]:
    """Return the groups of each level of a factor, with the means of their runs: models of their
    own take long."""
    found = []
    for level, part in usable_runs(frame, "fit_seconds").groupby(key, sort=False):
        means = np.log(part["fit_seconds"]).groupby(part["level"]).mean().map(np.exp)
        times = {str(name): Estimate(value=float(mean)) for name, mean in means.items()}
        levels = parts_of(study, keys_of(study)[0])
        found.append(
            GroupFit(setting_of(study, {key: str(level)}), levels, part, part, times=times)
        )
    return found


def orders(blocks: int, settings: int, rng: np.random.Generator) -> Array:
    """Return the place (blocks, settings) of each run in its block, as plans have them."""
    drawn = orders_of([blocks] * settings, int(rng.integers(2**32)))
    return np.array([*drawn]).argsort(1).astype(float)


def slowed(logs: Array, rng: np.random.Generator) -> Array:
    """Return the log seconds with a tenth of the runs slowed."""
    return logs + (rng.random(logs.shape) < 0.1) * np.log(rng.uniform(*SLOWED, logs.shape))


def ways(kind: str, blocks: int, rng: np.random.Generator) -> Iterator[Trial]:
    """Three ways x 4 sizes, noise 5%: all equal, and one way that is faster."""
    for times in (1.0, 1.2, 2.0, 5.0):
        logs = np.repeat([0, np.log(times), np.log(times)], 4) + rng.normal(0, 0.05, (blocks, 12))
        order = orders(blocks, 12, rng)
        if kind == "10% slowed":
            logs = slowed(logs, rng)
        elif kind == "way x block 10%":
            logs += np.repeat(rng.normal(0, 0.1, (blocks, 3)), 4, 1)
        elif kind == "drift to twofold within blocks":
            logs += rng.uniform(-np.log(2), np.log(2), (blocks, 1)) * (order / 11 - 0.5)
        groups = groups_by(WAYS, WAY, table(WAYS, logs, order))
        bests = [min(group.times, key=lambda label: group.times[label].value) for group in groups]
        told = [
            Group(setting=one.setting, levels=[], best=best)
            for one, best in zip(groups, bests, strict=True)
        ]
        found = ways_of(WAYS, groups, told)
        slower = {way.group.levels[WAY] for way in found[0].ways if way.slower}
        if times == 1:
            yield "false: a way is called slower", bool(slower)
        else:
            yield f"{times:g} times: the fastest way alone is named", slower == {"fused", "foreach"}
            yield f"{times:g} times: the fastest way is called slower", "auto" in slower
        for way in found[0].ways[1:2]:
            gap = (way.group.levels[WAY] != "auto") - (found[0].ways[0].group.levels[WAY] != "auto")
            if way.mean and way.mean.low:
                yield (
                    f"{times:g} times: joint ratio of means held",
                    holds(way.mean, gap * np.log(times)),
                )


def contrast(kind: str, blocks: int, sizes: int, rng: np.random.Generator) -> Iterator[Trial]:
    """Two sides at one size or two, noise 3%: equal, and apart."""
    factors: dict[str, list[Any]] = {PRECISION: ["fp32", "bf16"], SIZE: [16, 32][:sizes]}
    study = study_of(factors, curve=CURVE if sizes > 1 else None, contrast=PRECISION)
    side = np.repeat([1, 0], sizes)
    for times in (1.0, 1.2, 3.0):
        order = orders(blocks, 2 * sizes, rng)
        when = np.arange(blocks)[:, None] + order / (2 * sizes)
        machine = np.zeros(when.shape)
        if kind == "machine twofold between blocks":
            machine += rng.uniform(0, np.log(2), (blocks, 1))
        elif kind == "machine swings twofold":
            machine += np.log(2) / 2 * np.sin(2 * np.pi * (when / rng.uniform(1, 4) + rng.random()))
        logs = machine + np.log(times) * side + rng.normal(0, 0.03, when.shape)
        if kind == "10% slowed":
            logs = slowed(logs, rng)
        elif kind == "device x block 10%":
            logs += rng.normal(0, 0.1, (blocks, 1)) * (side - 0.5) * np.sqrt(2)
        drift = machine + rng.normal(0, MACHINE_NOISE, when.shape)
        overall = overall_of(
            study,
            groups_by(study, PRECISION, table(study, logs, order, drift)),
            PRECISION,
            "fp32",
            "bf16",
        )
        told = (
            bool(overall)
            and overall is not None
            and not overall.drift_confounded
            and overall.ratio.excludes_one
        )
        apart = "must be told" if "between" in kind or kind == "clean" else "told"
        yield (
            (
                "false: a side is called faster"
                if times == 1
                else f"{times:g} times: {apart if times == 3 else 'told'}"
            ),
            told,
        )
        if overall and overall.ratio.low:
            yield f"{times:g} times: ratio held", holds(overall.ratio, np.log(times))


def combination(switches: int, kind: str, rng: np.random.Generator) -> Iterator[Trial]:
    """All settings of some switches in five blocks, noise 5%: equal, one switch of 1.2, or two that
    oppose."""
    study = study_of(dict(list(SWITCHES.items())[:switches]), effects=True, curve=None)
    cells = np.array(list(product([0, 1], repeat=switches)))
    part = {
        "equal": 0 * cells[:, 0],
        "one of 1.2": cells[:, 0],
        "opposed": (cells[:, 0] + cells[:, 1]) % 2,
    }[kind]
    truth = -np.log(1.2) * part
    logs = truth + rng.normal(0, 0.05, (5, len(cells)))
    (group,) = groups_of(study, table(study, logs, orders(5, len(cells), rng)))
    best = min(group.times, key=lambda label: group.times[label].value)
    at = [
        str(level) != str(study.factors[key][0])
        for key, level in group.levels[best].levels.items()
        if key in SWITCHES
    ]
    found = switches_of(study, group, best)
    if not any(at):  # the first setting is the best: nothing is said
        yield "false gain", False
    elif found and found.combination:
        gain = -float(truth[(cells == at).all(1)].item())
        yield "joint bounds of the gain held", holds(found.combination.times_as_fast, gain)
        yield "false gain", gain == 0 and found.combination.decided


def effects(switches: int, shift: float, rng: np.random.Generator) -> Iterator[Trial]:
    """All settings of some switches in three starts of one block, noise 3%: each start shifts the
    first switch, which buys nothing, as a whole."""
    study = study_of(dict(list(SWITCHES.items())[:switches]), effects=True, curve=None)
    side = np.array(list(product([0, 1], repeat=switches)))[:, 0] - 0.5
    logs = rng.normal(0, shift, (3, 1)) * side + rng.normal(0, 0.03, (3, len(side)))
    logs += rng.normal(0, 0.03, (3, 1))
    (group,) = groups_of(study, table(study, logs, orders(3, len(side), rng), starts=True))
    found = switches_of(study, group, None)
    assert found
    yield "joint bounds of the effect held", holds(found.effects[0].times_as_fast, 0)


def in_time(order: Array, by_run: Array) -> Array:
    """Return what each run in the order of execution (n,) meets as (blocks, settings)."""
    return np.take_along_axis(by_run.reshape(order.shape), order.astype(int), 1)


def neighbour(size: float, jitter: float, blocks: int, rng: np.random.Generator) -> Iterator[Trial]:
    """Two settings, noise 2%, beside a neighbour that slows two runs of every four, whose lengths
    vary by ``jitter``; their reference workload, noise 2%, meets it, too."""
    study = study_of({SIZE: [16, 32]}, curve=None)
    for apart in (0.0, 0.1):
        order, beside = orders(blocks, 2, rng), 0.0 if apart else size
        when = np.cumsum(rng.normal(1, jitter, 2 * blocks)) + rng.uniform(0, 4)
        machine = in_time(order, np.log1p(beside) * (when % 4 < 2))
        logs = machine + rng.normal(0, 0.03, (blocks, 1)) + np.log1p(apart) * np.arange(2)
        drift = machine + rng.normal(0, MACHINE_NOISE, machine.shape)
        frame = table(study, logs + rng.normal(0, 0.02, machine.shape), order, drift)
        (group,) = groups_of(study, frame)
        told = len(group_of(study, group).indistinguishable) == 1
        yield "told at 1.1 times, without it" if apart else "equal: one is called slower", told


def carried(size: float, blocks: int, rng: np.random.Generator) -> Iterator[Trial]:
    """Three equal settings, noise 1%, of which one makes the next run slower."""
    study = study_of({SIZE: [16, 32, 64]}, curve=None)
    order = orders(blocks, 3, rng)
    after = np.append(False, order.argsort(1).ravel()[:-1] == 2)
    logs = in_time(order, np.log1p(size) * after) + rng.normal(0, 0.03, (blocks, 1))
    frame = table(study, logs + rng.normal(0, 0.01, logs.shape), order)
    (group,) = groups_of(study, frame)
    yield "equal: one is called slower", len(group_of(study, group).indistinguishable) < 3
    seen = Seen(study, frame=frame, fitted=[group], records=Records())
    named = [one.after.label for one in CarryOver.find(seen)]
    yield ("the setting is named" if size else "false: a setting is named"), bool(named)


def jittered(fast: int, slow: int, blocks: int, rng: np.random.Generator) -> Iterator[Trial]:
    """Equal settings of 2 s beside some of 20 s and more, all with a noise of 0.2 s."""
    study = study_of({SIZE: [2**power for power in range(4, 4 + fast + slow)]}, curve=None)
    times = np.array([2.0] * fast + [20 * 1.3**place for place in range(slow)])
    logs = np.log((times + rng.normal(0, 0.2, (blocks, len(times)))) / SECONDS)
    logs += rng.normal(0, 0.02, (blocks, 1))
    (group,) = groups_of(study, table(study, logs, orders(blocks, len(times), rng)))
    equal = {str(2**power) for power in range(4, 4 + fast)}
    kept = group_of(study, group).indistinguishable
    yield "equal: one is called slower", not equal <= {*kept}


def limited(blocks: int, rng: np.random.Generator) -> Iterator[Trial]:
    """A setting of 10.3 s in the mean, of which a limit of 10.4 s ends the slow runs, beside 9.9 s
    and 12 s."""
    truth = np.log(np.array([12.0, 9.9, 10.3]) / SECONDS)
    logs = truth + rng.normal(0, 0.03, (blocks, 1)) + rng.normal(0, [0.01, 0.01, 0.15], (blocks, 3))
    (group,) = groups_of(LIMITED, table(LIMITED, logs, orders(blocks, 3, rng), limit=10.4))
    told = group_of(LIMITED, group)
    yield "false: the ended setting is named fastest", told.best == "64"
    yield "the fastest is named", told.best == "32"
    time = group.times.get("64")
    yield "the ended setting has an interval", bool(time and time.low)


def answers() -> list[Cell]:
    """Return the cells."""
    found = []
    for kind, blocks in product(
        ("clean", "10% slowed", "way x block 10%", "drift to twofold within blocks"), (2, 3)
    ):
        found.append(Cell(f"ways, {kind}, {blocks} blocks", partial(ways, kind, blocks), share=0.3))
    kinds = (
        "clean",
        "machine twofold between blocks",
        "machine swings twofold",
        "10% slowed",
        "device x block 10%",
    )
    for kind, sizes in product(kinds, (1, 2)):
        # bounds that hold whatever the machine did
        swing = {"held": JOINT} if "swings" in kind else {}
        found.append(
            Cell(
                f"contrast, {kind}, {sizes} sizes, 3 blocks",
                partial(contrast, kind, 3, sizes),
                swing,
                0.3,
            )
        )
    for switches, kind in product((2, 4, 6), ("equal", "one of 1.2", "opposed")):
        share = {2: 1.0, 4: 0.5, 6: 0.2}[switches]
        found.append(
            Cell(
                f"best of {2**switches} settings, {kind}",
                partial(combination, switches, kind),
                share=share,
            )
        )
    for switches, shift in product((3, 5), (0, 0.02, 0.04, 0.06, 0.1)):
        name = f"effect of {2**switches} settings, 3 starts that shift it by {shift:.0%}"
        share = 1.0 if switches == 3 else 0.3
        found.append(Cell(name, partial(effects, switches, shift), {"joint": (0.95, 1.0)}, share))
    for (size, jitter), blocks in product(
        ((0.02, 0.03), (0.04, 0.03), (0.08, 0.03), (0.08, 0.25)), (3, 5, 9)
    ):
        name = f"neighbour of four runs, {size:.0%}, lengths vary by {jitter:.0%}, {blocks} blocks"
        found.append(Cell(name, partial(neighbour, size, jitter, blocks), {"called": (0, 0.07)}))
    for size, blocks in product((0, 0.1), (3, 5, 9, 10)):
        name = f"carry-over of {size:.0%}, {blocks} blocks"
        found.append(Cell(name, partial(carried, size, blocks)))
    for (fast, slow), blocks in product(((2, 2), (3, 3)), (3, 5)):
        # with three blocks no noise of a setting is shown beside two others
        allowed = {"called": (0.0, 0.2 if blocks == 3 else 0.07)}
        name = f"noise of 0.2 s, {fast} of 2 s and {slow} of 20 s, {blocks} blocks"
        found.append(Cell(name, partial(jittered, fast, slow, blocks), allowed))
    return found + [
        Cell(f"time limit, {blocks} blocks", partial(limited, blocks)) for blocks in (5, 8)
    ]
