"""A machine that was not the same for all runs, or not theirs alone."""

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field

from study.analysis.caveats.base import AGAIN, OneCaveat, Seen
from study.analysis.stats.log_model import SIGNIFICANCE
from study.analysis.stats.starts import FEWEST
from study.analysis.stats.usable import CHANGE_LIMIT, REFERENCE_COLUMNS
from study.analysis.words import device_words
from study.artifacts.setting import Setting
from study.base.errors import quantity


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
    def find(cls, seen: Seen) -> Iterator[Self]:
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


class Starts(OneCaveat):
    """The starts of the pipeline from which the runs come, on one or several machines."""

    kind: Literal["starts"] = "starts"
    starts: int = Field(description="A start that had several machines counts as one on each of them.")
    machines: int
    shifted: list[Setting] = Field(default=[], description="Groups whose levels a start shifts by themselves.")

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
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
