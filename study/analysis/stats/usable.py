"""The runs that an analysis uses, and how far the machine changed by its reference
workload."""

import numpy as np
import pandas as pd
from scipy import special

from study.analysis.stats.log_model import LogModel, fit_log_model


def counted(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a table of timings that count: those of records that were excluded are
    left out."""
    return frame[frame["excluded"].isna()]


def succeeded(frame: pd.DataFrame, y: str) -> pd.DataFrame:
    """Return the rows of the runs that count and have the time ``y``."""
    return frame[frame["excluded"].isna() & (frame["outcome"] == "ok") & frame[y].notna()]


def usable_runs(frame: pd.DataFrame, y: str) -> pd.DataFrame:
    """Return the runs that count, with columns ``session_block`` (session and replicate) and
    ``pace``; none is far where no rule has looked."""
    usable = succeeded(frame, y)
    session = usable["session"].astype(int).astype(str)
    blocks = session + "." + usable["block"].astype(int).astype(str)
    usable = usable.assign(session_block=blocks, far=usable["far"].fillna(0))
    return with_machine(usable)


def model_of(runs: pd.DataFrame, y: str) -> LogModel:
    """Return the model of log ``y`` of the runs that count."""
    columns = (y, "level", "session_block", "session", "far")
    return fit_log_model(*(runs[name].tolist() for name in columns))


def mean_of(frame: pd.DataFrame, column: str) -> float | None:
    """Return the mean of a column; None where it was not measured."""
    return float(frame[column].mean()) if frame[column].notna().any() else None


REFERENCE_COLUMNS = ("reference_seconds", "host_reference_seconds")
CHANGE_LIMIT = 1.10
"""Slowest reference workload over the fastest, from which the machine counts as changed; less may
be its own noise."""


HALF = 0.5
"""Slope of the log times over the log pace from which the pace counts in full: where the times of
one side alone follow it, all follow it by half."""
FEWEST_STILL = 3
"""Blocks without a change of the machine from which these alone tell."""


def with_machine(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with a column ``pace``: the reference workload over its mean on that device;
    above 1 is slower.

    A GPU has two reference workloads, its own and that of the CPUs that load its data; the one that
    changed more counts.
    """
    paces = pd.Series(np.nan, index=frame.index)
    for _, rows in frame.groupby("device", sort=False):
        logs = rows[[*REFERENCE_COLUMNS]].astype(float).dropna(axis=1).apply(np.log)
        if len(logs.columns):
            most = logs[(logs.max() - logs.min()).idxmax()]
            paces.loc[rows.index] = np.exp(most - most.mean())
    return frame.assign(pace=paces)


def felt(runs: pd.DataFrame, y: str) -> "pd.Series[float]":
    """Return the pace of each run, or what times feel of it where they follow it by less than half.

    How far they do is the slope of their logarithms over all levels, at the upper end of its 95%
    interval. A reference workload of milliseconds has a noise of its own, which the times do not
    have; what is expected of the machine behind a pace that was measured with noise is that slope's
    part (regression calibration; Carroll et al. 2006, chapter 4).
    """
    x, seconds = (one.astype(float).apply(np.log) for one in (runs["pace"], runs[y]))
    x, seconds = (one - one.groupby(runs["level"]).transform("mean") for one in (x, seconds))
    spread = (x**2).sum()
    degrees = len(runs) - runs["level"].nunique() - 1
    if degrees < FEWEST_STILL or not spread > 0:
        return runs["pace"]
    slope = (x * seconds).sum() / spread
    error = np.sqrt(((seconds - slope * x) ** 2).sum() / degrees / spread)
    most = max(slope + special.stdtrit(degrees, 0.975) * error, 0.0)
    return runs["pace"] ** (most if most < HALF else 1.0)


def stands_out(differences: "pd.Series[float]", leans: "pd.Series[float]") -> bool:
    """Return whether the difference of two sides is no work of a machine that changed within
    blocks.

    ``differences`` are those of the mean log times by block, and ``leans`` those of the log paces,
    none where no reference workload ran. Where that changed by 10% or more from one side to the
    other, the sides must differ in one direction in all blocks, and there by more than it did; or
    most blocks, and three at least, met no such change. A machine that was slower on the faster
    side explains nothing.
    """
    limit = np.log(CHANGE_LIMIT)
    if not (leans.abs() >= limit).any():
        return True
    sign = np.sign(differences.mean())
    ahead, lean = sign * differences, (sign * leans).reindex(differences.index)
    moved = lean >= limit
    still = int((~moved).sum())
    beaten = bool((ahead > lean)[moved].all()) or still >= max(FEWEST_STILL, len(moved) // 2 + 1)
    return bool((ahead > 0).all()) and beaten


def mean_lean(leans: "pd.Series[float]") -> float:
    """Return what the machine may have added to the mean difference of two sides, in log units, by
    its ``leans``.

    0 where no block changed by 10%.
    """
    return float(leans.mean()) if (leans.abs() >= np.log(CHANGE_LIMIT)).any() else 0.0
