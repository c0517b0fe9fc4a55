"""How far the machine itself changed while a study was measured, by its reference workload."""

import numpy as np
import pandas as pd

REFERENCE_COLUMNS = ("reference_seconds", "host_reference_seconds")
CHANGE_LIMIT = 1.10
"""Slowest reference workload over the fastest, from which the machine counts as changed; less may be its own noise."""


def with_machine(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with a column ``pace``: the reference workload over its mean on that device; above 1 is slower.

    A GPU has two reference workloads, its own and that of the CPUs that load its data; the one that changed more
    counts.
    """
    machine = pd.Series(float("nan"), index=frame.index)
    for _, rows in frame.groupby("device", sort=False):
        states = [relative(rows[column]) for column in REFERENCE_COLUMNS if rows[column].notna().all()]
        if states:
            machine.loc[rows.index] = max(states, key=lambda state: state.max() / state.min())
    return frame.assign(pace=machine)


def relative(seconds: "pd.Series[float]") -> "pd.Series[float]":
    """Return each value over their geometric mean."""
    logs = seconds.astype(float).map(np.log)
    return (logs - logs.mean()).map(np.exp)


def change(frame: pd.DataFrame) -> float | None:
    """Return the machine's slowest state over its fastest during these runs; None without a reference workload."""
    if frame.empty or frame["pace"].isna().any():
        return None
    return float(frame["pace"].max() / frame["pace"].min())


def stands_out(times: pd.DataFrame, paces: pd.DataFrame) -> bool:
    """Return whether the difference of two sides is no work of a machine that changed within blocks.

    Both tables have the mean logs of the two sides (columns) in each block (rows); an empty one of paces tells nothing.
    Where the reference workload changed by 10% or more from one side to the other, the sides must differ in one
    direction in all blocks, and there by more than it did.
    """
    differences = times.iloc[:, 0] - times.iloc[:, 1]
    lean = _leans(paces).abs().reindex(differences.index)
    moved = lean >= np.log(CHANGE_LIMIT)
    if not moved.any():
        return True
    one_way = bool((differences > 0).all() or (differences < 0).all())
    return one_way and bool((differences.abs() > lean)[moved].all())


def lean(paces: pd.DataFrame) -> float:
    """Return by how much the machine may have changed the mean difference of two sides, in log units.

    That is the mean over the blocks of what the reference workload differed by; 0 where no block changed by 10%.
    """
    each = _leans(paces)
    return abs(float(each.mean())) if (each.abs() >= np.log(CHANGE_LIMIT)).any() else 0.0


def _leans(paces: pd.DataFrame) -> "pd.Series[float]":
    """Return by how much the reference workload was slower on the first side of each block, in log units."""
    return paces.iloc[:, 0] - paces.iloc[:, 1]
