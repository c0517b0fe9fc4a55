"""The limit of a run, loader or training: the same configuration with either alone, and with
both."""

from typing import Literal

import pandas as pd
from pydantic import Field

from study.analysis.answers.context import Context, place
from study.analysis.stats.log_model import LogModel
from study.analysis.stats.usable import model_of, row_settings
from study.analysis.words import short
from study.artifacts.setting import Setting
from study.base.strict import Strict
from study.config.study import Study

COMPETING = 0.5
"""Share of the smaller time by which both together exceed the larger one, from which neither hides
the other."""
Limit = Literal["loader", "training", "both"]
ALONE, TRAINING, BOTH = "alone", "device", "workers"


class Bottleneck(Strict):
    """Times of one configuration with the loader alone, with the training alone, and with both."""

    kind: Literal["bottleneck"] = "bottleneck"
    at: Setting
    loader_seconds: float
    training_seconds: float
    both_seconds: float
    limit: Limit | None = Field(description="Null where it cannot be told.")

    @property
    def decided(self) -> bool:
        """Whether it can be told what limits the run."""
        return self.limit is not None

    def text(self, context: Context) -> str:
        """Return the answer in words."""
        at = place(self.at) if self.at.levels else ""
        lead = {
            "loader": "**The loader** limits the run",
            "training": "**The training** limits the run",
            "both": "**Loader and training** hold each other up",
            None: "**Not decided** whether loader or training limits the run",
        }[self.limit]
        loader, training, both = map(
            short, (self.loader_seconds, self.training_seconds, self.both_seconds)
        )
        return (
            f"{lead}{f' {at}' if at else ''}: alone they take {loader} and {training} s, "
            f"together {both} s."
        )


def bottlenecks_of(study: Study, usable: pd.DataFrame) -> list[Bottleneck]:
    """Return the bottleneck of each configuration that was run in all three ways, from the usable
    runs."""
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
    added = model.ratio(BOTH, ALONE if loader >= training else TRAINING)
    ratio = model.ratio(ALONE, TRAINING)
    limit: Limit | None = None
    if added.low is not None and added.low > 1 + COMPETING * min(loader, training) / max(
        loader, training
    ):
        limit = "both"
    elif ratio.excludes_one:
        limit = "loader" if ratio.value > 1 else "training"
    return Bottleneck(
        at=at, loader_seconds=loader, training_seconds=training, both_seconds=both, limit=limit
    )
