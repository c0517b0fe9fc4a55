"""Results of two places or two times side by side: the ratio of their times, with what a second
start would change.

Each start gives one mean of log seconds, and the differences of results are those of these means.
The mean over all settings has a verdict of its own, and the settings have Bonferroni's correction.
Less learning is told beside it.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from study.analysis.stats.estimate import Estimate
from study.analysis.stats.log_model import CONFIDENCE, SIGNIFICANCE
from study.analysis.stats.mixed_model import Array
from study.base.strict import Strict
from study_compare.difference import Difference, difference_of
from study_compare.side import PHASES, STATES, Side, Stand, learning, noise_within, start_means

Verdict = Literal["faster", "slower", "equivalent", "mixed", "not_enough_starts"]
"""`mixed`: the mean over all settings does not tell, for some settings differ."""
SAYS_NOTHING = 10
"""An interval that reaches so many times above and below its ratio is left out: two starts give
such ones."""


class Compared(Strict):
    """One setting of two results, or all settings together."""

    setting: str | None = Field(description="Null for the mean over all settings.")
    ratio: Estimate = Field(
        description="Time of the second result over that of the first. The bounds of the "
        "settings hold for all of them "
        "at once. Null where they lie over ten times above and below it."
    )
    runs: tuple[int, int] = Field(description="Runs of the first and of the second result.")
    accuracies: tuple[float | None, float | None]
    learning: tuple[Stand, Stand] = Field(
        description="How each result has learned beside the other; over all settings the "
        "worst that one of them shows."
    )
    verdict: Verdict
    phases: dict[str, float] = Field(
        description="Seconds that each phase takes more in the second result, mean over the "
        "settings."
    )
    states: dict[str, float] = Field(
        description="What the machine tells of itself: the second result's over the first's."
    )


class Pair(Strict):
    """The second of two results against the first."""

    first: str
    second: str
    margin: float = Field(
        description="Ratios from 1 / (1 + margin) to 1 + margin count as equivalent."
    )
    starts: tuple[int, int]
    assumed: tuple[bool, bool] = Field(
        description="Of which result the spread between starts is assumed: fewer than three "
        "hardly tell it."
    )
    spreads: tuple[float, float] = Field(
        description="Standard deviation of log seconds between starts of each result."
    )
    overall: Compared
    settings: list[Compared]


class Margin(Strict):
    """The margin of equivalence, and whether it was stated before the data were there."""

    value: float
    source: Literal["plan", "command_line"] = Field(
        description="plan: the study's file, by the plan of the first result, which a start "
        "writes before its runs. "
        "command_line: `--margin`, after the data."
    )
    planned: dict[str, float] = Field(description="The margin in the plan of each result.")


class Ranking(Strict):
    """Three or more results, the fastest first."""

    order: list[str]
    times: dict[str, float] = Field(
        description="Time of each result over that of the fastest, mean over the settings."
    )
    may_be_fastest: list[str] = Field(
        description="Results that hold the truly fastest one with 95% probability, of those "
        "that learn as well."
    )
    learn_less: list[str] = Field(description="Results that are shown to learn less than another.")


def compare(first: Side, second: Side, settings: Sequence[str], margin: float) -> Pair:
    """Return how the second of two results compares with the first; both have runs of all
    ``settings``."""
    a, b = start_means(first), start_means(second)
    noises = {one: noise_within([first, second], one) for one in settings}
    stands = learning([first, second], settings)
    each = [
        _setting(
            one,
            difference_of(a[one].to_numpy(), b[one].to_numpy(), noises[one]),
            len(settings),
            margin,
        )
        for one in settings
    ]
    ours, theirs = _means([a, b], settings)
    whole = difference_of(ours, theirs, np.mean(list(noises.values()), axis=0).tolist())
    verdict, runs = _overall(whole, each, margin), (first.runs, second.runs)
    return Pair(
        first=first.name,
        second=second.name,
        margin=margin,
        starts=whole.starts,
        assumed=whole.assumed,
        spreads=whole.spreads,
        overall=_compared(None, whole, verdict, 1, runs, _worst(stands)),
        settings=[
            _compared(one, found, told, len(settings), (first.at(one), second.at(one)), stands[one])
            for one, (found, told) in zip(settings, each, strict=True)
        ],
    )


def rank(sides: Sequence[Side], settings: Sequence[str]) -> Ranking:
    """Return the order of results by their mean over the settings, and those that may be the
    fastest.

    A result is ruled out where the one-sided test against any other finds it slower, with
    Bonferroni's correction for all pairs, or where it is shown to learn less than another.
    """
    stands = learning(sides, settings)
    less = [
        side.name
        for place, side in enumerate(sides)
        if any(one[place] == "less" for one in stands.values())
    ]
    names = [side.name for side in sides]
    means = dict(zip(names, _means([start_means(side) for side in sides], settings), strict=True))
    noise = dict(
        zip(
            names,
            np.mean([noise_within(sides, one) for one in settings], axis=0).tolist(),
            strict=True,
        )
    )
    order = sorted(means, key=lambda name: float(means[name].mean()))
    eligible = [name for name in order if name not in less] or order
    pairs = list(combinations(eligible, 2))
    level = 1 - (1 - CONFIDENCE) / 2 / max(len(pairs), 1)
    slower = set()
    for one, other in pairs:
        found = difference_of(means[one], means[other], [noise[one], noise[other]])
        if found.value > found.reach(level) > 0:
            slower.add(other)
    return Ranking(
        order=order,
        times={
            name: math.exp(float(means[name].mean() - means[order[0]].mean())) for name in order
        },
        may_be_fastest=[name for name in eligible if name not in slower],
        learn_less=less,
    )


def _means(tables: Sequence[pd.DataFrame], settings: Sequence[str]) -> list[Array]:
    """Return the mean over the settings in each start, by table."""
    return [table[list(settings)].mean(axis=1).to_numpy(float) for table in tables]


def _setting(
    setting: str, found: Difference, tests: int, margin: float
) -> tuple[Difference, Verdict]:
    """Return the difference at one setting, with its verdict."""
    if within(found, margin):
        return found, "equivalent"
    return found, differs(found, tests) or "not_enough_starts"


def _overall(
    found: Difference, settings: Sequence[tuple[Difference, Verdict]], margin: float
) -> Verdict:
    """Return the verdict over all settings: equivalent only where no setting differs."""
    apart = any(verdict in ("faster", "slower") for _, verdict in settings)
    if not apart and within(found, margin):
        return "equivalent"
    return differs(found, 1) or ("mixed" if apart else "not_enough_starts")


def within(found: Difference, margin: float) -> bool:
    """Return whether two one-sided t tests (Schuirmann 1987) place the difference within the
    margin."""
    reach = found.reach(1 - SIGNIFICANCE)
    return not found.unknown and reach > 0 and abs(found.value) + reach <= math.log1p(margin)


def differs(found: Difference, tests: int) -> Literal["faster", "slower"] | None:
    """Return the direction of a difference that is shown, with Bonferroni's correction."""
    if abs(found.value) > _reach(found, tests) > 0:
        return "slower" if found.value > 0 else "faster"
    return None


def _reach(found: Difference, tests: int) -> float:
    return found.reach(1 - (1 - CONFIDENCE) / 2 / tests)


def _worst(stands: dict[str, list[Stand]]) -> list[Stand]:
    """Return the worst stand of each result over all settings."""
    order: list[Stand] = ["less", "unclear", "unknown", "as_well"]
    return [min(each, key=order.index) for each in zip(*stands.values(), strict=True)]


def _compared(
    setting: str | None,
    found: Difference,
    verdict: Verdict,
    tests: int,
    runs: tuple[pd.DataFrame, pd.DataFrame],
    stands: Sequence[Stand],
) -> Compared:
    first, second = runs
    reach, ratio = _reach(found, tests), math.exp(found.value)
    ends = (
        (ratio / math.exp(reach), ratio * math.exp(reach))
        if reach < math.log(SAYS_NOTHING)
        else (None, None)
    )
    return Compared(
        setting=setting,
        ratio=Estimate(value=ratio, low=ends[0], high=ends[1]),
        runs=(len(first), len(second)),
        accuracies=(_mean(first["accuracy"]), _mean(second["accuracy"])),
        learning=(stands[0], stands[1]),
        verdict=verdict,
        phases=_phases(first, second),
        states=_states(first, second),
    )


def _mean(values: "pd.Series[float]") -> float | None:
    return float(values.mean()) if values.notna().any() else None


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
