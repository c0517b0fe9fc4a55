"""A machine that was not the same for all runs, or not theirs alone."""

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field

from study.analysis.caveats.base import AGAIN, OneCaveat, Seen
from study.analysis.stats.log_model import SIGNIFICANCE
from study.analysis.stats.starts import FEWEST, separate_sets
from study.analysis.stats.usable import CHANGE_LIMIT, REFERENCE_COLUMNS
from study.analysis.words import device_words, listed, short_key
from study.artifacts.setting import Setting
from study.base.errors import quantity

BUSY_LIMIT = 25
"""Percent of the whole machine: a quarter of two cores is a process that never rests on half of one."""
GPU_BUSY_LIMIT = 10
"""Percent: an idle GPU shows 0."""


class SeparateStarts(OneCaveat):
    """Levels that share no block with the others, so that the machine's change counts as theirs."""

    kind: Literal["separate_starts"] = "separate_starts"
    factor: str
    sets: list[list[str]]
    EFFECT = "A difference between them may be the machine's."
    ADVICE = "Measure them together: `python -m study retry STUDY --outcome ok`, then start again."

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        if not seen.study.curve or seen.usable.empty:
            return
        x, told = seen.study.curve.x, []
        keys = [key for key in seen.study.compared if key != x]
        for part in [part for _, part in seen.usable.groupby(keys, sort=False)] if keys else [seen.usable]:
            blocks = part["session"].astype(int).astype(str) + "." + part["block"].astype(int).astype(str)
            sets = [[str(level) for level in levels] for levels in separate_sets(part[x].tolist(), blocks.tolist())]
            if len(sets) > 1 and sets not in told:
                told.append(sets)
                yield cls(factor=x, sets=sets)

    def text(self) -> str:
        """Return two of the sets."""
        return f"No block holds {short_key(self.factor)} {' beside '.join(listed(one) for one in self.sets[:2])}"


class MachineChanged(OneCaveat):
    """A device's reference workload changed during the study; that of its CPUs, where it changed more."""

    kind: Literal["machine_changed"] = "machine_changed"
    device: str
    host: bool = Field(description="Whether it is the reference workload of the CPUs beside the device.")
    fastest_seconds: float
    slowest_seconds: float
    EFFECT = "Small differences between settings may be the machine's."
    ADVICE = AGAIN

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        for device, rows in seen.usable.groupby("device", sort=False):
            known = {column: rows[column].dropna() for column in REFERENCE_COLUMNS if rows[column].notna().any()}
            column = max(known, key=lambda one: known[one].max() / known[one].min(), default="")
            if not column or known[column].max() < CHANGE_LIMIT * known[column].min():
                continue
            yield cls(
                device=str(device),
                host=column == "host_reference_seconds",
                fastest_seconds=float(known[column].min()),
                slowest_seconds=float(known[column].max()),
            )

    def text(self) -> str:
        """Return how much the speed changed."""
        whose = f"{'the CPUs beside ' * self.host}{device_words(self.device, article=True)}"
        return f"The speed of {whose} changed {self.slowest_seconds / self.fastest_seconds:.1f}-fold"


class Busy(OneCaveat):
    """Runs that began while others used the GPU or the CPUs."""

    kind: Literal["busy"] = "busy"
    what: Literal["GPU", "CPUs"]
    runs: int
    TEXT = "Others used the {what} when {runs} began"
    EFFECT = "Their times may be too long."
    ADVICE = AGAIN

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        rows = seen.recorded
        shared = (rows["other_device_processes"] > 0) | (rows["device_percent_before"] >= GPU_BUSY_LIMIT)
        if count := int(shared.sum()):
            yield cls(what="GPU", runs=count)
        if count := int((rows["cpu_percent_before"] >= BUSY_LIMIT).sum()):
            yield cls(what="CPUs", runs=count)


class Throttled(OneCaveat):
    """The GPU's clock was held down."""

    kind: Literal["throttled"] = "throttled"
    runs: int
    reasons: list[str]
    TEXT = "The GPU's clock was held down in {runs}: {reasons}"
    EFFECT = "Times hold for this cooling and power limit."
    ADVICE = "Cool the GPU, or say so with the number."

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        if len(held := seen.recorded["throttle_reasons"].dropna()):
            yield cls(runs=len(held), reasons=sorted({reason for text in held for reason in str(text).split("; ")}))


class Starts(OneCaveat):
    """The starts of the pipeline from which the runs come, on one or several machines."""

    kind: Literal["starts"] = "starts"
    starts: int = Field(description="A start that had several machines counts as one on each of them.")
    machines: int
    shifted: list[Setting] = Field(default=[], description="Groups whose levels a start shifts by themselves.")

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        starts = seen.recorded["session"].nunique()
        shifted = [
            seen.names.get(group.setting, group.setting)
            for group in seen.fitted
            if group.model and (one := group.model.starts) and one.p is not None and one.p < SIGNIFICANCE
        ]
        if starts:
            yield cls(starts=starts, machines=max(1, seen.recorded["node"].nunique()), shifted=shifted)

    def text(self) -> str:
        """Return how many starts there are."""
        if self.starts == 1:
            return "All runs are of one start"
        where = f" on {quantity(self.machines, 'machine')}" if self.machines > 1 else ""
        shifted = "; they shift settings by themselves" if self.shifted else ""
        return f"The runs come from {quantity(self.starts, 'start')}{where}{shifted}"

    def effect(self) -> str:
        """Return of what the intervals tell."""
        if self.starts == 1:
            return "Ratios hold in this start; another may shift a setting by itself."
        if self.starts == 2:
            return "Ratios hold in these two starts; a third would tell of others."
        return "Times and ratios hold for a further start, too."

    def advice(self) -> str:
        """Return what to do."""
        return "Raise `replicates`, and start again on another day." if self.starts < FEWEST else ""


OfMachine = SeparateStarts | MachineChanged | Busy | Throttled | Starts
