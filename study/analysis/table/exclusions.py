"""The runs that no number has: the reason of each is found once, when the table of timings is
built.

A run is excluded only with a cause that was recorded, or as the only outlier of a setting that has
ten or more: a state that a setting meets in two of five runs shows only once among ten in 5% of
studies. Every other outlier counts, against its own setting alone
(:mod:`study.analysis.stats.noise`). The residuals are those of an iterated median polish (Tukey
1977) of log seconds by level and block, which a slow run cannot bend. A run is an outlier if its
residual is beyond both five robust standard deviations and a factor of 1.33. The rule looks at
nothing else, and is the same for every study.
"""

from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd

from study.analysis.stats.mixed_model import Array, Codes, codes
from study.analysis.stats.usable import succeeded
from study.artifacts.record import Aside
from study.config.study import Study

FIRST, OUTLIER = "first of its start", "outlier"
COLD_DEVIATIONS, COLD_FACTOR = 3.0, 1.15
"""By how much a first run without a warm-up must be slower to be excluded: its cause is known,
unlike an outlier's."""
MANY = 10
"""Runs of a setting of which the only outlier is excluded."""
BY_RULE = FIRST, OUTLIER
"""The reasons that need the whole table."""
ASIDE: dict[Aside, str] = {"disturbed": "disturbed", "broken": "broken block"}
"""The folders of records that were excluded when they were measured, and have rows of their own,
with the reason."""
DEVIATIONS = 5.0
"""Robust standard deviations of the logarithm of the time."""
FACTOR = 1.33
"""What a pause of the machine adds to a run is seldom less, and what noise adds is seldom more."""
TO_DEVIATION = 1.4826
"""Standard deviation over the median absolute deviation of Gaussian noise."""


def place_of_record(run: str, excluded: object) -> str:
    """Return a run's name, after the folder to which its record was moved, if it was:
    ``broken/bs64-r1``."""
    folder = next((folder for folder, reason in ASIDE.items() if reason == excluded), None)
    return f"{folder}/{run}" if folder else run


def with_exclusions(study: Study, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with every reason in its column ``excluded``, which is empty for a run that
    counts.

    To the reasons of single records come two that were declared before any run, within each group
    of settings that differ in the curve's factor alone. Where no warm-up run ran, the first run of
    each start on each device is excluded if it is slower than the others show by three robust
    deviations and 15%, unless no other run of its setting is left; then the only outlier of a
    setting with ten runs or more. The column ``outlier`` has 1 for another slow one, -1 for a fast
    one. In ``session`` a start that had several machines counts as one on each of
    them.
    """
    session, nodes = frame["session"], frame["node"].fillna("")
    if (nodes.groupby(session).nunique() > 1).any():
        # Two machines share no state: a difference between them must not count as one between
        # settings.
        session = frame.groupby([session, nodes]).ngroup() + 1.0
    frame = frame.assign(session=session, excluded=frame["excluded"].astype(object), outlier=0.0)
    begun = frame[frame["started"].notna()].sort_values("started", kind="stable")
    firsts = begun.groupby(["session", "device"], sort=False).head(1)
    cold = firsts.index[firsts["excluded"].isna() & (firsts["warmed_up"].astype(str) != "True")]
    usable = succeeded(frame, study.total)
    usable = usable.assign(met=usable.groupby(["session", "block"]).ngroup())
    columns = [study.total, "level", "met"]
    for _, rows in usable.groupby("group", sort=False):
        left, deviation = polished(*(rows[name].tolist() for name in columns))
        most = max(COLD_DEVIATIONS * deviation, np.log(COLD_FACTOR))
        others = rows.groupby("level")["met"].transform("size") > 1
        slow = others & rows.index.isin(cold) & (left > most)
        frame.loc[rows[slow].index, "excluded"] = FIRST
        kept = rows[~slow]
        signs = outliers(*(kept[name].tolist() for name in columns))
        frame.loc[kept.index, "outlier"] = signs
        by_level = kept.assign(found=abs(signs)).groupby("level")["found"]
        lone = (by_level.transform("sum") == 1) & (by_level.transform("size") >= MANY)
        frame.loc[kept[lone & (signs != 0)].index, "excluded"] = OUTLIER
    return frame


def keys_of(study: Study) -> tuple[list[str], list[str]]:
    """Return the factors that tell the levels of a group apart, and those that tell the groups
    apart: the device where there are no others."""
    own = [key for key in study.compared if key != "device"]
    if study.curve:
        own = [study.curve.x]
    return own, [key for key in study.compared if key not in own] or ["device"]


MOST_PASSES = 50


def outliers(
    seconds: Sequence[float], levels: Sequence[Hashable], blocks: Sequence[Hashable]
) -> Codes:
    """Return 1 for each slow outlier, -1 for each fast one, and 0 for the other runs; all have one
    entry a run.

    A level with fewer than three runs has no outlier, nor has one of which more than half would be
    outliers.
    """
    left, deviation = polished(seconds, levels, blocks)
    outlying = np.abs(left) > max(DEVIATIONS * deviation, np.log(FACTOR))
    level = codes(levels)
    counts = np.bincount(level)
    may = (counts >= 3) & (np.bincount(level, outlying) <= counts / 2)
    return np.where(outlying & may[level], np.sign(left), 0).astype(np.int64)


def polished(
    seconds: Sequence[float], levels: Sequence[Hashable], blocks: Sequence[Hashable]
) -> tuple[Array, float]:
    """Return the residual log seconds (n,) of a median polish, and their robust standard deviation.

    A block with fewer than half of the levels, or fewer than three runs, has no effect of its own:
    its runs would explain each other away.
    """
    if not len(seconds):
        return np.zeros(0), 0.0
    logs = np.log(np.asarray(seconds, float))
    by_level, by_block = _groups(levels), _groups(blocks)
    whole = [rows for rows in by_block if len(rows) >= max(3, len(by_level) / 2)]
    left = logs.copy()
    for _ in range(MOST_PASSES):
        before = left.copy()
        for rows in [*by_level, *whole]:
            left[rows] -= np.median(left[rows])
        if np.allclose(left, before, rtol=0, atol=1e-9):
            break
    lost = len(by_level) + max(len(whole) - 1, 0)
    # As many residuals are zero as medians were taken: they tell nothing of the noise.
    told = np.sort(np.abs(left))[min(lost, len(left) - 1) :]
    return left, TO_DEVIATION * float(np.median(told))


def _groups(values: Sequence[Hashable]) -> list[Codes]:
    at = pd.Series(codes(values))
    return [np.asarray(rows, np.int64) for rows in at.groupby(at).indices.values()]
