"""The parts of a training time: the one estimate that charts, pictures and cards draw from."""

import pandas as pd

from study.analysis.stats.analysis import Group
from study.analysis.stats.usable import counted
from study.artifacts.samples import PHASES

STEPS = [f"{phase}_seconds" for phase in PHASES]
UNKNOWN_BEFORE = {"graph_warm_up_seconds": 0.0}
"""What tables of an earlier version do not have: it is in another part there."""
CONSTRUCTION, OTHER, VALIDATION = "model_seconds", "other_seconds", "valid_seconds"
FIT = [*STEPS, OTHER, VALIDATION]
PARTS_OF = {
    "fit_seconds": FIT,
    "blog_seconds": [CONSTRUCTION, *FIT],
    "train_seconds": [*STEPS, OTHER],
    "epoch_seconds": [*STEPS, OTHER],
}
"""The columns of the table of timings that add up to a time, or whose shares are those of its parts."""


def shares_of(rows: pd.DataFrame, y: str) -> "dict[str, pd.Series[float]]":
    """Return the share of each part in the time ``y`` by level, over the runs that count.

    ``rows`` have a column ``level``. It is empty where ``y`` is no sum of parts.
    """
    parts = PARTS_OF.get(y, [])
    count = counted(rows)
    ok = count[count["outcome"] == "ok"].fillna(UNKNOWN_BEFORE).dropna(subset=parts)
    if VALIDATION not in parts:
        ok = ok.assign(other_seconds=ok["train_seconds"] - ok[STEPS].sum(axis=1))
    sums = {str(level): part[parts].sum() for level, part in ok.groupby("level", sort=False)} if parts else {}
    return {level: sums_of / sums_of.sum() for level, sums_of in sums.items()}


def parts_of(group: Group, rows: pd.DataFrame, y: str) -> dict[str, dict[str, float]]:
    """Return the seconds of each part of each level of a group, by its label: they add up to the level's mean."""
    shares = shares_of(rows, y)
    return {
        level.label: {str(part): share * level.time.value for part, share in shares[level.label].items()}
        for level in group.levels
        if level.time and level.label in shares
    }
