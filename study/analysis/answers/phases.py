"""The phases of a time: one split of each setting's mean, from which the screen, the charts and the
comparison of folders draw.

The first steps' time beyond that of later ones is start-up. Starting the loader's workers is a
phase of its own, which waiting for data and validation would hide: that of training is measured in
each epoch, and that of a validation is taken to be as long.
"""

from collections.abc import Mapping

import pandas as pd

from study.config.times import OF_A_STEP, OTHER, STEPS, TIMES, VALIDATION, TimeName

PARTS = {
    "model_seconds": "building the model",
    "graph_warm_up_seconds": "start-up",
    "workers": "starting the workers",
    "data_wait_seconds": "waiting for data",
    "transfer_seconds": "host to device",
    "device_transform_seconds": "transforms on the device",
    "forward_seconds": "forward",
    "backward_seconds": "backward",
    "optimizer_seconds": "optimizer",
    VALIDATION: "validation",
    OTHER: "rest",
}
"""The phase of each column, in the order of a job."""
ALONE = {
    "command_start_seconds": "start-up",
    "marked_seconds": "work",
    **{column: PARTS[column.removeprefix("step_")] for column in OF_A_STEP},
}
"""The phases that add up to a time as they are: of a command that says where its work begins, and
of a step."""
START_UP, WORKERS = PARTS["graph_warm_up_seconds"], PARTS["workers"]
COMPUTING = ("forward", "backward", "optimizer")
WARMED = ("device_transform_seconds", "forward_seconds", "backward_seconds", "optimizer_seconds")
"""The columns in which the first steps take longer, in that order."""


def phases_of(
    rows: pd.DataFrame, y: TimeName, mean: float, validations: int | None
) -> dict[str, float]:
    """Return the seconds of each phase of one setting's time ``y``, which add up to its ``mean``.

    ``rows`` are its runs that count. There are so many ``validations``, None for one an epoch. It
    is empty where ``y`` is no sum of phases, or a phase is not known.
    """
    columns = list(TIMES[y].parts)
    known = rows.dropna(subset=columns)
    if not columns or known.empty:
        return {}
    sums = known[columns].sum()
    if columns[0] in ALONE:
        sums *= mean / sums.sum()
        return {ALONE[column]: float(sums[column]) for column in columns}
    if VALIDATION not in columns:
        sums[OTHER] = known["train_seconds"].sum() - known[[*STEPS]].sum().sum()
    cold = max(known["warm_up_extra_seconds"].sum(), 0.0)
    epochs = known["train_seconds"] / known["epoch_seconds"]
    for column in WARMED:
        moved = min(cold, sums[column])
        sums[column] -= moved
        sums["graph_warm_up_seconds"] += moved
        cold -= moved
    sums["workers"] = 0.0
    starts = {"data_wait_seconds": epochs, VALIDATION: validations or epochs}
    for column, times in starts.items():
        if column in sums:
            moved = min((known["loader_start_seconds"] * times).sum(), sums[column])
            sums[column] -= moved
            sums["workers"] += moved
    sums *= mean / sums.sum()
    return {name: float(sums[column]) for column, name in PARTS.items() if sums.get(column)}


MAIN = (START_UP, WORKERS, "waiting for data", "computing", "work", "validation")


def summed(phases: Mapping[str, float]) -> dict[str, float]:
    """Return the phases of a first screen: computing as one, and the small ones as the rest."""
    found = dict.fromkeys([*MAIN, "rest"], 0.0)
    for name, seconds in phases.items():
        whole = "computing" if name in COMPUTING else name
        found[whole if whole in MAIN else "rest"] += seconds
    return {name: seconds for name, seconds in found.items() if seconds}


MOSTLY = 0.6
"""The share of a time from which computing is shown by its own parts."""


def with_parts(phases: Mapping[str, float]) -> dict[str, float]:
    """Return the phases of a first screen, with computing as forward, backward and optimizer."""
    others = {name: one for name, one in phases.items() if name not in COMPUTING}
    return summed(others) | {name: phases[name] for name in COMPUTING if name in phases}
