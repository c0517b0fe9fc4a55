"""The rows of the table of timings that belong to each group of an analysis, and the parts of their
times.

It is the one estimate of the parts, from which charts, pictures and cards draw.
"""

from collections.abc import Sequence

import pandas as pd

from study.analysis.answers.group import Group
from study.analysis.stats.usable import counted, row_settings
from study.analysis.table.exclusions import keys_of
from study.artifacts.samples import PHASES
from study.config.study import Study

Levelled = Sequence[tuple[Group, pd.DataFrame]]
"""Each group with its rows, whose column ``level`` is the label of their level."""


def group_rows(
    study: Study, frame: pd.DataFrame, groups: Sequence[Group]
) -> list[tuple[Group, pd.DataFrame]]:
    """Return each group of the analysis with its rows of the table of timings."""
    settings = row_settings(study, frame, keys_of(study)[1] or ["device"])
    parts = [(group, frame[[one == group.setting for one in settings]]) for group in groups]
    return [(group, rows) for group, rows in parts if len(rows)]


def level_rows(study: Study, frame: pd.DataFrame, groups: Sequence[Group]) -> Levelled:
    """Return each group with its rows, told apart by level."""
    keys = keys_of(study)[0]
    return [
        (group, rows.assign(level=[one.label for one in row_settings(study, rows, keys)]))
        for group, rows in group_rows(study, frame, groups)
    ]


STEPS = [f"{phase}_seconds" for phase in PHASES]
CONSTRUCTION, OTHER, VALIDATION = "model_seconds", "other_seconds", "valid_seconds"
FIT = [*STEPS, OTHER, VALIDATION]
PARTS_OF = {
    "fit_seconds": FIT,
    "blog_seconds": [CONSTRUCTION, *FIT],
    "train_seconds": [*STEPS, OTHER],
    "epoch_seconds": [*STEPS, OTHER],
}
"""The columns of the table of timings that add up to a time, or whose shares are those of its
parts."""


PARTS = {
    CONSTRUCTION: "building the model",
    "graph_warm_up_seconds": "warm-up before capture",
    "data_wait_seconds": "waiting for data",
    "transfer_seconds": "host to device",
    "device_transform_seconds": "transforms on the device",
    "forward_seconds": "forward",
    "backward_seconds": "backward",
    "optimizer_seconds": "optimizer",
    VALIDATION: "validation",
    OTHER: "rest",
}
"""The words of each part of a time, in the order of a job, by its column of the timings."""


def shares_of(rows: pd.DataFrame, y: str) -> "dict[str, pd.Series[float]]":
    """Return the share of each part in the time ``y`` by level, over the runs that count.

    ``rows`` have a column ``level``. It is empty where ``y`` is no sum of parts.
    """
    parts = PARTS_OF.get(y, [])
    count = counted(rows)
    ok = count[count["outcome"] == "ok"].dropna(subset=parts)
    if VALIDATION not in parts:
        ok = ok.assign(other_seconds=ok["train_seconds"] - ok[STEPS].sum(axis=1))
    sums = (
        {str(level): part[parts].sum() for level, part in ok.groupby("level", sort=False)}
        if parts
        else {}
    )
    return {level: sums_of / sums_of.sum() for level, sums_of in sums.items()}


def parts_of(group: Group, rows: pd.DataFrame, y: str) -> dict[str, dict[str, float]]:
    """Return the seconds of each part of each level of a group, by its label: they add up to the
    level's mean."""
    shares = shares_of(rows, y)
    return {
        level.label: {
            str(part): share * level.time.value for part, share in shares[level.label].items()
        }
        for level in group.levels
        if level.time and level.label in shares
    }
