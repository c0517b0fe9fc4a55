"""Runs and steps that are too few, or too far from the others."""

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field

from study.analysis.caveats.base import MORE, OfSetting, OneCaveat, Seen, few, spans
from study.analysis.stats.usable import row_settings

SPREAD_LIMIT = 0.10
"""pyperf flags a standard deviation of 10% of the mean."""
BATCH = "training.batch_size"


class WideSpread(OneCaveat):
    """Settings whose runs differ by a large standard deviation."""

    kind: Literal["wide_spread"] = "wide_spread"
    limit: float = Field(description="Standard deviation over the mean, from which a setting is listed.")
    spreads: list[OfSetting] = Field(description="Standard deviation over the mean of each.")
    EFFECT = "Their means are known less well."
    ADVICE = MORE

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        spreads, keys = [], seen.study.compared or ["device"]
        for _, rows in seen.usable.groupby(keys, sort=False):
            times = rows[seen.study.total]
            if len(times) >= 2 and times.std() >= SPREAD_LIMIT * times.mean():
                (setting,) = row_settings(seen.study, rows.head(1), keys)
                spreads.append(OfSetting(setting=setting, value=float(times.std() / times.mean())))
        if spreads:
            yield cls(limit=SPREAD_LIMIT, spreads=spreads)

    def text(self) -> str:
        """Return the settings and their spreads."""
        who = few([one.setting.label for one in self.spreads], "setting")
        return f"The runs of {who} spread by {spans([one.value for one in self.spreads])}"


class FewSteps(OneCaveat):
    """Batch sizes with one step in an epoch, or without a step after the warm-up."""

    kind: Literal["few_steps"] = "few_steps"
    batch_sizes: list[int]
    TEXT = "Too few steps to become steady at batch size {batch_sizes}"
    EFFECT = "There is no steady step time, and the time is mostly that of starting."
    ADVICE = "Train longer, on more images or with smaller batches."

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        rows = seen.usable  # inference takes no training steps
        bare = (rows[BATCH] >= rows["train_images"]) | (rows["step_seconds"].isna() & rows["steps"].notna())
        if bare.any():
            yield cls(batch_sizes=[int(size) for size in sorted(set(rows.loc[bare, BATCH]))])


Steps = WideSpread | FewSteps
