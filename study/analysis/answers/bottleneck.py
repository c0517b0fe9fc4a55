"""The limit of a run, loader or training: the same configuration with either alone, and with both."""

import pandas as pd

from study.analysis.stats.findings import Bottleneck
from study.analysis.stats.log_model import LogModel
from study.analysis.stats.usable import model_of, row_settings
from study.artifacts.setting import Setting
from study.config.study import Study

COMPETING = 0.5
"""Share of the smaller time by which both together exceed the larger one, from which neither hides the other."""
ALONE, TRAINING, BOTH = "alone", "device", "workers"


def bottlenecks_of(study: Study, usable: pd.DataFrame) -> list[Bottleneck]:
    """Return the bottleneck of each configuration that was run in all three ways, from the usable runs."""
    if "loader.kind" not in study.factors or usable.empty:
        return []
    others = [key for key in study.compared if key != "loader.kind"]
    found = []
    for _, rows in usable.groupby(others, sort=False) if others else [((), usable)]:
        kinds = rows["loader.kind"].tolist()
        if {ALONE, TRAINING, BOTH} <= set(kinds):
            (at,) = row_settings(study, rows.head(1), others)
            found.append(_bottleneck(at, model_of(rows, "train_seconds", kinds)))
    return found


def _bottleneck(at: Setting, model: LogModel) -> Bottleneck:
    loader, training, both = (model.mean(kind).value for kind in (ALONE, TRAINING, BOTH))
    found = Bottleneck(at=at, loader_seconds=loader, training_seconds=training, both_seconds=both, limit=None)
    added = model.ratio(BOTH, ALONE if loader >= training else TRAINING)
    if added.low is not None and added.low > 1 + COMPETING * min(loader, training) / max(loader, training):
        return found.model_copy(update={"limit": "both"})
    ratio = model.ratio(ALONE, TRAINING)
    if ratio.low is None or ratio.high is None or ratio.low <= 1 <= ratio.high:
        return found
    return found.model_copy(update={"limit": "loader" if ratio.value > 1 else "training"})
