"""From how many epochs on compiling pays: the seconds that it takes once over those that it saves in each epoch."""

import math
from collections.abc import Iterator
from typing import Literal, Self

import numpy as np
import pandas as pd
from pydantic import Field

from study.analysis.answers.context import bounds, scope_of
from study.analysis.caveats.base import MORE, OneCaveat, Seen
from study.analysis.stats.estimate import Estimate
from study.analysis.stats.log_model import together
from study.analysis.stats.mixed_model import Array
from study.analysis.words import short
from study.artifacts.setting import Setting


class Payback(OneCaveat):
    """The fastest setting whose model is compiled, beside the one that is most like it and is not: steady epochs."""

    kind: Literal["payback"] = "payback"
    compiled: Setting
    other: Setting
    extra_seconds: float = Field(description="Seconds that compiling takes in a run, validation included.")
    saved_seconds: float = Field(description="Seconds by which a steady epoch is shorter; below 0 where it is longer.")
    epochs: Estimate | None
    """Epochs from which on it pays; without bounds where epochs are not shown to be shorter; null where they are
    not."""
    never: bool = Field(description="Whether epochs are shown to be longer.")
    starts: int

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        parts = []
        for group in seen.fitted:
            for level, rows in group.clean.groupby("level", sort=False):
                parts.append((seen.setting(group, group.levels[str(level)]), _epochs(rows)))
        parts = [(setting, rows) for setting, rows in parts if len(rows)]
        compiled = [one for one in parts if (one[1]["extra"] > 0).all()]
        others = [one for one in parts if (one[1]["extra"] == 0).all()]
        if not compiled or not others:
            return
        best = min(compiled, key=lambda one: float(one[1]["epoch"].mean()))
        # All else equal, if such a setting was run.
        other = min(others, key=lambda one: (_unlike(one[0], best[0]), float(one[1]["epoch"].mean())))
        more = (best[1] - other[1]).dropna()  # in the blocks that have both
        if len(more):
            extra, saved = more["extra"].to_numpy(float), -more["epoch"].to_numpy(float)
            epochs, never = quotient_of_means(extra, saved)
            yield cls(
                compiled=best[0],
                other=other[0],
                extra_seconds=float(extra.mean()),
                saved_seconds=float(saved.mean()),
                epochs=epochs,
                never=never,
                starts=int(seen.usable["session"].nunique()),
            )

    def text(self) -> str:
        """Return from how many epochs on it pays, or that it is not shown to, and why."""
        lead, takes = f"Compiling ({self.compiled.label})", f"it takes {short(self.extra_seconds)} s once"
        if self.epochs and self.epochs.bounds:
            told = f"from {math.ceil(self.epochs.value)} epochs on{bounds(self.epochs, scope_of(self.starts), ())}"
            return f"{lead} pays {told}: {takes} and saves {short(self.saved_seconds)} s an epoch"
        if self.never:
            return f"{lead} never pays here: {takes}, and an epoch is then longer"
        return f"{lead} is not shown to pay: {takes}, and an epoch is not shown to be shorter"

    def effect(self) -> str:
        """Return what it means for a training of another length, where it pays."""
        return "A shorter training takes longer with it." if self._pays else ""

    def advice(self) -> str:
        """Return what to do where it does not pay."""
        return "" if self._pays else "Leave `training.compile` off." if self.never else MORE

    @property
    def _pays(self) -> bool:
        return self.epochs is not None and self.epochs.bounds is not None


def _epochs(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the seconds of a steady epoch and those of compiling (columns), means by block of a start (rows)."""
    epoch = rows["images_per_epoch"] / rows["steady_images_per_second"]
    known = rows.assign(epoch=epoch, extra=rows["compile_seconds"].fillna(0.0))[epoch.notna()]
    return known.groupby("session_block")[["epoch", "extra"]].mean()


def _unlike(one: Setting, other: Setting) -> int:
    return sum(one.levels.get(key) != level for key, level in other.levels.items())


def quotient_of_means(tops: Array, bottoms: Array) -> tuple[Estimate | None, bool]:
    """Return the quotient of the means of pairs (n,) with its 95% interval (Fieller 1954), and whether there is none.

    There is no quotient where the lower mean is not above 0; that is shown where its interval is below 0. There are no
    bounds where its interval holds 0.
    """
    top, bottom, count = float(tops.mean()), float(bottoms.mean()), len(tops)
    found = Estimate(value=top / bottom) if bottom > 0 else None
    if count < 2:
        return found, False
    spread = np.cov(tops, bottoms) / count * together(1)(count - 1) ** 2
    leading = bottom**2 - float(spread[1, 1])
    if leading <= 0 or found is None:
        return found, leading > 0
    middle = top * bottom - float(spread[0, 1])
    apart = math.sqrt(max(0.0, middle**2 - leading * (top**2 - float(spread[0, 0]))))
    return Estimate(value=found.value, low=(middle - apart) / leading, high=(middle + apart) / leading), False
