"""Results of two places or two times side by side: the ratio of their times, with what a second start would change.

What moves all runs of a start by one factor (a boot, a clock, a neighbour) is in every difference between two results.
The unit is therefore the start, and not the run: each start gives one mean of log seconds, and two results are compared
by the t test of these means. Where a result has one start alone, the spread between starts is not known; it is then
assumed to be :data:`ASSUMED_SPREAD`, and the verdict says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field
from scipy import special

from study.analysis.stats.equivalence import POWER
from study.analysis.stats.log_model import CONFIDENCE, SIGNIFICANCE
from study.analysis.stats.mixed_model import Array
from study.analysis.stats.usable import Estimate
from study.base.strict import Strict
from study_extras.compare.more_starts import More, more_starts

ASSUMED_SPREAD = 0.05
"""Standard deviation of log seconds between starts, where a result has one start alone. A quiet machine is better; two
shared ones were seen to be far worse."""
ROUNDS = 200
"""Rounds in which what a start lacks is filled: each takes most of what is left of the error."""
PHASES = {
    "data_wait_seconds": "waiting for data",
    "transfer_seconds": "copies to the device",
    "graph_warm_up_seconds": "warm-up before graphs are captured",
    "device_transform_seconds": "transforms on the device",
    "forward_seconds": "forward",
    "backward_seconds": "backward",
    "optimizer_seconds": "optimizer",
    "valid_seconds": "validation",
    "other_seconds": "other",
}
"""Columns of the table of timings that add up to ``fit_seconds``, with their names."""
STATES = {
    "reference_seconds": "reference workload of the device",
    "host_reference_seconds": "reference workload of the host",
    "sm_clock_mhz": "clock of the GPU",
}
"""Columns that tell of the machine itself."""

Verdict = Literal["faster", "slower", "equivalent", "not_enough_starts"]


@dataclass(frozen=True)
class Side:
    """The runs of one result that count, in settings that every result has."""

    name: str
    runs: pd.DataFrame
    """Columns ``setting``, ``seconds``, ``start``, ``accuracy``, and those of PHASES and STATES."""


class Compared(Strict):
    """One setting of two results, or all settings together."""

    setting: str | None = Field(description="Null for the mean over all settings.")
    ratio: Estimate = Field(
        description="Time of the second result over that of the first. The bounds of the settings hold for all of them "
        "at once."
    )
    runs: tuple[int, int] = Field(description="Runs of the first and of the second result.")
    accuracies: tuple[float | None, float | None]
    verdict: Verdict
    more: More | None = Field(description="What is needed for a verdict; null where there is one.")
    phases: dict[str, float] = Field(
        description="Seconds that each phase takes more in the second result, mean over the settings."
    )
    states: dict[str, float] = Field(
        description="What the machine tells of itself: the second result's over the first's."
    )


class Pair(Strict):
    """The second of two results against the first."""

    first: str
    second: str
    margin: float = Field(description="Ratios from 1 / (1 + margin) to 1 + margin count as equivalent.")
    starts: tuple[int, int]
    assumed: bool = Field(description="Whether the spread between starts is assumed: a result has one start alone.")
    spread: float = Field(description="Standard deviation of log seconds between starts.")
    overall: Compared
    settings: list[Compared]


class Margin(Strict):
    """The margin of equivalence, and whether it was stated before the data were there."""

    value: float
    source: Literal["plan", "command_line"] = Field(
        description="plan: the study's file, by the plan of the first result, which a start writes before its runs. "
        "command_line: `--margin`, after the data."
    )
    planned: dict[str, float] = Field(description="The margin in the plan of each result.")


class Ranking(Strict):
    """Three or more results, the fastest first."""

    order: list[str]
    times: dict[str, float] = Field(description="Time of each result over that of the fastest, mean over the settings.")
    may_be_fastest: list[str] = Field(description="Results that hold the truly fastest one with 95% probability.")


def compare(first: Side, second: Side, settings: Sequence[str], margin: float) -> Pair:
    """Return how the second of two results compares with the first; both have runs of all ``settings``."""
    a, b = start_means(first), start_means(second)
    assumed = min(len(a), len(b)) < 2
    overall = _difference(
        a.mean(axis=1).to_numpy(), b.mean(axis=1).to_numpy(), _scatter([a.mean(axis=1)], [b.mean(axis=1)])
    )
    scatter = _scatter([a[one] for one in settings], [b[one] for one in settings])
    each = [_difference(a[one].to_numpy(), b[one].to_numpy(), scatter) for one in settings]
    return Pair(
        first=first.name,
        second=second.name,
        margin=margin,
        starts=(len(a), len(b)),
        assumed=assumed,
        spread=overall.spread,
        overall=_compared(None, overall, 1, margin, first.runs, second.runs),
        settings=[
            _compared(one, difference, len(settings), margin, *(_at(side, one) for side in (first, second)))
            for one, difference in zip(settings, each, strict=True)
        ],
    )


def rank(sides: Sequence[Side]) -> Ranking:
    """Return the order of results by their mean over the settings, and those that may be the fastest.

    A result is ruled out where the one-sided t test against the fastest finds it slower, with Bonferroni's correction
    for the other results.
    """
    means = {side.name: start_means(side).mean(axis=1).to_numpy() for side in sides}
    order = sorted(means, key=lambda name: float(means[name].mean()))
    variance, degrees = _pooled(list(means.values()))
    level = 1 - SIGNIFICANCE / max(len(order) - 1, 1)
    quantile = float(special.stdtrit(degrees, level) if degrees else special.ndtri(level))
    best = means[order[0]]

    def reach(name: str) -> float:
        return quantile * math.sqrt(variance * (1 / len(best) + 1 / len(means[name])))

    return Ranking(
        order=order,
        times={name: math.exp(float(means[name].mean() - best.mean())) for name in order},
        may_be_fastest=[name for name in order if float(means[name].mean() - best.mean()) <= reach(name)],
    )


class Gate(Strict):
    """A new result against a baseline of several starts, whose spread gives the limit."""

    ratio: float = Field(description="Time of the new result over that of the baseline, mean over the settings.")
    limit: float = Field(description="Ratio from which a new result counts as slower: by chance 1 in 40 exceeds it.")
    found: float = Field(description="Ratio of the smallest slowdown that is found four times in five.")
    starts: tuple[int, int] = Field(description="Starts of the baseline and of the new result.")

    @property
    def slower(self) -> bool:
        """Whether the new result is slower than chance explains."""
        return self.ratio > self.limit


LEAST_STARTS = 3
"""Starts of a baseline that tell how far starts differ."""


def gate(baseline: Side, new: Side) -> Gate | None:
    """Return whether a new result is slower than a baseline; None if the baseline has fewer than three starts.

    The baseline's starts are the null control: nothing changed between them. The limit is the one-sided bound for the
    mean of the new starts, by the t distribution of the baseline's own (a prediction interval).
    """
    before, after = (start_means(side).mean(axis=1).to_numpy(float) for side in (baseline, new))
    if len(before) < LEAST_STARTS:
        return None
    degrees = len(before) - 1
    error = float(before.std(ddof=1)) * math.sqrt(1 / len(before) + 1 / len(after))
    quantile = float(special.stdtrit(degrees, (1 + CONFIDENCE) / 2))
    return Gate(
        ratio=math.exp(float(after.mean() - before.mean())),
        limit=math.exp(quantile * error),
        found=math.exp((quantile + float(special.stdtrit(degrees, POWER))) * error),
        starts=(len(before), len(after)),
    )


def start_means(side: Side) -> pd.DataFrame:
    """Return the mean log seconds of each setting (columns) in each start (rows).

    What a start lacks is filled with the sum of the effects of its setting and of the start, found by least squares.
    """
    logs = side.runs.assign(log=np.log(side.runs["seconds"]))
    table = logs.groupby(["start", "setting"], sort=False)["log"].mean().unstack()
    filled = table.fillna(table.mean())
    for _ in range(ROUNDS if table.isna().any(axis=None) else 0):
        states = filled.mean(axis=1) - filled.to_numpy().mean()
        filled = table.where(table.notna(), pd.DataFrame({name: filled[name].mean() + states for name in filled}))
    return filled


@dataclass(frozen=True)
class _Difference:
    """A difference of mean log seconds, with the starts of each result and the spread between them.

    The degrees of freedom are those of the spread; None: it is assumed.
    """

    value: float
    starts: tuple[int, int]
    degrees: int | None
    spread: float

    @property
    def error(self) -> float:
        """Its standard error."""
        return self.spread * math.sqrt(1 / self.starts[0] + 1 / self.starts[1])

    def reach(self, level: float) -> float:
        """Return the one-sided bound's distance at this confidence."""
        quantile = special.ndtri(level) if self.degrees is None else special.stdtrit(self.degrees, level)
        return float(quantile) * self.error


def _pooled(samples: "Sequence[NDArray[np.floating[Any]]]") -> tuple[float, int]:
    """Return the variance within samples, and its degrees of freedom; the assumed one and 0, if one has one value."""
    if min(map(len, samples)) < 2:
        return ASSUMED_SPREAD**2, 0
    degrees = sum(len(sample) - 1 for sample in samples)
    squares = sum(float(((sample - sample.mean()) ** 2).sum()) for sample in samples)
    return squares / degrees, degrees


def _scatter(first: "Sequence[pd.Series[float]]", second: "Sequence[pd.Series[float]]") -> tuple[float, int]:
    """Return the variance between starts, mean over pairs of samples, and the degrees of freedom of one pair.

    The settings of a start share its state: more settings give no more degrees of freedom.
    """
    found = [_pooled([a.to_numpy(float), b.to_numpy(float)]) for a, b in zip(first, second, strict=True)]
    return float(np.mean([variance for variance, _ in found])), min(degrees for _, degrees in found)


def _difference(first: Array, second: Array, scatter: tuple[float, int]) -> _Difference:
    variance, degrees = scatter
    starts = len(first), len(second)
    return _Difference(float(second.mean() - first.mean()), starts, degrees or None, math.sqrt(variance))


def _compared(
    setting: str | None, found: _Difference, tests: int, margin: float, first: pd.DataFrame, second: pd.DataFrame
) -> Compared:
    reach = found.reach(1 - (1 - CONFIDENCE) / 2 / tests)
    within = found.reach(1 - SIGNIFICANCE)  # two one-sided t tests (Schuirmann 1987)
    verdict: Verdict = "not_enough_starts"
    if abs(found.value) + within <= math.log1p(margin) and found.error > 0:
        verdict = "equivalent"
    elif abs(found.value) > reach > 0:
        verdict = "slower" if found.value > 0 else "faster"
    return Compared(
        setting=setting,
        ratio=Estimate(
            value=math.exp(found.value), low=math.exp(found.value - reach), high=math.exp(found.value + reach)
        ),
        runs=(len(first), len(second)),
        accuracies=(_mean(first["accuracy"]), _mean(second["accuracy"])),
        verdict=verdict,
        more=more_starts(found.value, found.spread, found.starts, margin, tests)
        if verdict == "not_enough_starts"
        else None,
        phases=_phases(first, second),
        states=_states(first, second),
    )


def _mean(values: "pd.Series[float]") -> float | None:
    return float(values.mean()) if values.notna().any() else None


def _at(side: Side, setting: str) -> pd.DataFrame:
    return side.runs[side.runs["setting"] == setting]


def _phases(first: pd.DataFrame, second: pd.DataFrame) -> dict[str, float]:
    """Return how much longer each phase takes in the second result, where both know all phases."""
    known = first[list(PHASES)].notna().all() & second[list(PHASES)].notna().all()
    columns = [name for name in PHASES if known[name]]
    if not columns:
        return {}
    a, b = (runs.groupby("setting")[columns].mean().mean() for runs in (first, second))
    return {name: float(b[name] - a[name]) for name in columns}


def _states(first: pd.DataFrame, second: pd.DataFrame) -> dict[str, float]:
    found = {}
    for name in STATES:
        a, b = first[name].dropna(), second[name].dropna()
        if len(a) and len(b):
            found[name] = float(np.exp(np.log(b).mean() - np.log(a).mean()))
    return found
