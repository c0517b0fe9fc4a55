"""What the yardstick says: how far the machine itself changed while a study was measured."""

import numpy as np
import pandas as pd

CHANGE_LIMIT = 1.10
"""Below this the yardstick's own noise is as large as the change: nothing is adjusted."""


def with_machine(frame: pd.DataFrame) -> pd.DataFrame:
    """The runs with ``machine``: each one's yardstick over the mean of those on the same device; above 1 is slower."""
    if frame.empty or "yardstick_seconds" not in frame:
        return frame.assign(machine=float("nan"))
    logs = frame["yardstick_seconds"].astype(float).map(np.log)
    return frame.assign(machine=(logs - logs.groupby(frame["device"]).transform("mean")).map(np.exp))


def change(frame: pd.DataFrame) -> float | None:
    """How far the machine changed during these runs: its slowest state over its fastest; None without a yardstick."""
    if frame.empty or frame["machine"].isna().any():
        return None
    return float(frame["machine"].max() / frame["machine"].min())


def covariate(frame: pd.DataFrame) -> list[float] | None:
    """The machine's state in each run, where every run has one and it changed; None where it did not."""
    ratio = change(frame)
    return None if ratio is None or ratio < CHANGE_LIMIT else [float(value) for value in frame["machine"]]
