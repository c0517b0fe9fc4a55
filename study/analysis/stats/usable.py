"""The runs that an analysis uses, and the drift of the machine: a covariate that changes between
runs, and may bias a difference of settings that met it unevenly."""

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
    ``drift``; none is an outlier where no rule has looked."""
    usable = succeeded(frame, y)
    session = usable["session"].astype(int).astype(str)
    blocks = session + "." + usable["block"].astype(int).astype(str)
    usable = usable.assign(session_block=blocks, outlier=usable["outlier"].fillna(0))
    return with_drift(usable)


def model_of(runs: pd.DataFrame, y: str) -> LogModel:
    """Return the model of log ``y`` of the runs that count."""
    columns = (y, "level", "session_block", "session", "outlier")
    return fit_log_model(*(runs[name].tolist() for name in columns))


def mean_of(frame: pd.DataFrame, column: str) -> float | None:
    """Return the mean of a column; None where it was not measured."""
    return float(frame[column].mean()) if frame[column].notna().any() else None


REFERENCE_COLUMNS = ("reference_seconds", "host_reference_seconds")
CHANGE_LIMIT = 1.10
"""Slowest reference workload over the fastest, from which the machine counts as changed; less may
be its own noise."""


FULL_SLOPE = 0.5
"""Slope of the log run times on the log drift from which the drift counts in full: where only the
times of one of two sides follow it, the slope over both is a half."""
FEWEST_STEADY = 3
"""Fewest blocks without a drift that decide by themselves."""


def with_drift(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with a column ``drift``: the time of the reference workload beside the run
    over its geometric mean on that device. Above 1 the machine was slower than on the average.

    A GPU has two reference workloads, its own and that of the CPUs that load its data; the one that
    varied more is taken. The drift is NaN where none was timed.
    """
    drifts = pd.Series(np.nan, index=frame.index)
    for _, rows in frame.groupby("device", sort=False):
        logs = rows[[*REFERENCE_COLUMNS]].astype(float).dropna(axis=1).apply(np.log)
        if len(logs.columns):
            most = logs[(logs.max() - logs.min()).idxmax()]
            drifts.loc[rows.index] = np.exp(most - most.mean())
    return frame.assign(drift=drifts)


def drift_covariate(runs: pd.DataFrame, y: str) -> "pd.Series[float]":
    """Return the factor by which the drift is expected to lengthen each run's time ``y``.

    The log times, centred by level, are regressed on the log drift. Where the upper end of the
    slope's 95% interval is at least :data:`FULL_SLOPE`, the covariate is the drift itself. Below
    it, it is the drift to the power of that upper end: a reference workload of milliseconds is
    noisy, the times do not have its noise, and what is expected of a covariate measured with error
    is this slope's part (regression calibration; Carroll et al. 2006, chapter 4). With too few
    runs for a slope it is the drift itself, too.
    """
    x, seconds = (one.astype(float).apply(np.log) for one in (runs["drift"], runs[y]))
    x, seconds = (one - one.groupby(runs["level"]).transform("mean") for one in (x, seconds))
    spread = (x**2).sum()
    degrees = len(runs) - runs["level"].nunique() - 1
    if degrees < FEWEST_STEADY or not spread > 0:
        return runs["drift"]
    slope = (x * seconds).sum() / spread
    error = np.sqrt(((seconds - slope * x) ** 2).sum() / degrees / spread)
    most = max(slope + special.stdtrit(degrees, 0.975) * error, 0.0)
    return runs["drift"] ** (most if most < FULL_SLOPE else 1.0)


def survives_drift(differences: "pd.Series[float]", biases: "pd.Series[float]") -> bool:
    """Return whether the difference of two sides cannot be an effect of the drift within blocks.

    ``differences`` are those of the two sides' mean log times, one for each block. ``biases`` are
    the differences of their mean log drift covariates: what the drift alone adds to each; empty
    where no reference workload was timed.

    Where the biases are shown to lean to the side of the difference, this must exceed them beyond
    the noise of both. And if a bias reaches 10%, its sign must be the same in all blocks, and
    either it exceeds the bias in every block that drifted by 10% or more in its direction, or most
    blocks, and three at least, did not drift so. A bias against the difference (the faster side met
    the slower machine) cannot explain it.
    """
    sign = np.sign(differences.mean())
    ahead, bias = sign * differences, (sign * biases).reindex(differences.index)
    if _above_zero(bias) and not _above_zero(ahead - bias):
        return False
    limit = np.log(CHANGE_LIMIT)
    if not (bias.abs() >= limit).any():
        return True
    drifted = bias >= limit
    steady = (~drifted).sum() >= max(FEWEST_STEADY, len(drifted) // 2 + 1)
    return bool((ahead > 0).all() and (steady or (ahead > bias)[drifted].all()))


def _above_zero(logs: "pd.Series[float]") -> bool:
    """Return whether the mean over blocks is shown to be above zero (t, 95%)."""
    return bool(logs.mean() > special.stdtrit(logs.count() - 1, 0.975) * logs.sem())


def mean_drift_bias(biases: "pd.Series[float]") -> float:
    """Return the bias that the drift may add to the mean difference of two sides, in log units: the
    mean of the ``biases`` of the blocks (see :func:`survives_drift`).

    It is 0 where none of them reaches 10%, and they are not shown to lean to a side.
    """
    shown = _above_zero(biases) or _above_zero(-biases)
    return float(biases.mean()) if shown or (biases.abs() >= np.log(CHANGE_LIMIT)).any() else 0.0
