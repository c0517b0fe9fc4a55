"""Steps that are too few to tell a steady time."""

from collections.abc import Iterator
from typing import Literal, Self

from study.analysis.caveats.base import OneCaveat, Seen

BATCH = "training.batch_size"


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
