"""What the yardstick says: how far the machine itself changed while a study was measured."""

import numpy as np
import pandas as pd

YARDSTICKS = ("yardstick_seconds", "host_yardstick_seconds")
CHANGE_LIMIT = 1.10
"""Below this the yardstick's own noise is as large as the change: nothing is adjusted."""


def with_machine(frame: pd.DataFrame) -> pd.DataFrame:
    """The runs with ``machine``: each one's yardstick over the mean of those on the same device; above 1 is slower.

    Of a GPU's two yardsticks, its own and that of the CPUs which load its data, the one counts that changed more.
    """
    if frame.empty or "yardstick_seconds" not in frame:
        return frame.assign(machine=float("nan"))
    machine = pd.Series(float("nan"), index=frame.index)
    for _, rows in frame.groupby("device", sort=False):
        states = [relative(rows[column]) for column in YARDSTICKS if column in rows and rows[column].notna().all()]
        if states:
            machine.loc[rows.index] = max(states, key=lambda state: state.max() / state.min())
    return frame.assign(machine=machine)


def relative(seconds: "pd.Series[float]") -> "pd.Series[float]":
    """Each over their geometric mean."""
    logs = seconds.astype(float).map(np.log)
    return (logs - logs.mean()).map(np.exp)


def change(frame: pd.DataFrame) -> float | None:
    """How far the machine changed during these runs: its slowest state over its fastest; None without a yardstick."""
    if frame.empty or frame["machine"].isna().any():
        return None
    return float(frame["machine"].max() / frame["machine"].min())


def covariate(frame: pd.DataFrame) -> list[float] | None:
    """The machine's state in each run, where every run has one and it changed; None where it did not."""
    ratio = change(frame)
    return None if ratio is None or ratio < CHANGE_LIMIT else [float(value) for value in frame["machine"]]
