"""The null control: every configuration run twice, as if it were two, shows what this study finds where nothing is."""

import math
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from study.analysis.answers.context import Context, excludes_one
from study.analysis.stats.ratios import Ratio
from study.analysis.words import short
from study.artifacts.setting import Setting
from study.base.strict import Strict


class NullControl(Strict):
    """Each configuration over itself: the ratio that is furthest from 1, and the intervals that exclude 1."""

    kind: Literal["null_control"] = "null_control"
    at: Setting
    ratio: float
    intervals: int = Field(description="0 without replicates.")
    outside: int = Field(description="Intervals that exclude 1.")

    @property
    def decided(self) -> bool:
        """Whether the control could fail."""
        return self.intervals > 0

    def text(self, context: Context) -> str:
        """Return what the control shows, in words."""
        furthest = f"the furthest ratio is {short(self.ratio, like=1.0)}"
        if not self.intervals:
            return f"Null control, each setting against itself: {furthest}, without an interval."
        return (
            f"Null control, each setting against itself: {self.outside} of {self.intervals} intervals exclude 1, where "
            f"one in twenty is expected; {furthest}."
        )


def control_of(ratios: Sequence[Ratio]) -> NullControl:
    """Return what the null control shows: the differences that this study finds where there is none."""
    furthest = max(ratios, key=lambda ratio: abs(math.log(ratio.ratio.value)))
    return NullControl(
        at=furthest.at,
        ratio=furthest.ratio.value,
        intervals=sum(ratio.ratio.low is not None for ratio in ratios),
        outside=sum(excludes_one(ratio.ratio) for ratio in ratios),
    )
