"""What the runs had beside their settings, and did not have alike: the machine, the starts, the
weights, and images that were decoded before the clock."""

import re
from collections.abc import Iterator
from typing import Literal, Self

from study.analysis.answers.group import Group
from study.analysis.caveats.base import AGAIN, OfSetting, OneCaveat, Seen, means
from study.analysis.stats.log_model import SIGNIFICANCE
from study.analysis.stats.starts import FEWEST
from study.analysis.stats.usable import CHANGE_LIMIT, REFERENCE_COLUMNS
from study.analysis.words import device_words, short
from study.artifacts.setting import Setting
from study.base.errors import quantity


class MachineChanged(OneCaveat):
    """A device's reference workload changed during the study; that of its CPUs, where it changed
    more."""

    kind: Literal["machine_changed"] = "machine_changed"
    device: str
    host: bool
    """Whether it is the reference workload of the CPUs beside the device."""
    fastest_seconds: float
    slowest_seconds: float
    EFFECT = "Small differences between settings may be the machine's."
    ADVICE = AGAIN

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        for device, rows in seen.usable.groupby("device", sort=False):
            known = {
                column: rows[column].dropna()
                for column in REFERENCE_COLUMNS
                if rows[column].notna().any()
            }
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
        change = self.slowest_seconds / self.fastest_seconds
        return f"The speed of {whose} changed {change:.1f}-fold"


class Starts(OneCaveat):
    """The starts of the pipeline from which the runs come, on one or several machines."""

    kind: Literal["starts"] = "starts"
    starts: int
    """A start that had several machines counts as one on each of them."""
    machines: int
    shifted: list[Setting] = []
    """Groups whose levels a start shifts by themselves."""

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        starts = seen.recorded["session"].nunique()
        shifted = [
            seen.names.get(group.setting, group.setting)
            for group in seen.fitted
            if group.model
            and (one := group.model.starts)
            and one.p is not None
            and one.p < SIGNIFICANCE
        ]
        if starts:
            yield cls(
                starts=starts, machines=max(1, seen.recorded["node"].nunique()), shifted=shifted
            )

    def text(self) -> str:
        """Return how many starts there are."""
        if self.starts == 1:
            return "All runs are of one start"
        where = f" on {quantity(self.machines, 'machine')}" if self.machines > 1 else ""
        shifted = "; they shift settings by themselves" if self.shifted else ""
        return f"The runs come from {quantity(self.starts, 'start')}{where}{shifted}"

    def effect(self) -> str:
        """Return of what the intervals tell."""
        if told := {1: "this start", 2: "these two starts"}.get(self.starts):
            return f"Ratios hold in {told}; another may shift a setting by itself."
        return "Times and ratios hold for a further start, too."

    def advice(self) -> str:
        """Return what to do."""
        return "Raise `replicates`, and start again on another day." if self.starts < FEWEST else ""


LOADER = "loader.kind"


class DecodedBefore(OneCaveat):
    """Some settings have their images on the device before the clock starts; the others decode them
    in every epoch."""

    kind: Literal["decoded_before"] = "decoded_before"
    prepared: list[OfSetting]
    """Median seconds of the preparation before the clock, of each setting whose images are on the
    device: the decoding, and the building of the loader."""
    EFFECT = "Part of the gain is work that their clock does not count."
    ADVICE = (
        "Take it for images that, decoded, fit into the device's memory and are trained "
        "on for many epochs."
    )
    IF = "Counted"

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        kinds = {str(kind) for kind in seen.usable.get(LOADER, [])}
        if LOADER not in seen.study.factors or "device" not in kinds or len(kinds) < 2:
            return
        prepared = []
        for group in seen.fitted:
            mine = group.clean[
                (group.clean[LOADER] == "device") & group.clean["setup_seconds"].notna()
            ]
            prepared += [
                OfSetting(
                    setting=group.levels[str(level)].within(group.setting),
                    value=float(rows.median()),
                )
                for level, rows in mine.groupby("level", sort=False)["setup_seconds"]
            ]
        yield cls(prepared=prepared)

    def text(self) -> str:
        """Return what the clock leaves out, and how long it takes."""
        told = "With images on the device, decoding is off the clock"
        if not self.prepared:
            return told
        return f"{told}: up to {short(max(one.value for one in self.prepared))} s are not counted"

    def applied(self, group: Group) -> dict[str, float] | None:
        """Return the means with the preparation counted."""
        known = {one.setting: one.value for one in self.prepared}
        every = {level.label: level.setting.within(group.setting) for level in group.levels}
        extra = {label: known[setting] for label, setting in every.items() if setting in known}
        if not extra:
            return None
        return {label: time + extra.get(label, 0.0) for label, time in means(group).items()}


class RandomWeights(OneCaveat):
    """Runs that start from random weights, for one reason, because the pretrained ones were not to
    be had."""

    kind: Literal["random_weights"] = "random_weights"
    reason: str
    EFFECT = "Times are valid; accuracies are not those of transfer learning."
    ADVICE = "`python -m study retry STUDY --weights`"

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        weights = [record.weights for record in seen.records.included.values()]
        for reason in sorted({one.reason for one in weights if one and one.fell_back}):
            yield cls(reason=_said(reason))

    def text(self) -> str:
        """Return why the weights are random."""
        return f"Training starts from random weights: {self.reason}"


def _said(reason: str) -> str:
    """Return a reason without the number of an error, and a name that was not found in plain
    words."""
    told = re.sub(r"\[Errno -?\d+\] ", "", reason)
    unknown = (
        "Name or service not known|Temporary failure in name resolution|nodename nor "
        "servname provided.*"
    )
    return re.sub(unknown, "the server's name was not found, as without a network", told)
