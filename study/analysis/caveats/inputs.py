"""What the runs began with: the weights, and images that were decoded before the clock started."""

import re
from collections.abc import Iterator
from typing import Literal, Self

from study.analysis.answers.group import Group
from study.analysis.caveats.base import OfSetting, OneCaveat, Seen, means, of_levels
from study.analysis.words import short

LOADER = "loader.kind"


class DecodedBefore(OneCaveat):
    """Some settings have their images on the device before the clock starts; the others decode them in every epoch."""

    kind: Literal["decoded_before"] = "decoded_before"
    prepared: list[OfSetting]
    """Median seconds of the preparation before the clock, of each setting whose images are on the device: the decoding,
    and the building of the loader."""
    EFFECT = "Part of the gain is work that their clock does not count."
    ADVICE = "Take it for images that, decoded, fit into the device's memory and are trained on for many epochs."
    IF = "Counted"

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        kinds = {str(kind) for kind in seen.usable.get(LOADER, [])} - {"alone"}
        if LOADER not in seen.study.factors or "device" not in kinds or len(kinds) < 2:
            return
        prepared = []
        for group in seen.fitted:
            mine = group.clean[(group.clean[LOADER] == "device") & group.clean["setup_seconds"].notna()]
            prepared += [
                OfSetting(setting=group.levels[str(level)].within(group.setting), value=float(rows.median()))
                for level, rows in mine.groupby("level", sort=False)["setup_seconds"]
            ]
        yield cls(prepared=prepared)

    def text(self) -> str:
        """Return what the clock leaves out, and how long it takes."""
        took = f": up to {short(max(one.value for one in self.prepared))} s are not counted" if self.prepared else ""
        return f"With images on the device, decoding is off the clock{took}"

    def applied(self, group: Group) -> dict[str, float] | None:
        """Return the means with the preparation counted."""
        extra = of_levels(group, self.prepared)
        return {label: time + extra.get(label, 0.0) for label, time in means(group).items()} if extra else None


class RandomWeights(OneCaveat):
    """Runs that start from random weights, for one reason, because the pretrained ones were not to be had."""

    kind: Literal["random_weights"] = "random_weights"
    reason: str
    EFFECT = "Times are valid; accuracies are not those of transfer learning."
    ADVICE = "`python -m study retry STUDY --weights`"

    @classmethod
    def find(cls, seen: Seen) -> Iterator[Self]:
        weights = [record.weights for record in seen.kept if record.weights and record.weights.fell_back]
        for reason in sorted({one.reason for one in weights}):
            yield cls(reason=_said(reason))

    def text(self) -> str:
        """Return why the weights are random."""
        return f"Training starts from random weights: {self.reason}"


def _said(reason: str) -> str:
    """Return a reason without the number of an error, and a name that was not found in plain words."""
    told = re.sub(r"\[Errno -?\d+\] ", "", reason)
    unknown = "Name or service not known|Temporary failure in name resolution|nodename nor servname provided.*"
    return re.sub(unknown, "the server's name was not found, as without a network", told)
