"""What the runs were made with: software, weights, data, and the study's size."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, Self

from study.analysis.caveats.base import OneCaveat, Seen

What = Literal["machines", "images", "weights", "software"]
LOCKED = ("image", "environment")
MIXED: dict[What, tuple[str, tuple[str, ...], str, str, str]] = {
    "machines": ("device_name", ("machine",), "on different machines", "machine's.", "Use one machine."),
    "images": ("image_id", ("image",), "in different container images", "image's.", "Use one image."),
    "weights": ("weights", (), "from different weights", "weights'.", "`python -m study retry STUDY --weights`"),
    "software": ("software", LOCKED, "with different software", "libraries'.", "Use one image, or one lock."),
}
"""The column that differs, the factors that may be meant to change it, what differs in words, and whose a difference
may be; then the advice."""


class Mixed(OneCaveat):
    """Runs that were made with different things of one kind, which no factor of the study is meant to change."""

    kind: Literal["mixed"] = "mixed"
    what: What
    values: list[str]

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        for what, (column, factors, *_) in MIXED.items():
            within = "device" if what in ("machines", "images") else "study"
            values = {value.removeprefix("sha256:") for _, found in seen.several(column, within) for value in found}
            if values and not seen.study.factors.keys() & {*factors}:
                yield cls(what=what, values=sorted({value[:12] for value in values} if what == "images" else values))

    def text(self) -> str:
        """Return what differs, without what is the same."""
        return f"Runs were made {MIXED[self.what][2]}: {' against '.join(_apart(self.values))}"

    def effect(self) -> str:
        """Return what a difference may be."""
        return f"A difference between settings may be the {MIXED[self.what][3]}"

    def advice(self) -> str:
        """Return with what to measure again."""
        return MIXED[self.what][4]


def _apart(lists: Sequence[str]) -> list[str]:
    """Return of each list, its items parted by commas, those that not all of the lists have."""
    parts = [text.split(", ") for text in lists]
    return [", ".join(item for item in own if not all(item in other for other in parts)) or "none" for own in parts]


class UnrepeatedTraining(OneCaveat):
    """The same training gave different weights on one device."""

    kind: Literal["unrepeated_training"] = "unrepeated_training"
    device: str
    weights: int
    TEXT = "Training did not repeat itself on {device}: {weights} different sets of weights"
    EFFECT = "A difference in accuracy may be chance."
    ADVICE = "Compare accuracies over seeds."

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        for device, values in seen.several("trained_sha256"):
            yield cls(device=device, weights=len(values))


class Reduced(OneCaveat):
    """The study is measured at its reduced size."""

    kind: Literal["reduced"] = "reduced"
    keys: list[str]
    TEXT = "Reduced size: {keys}"
    EFFECT = "Times and accuracies are those of the smaller job."
    ADVICE = "The full size: `--config size=full`."

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        full, small = seen.study.full or {}, seen.study.reduced
        if keys := [f"{key} {_plain(small[key])}, not {_plain(full[key])}" for key in small if key in full]:
            yield cls(keys=keys)


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "its default" if value is None else str(value)


class RandomWeights(OneCaveat):
    """Runs that start from random weights, for one reason, because the pretrained ones were not to be had."""

    kind: Literal["random_weights"] = "random_weights"
    reason: str
    TEXT = "Training starts from random weights: {reason}"
    EFFECT = "Times are valid; accuracies are not those of transfer learning."
    ADVICE = "`python -m study retry STUDY --weights`"

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        weights = [record.weights for record in seen.kept if record.weights and record.weights.fell_back]
        for reason in sorted({one.reason for one in weights}):
            yield cls(reason=_said(reason))


def _said(reason: str) -> str:
    """Return a reason without the number of an error, and a name that was not found in plain words."""
    told = re.sub(r"\[Errno -?\d+\] ", "", reason)
    unknown = "Name or service not known|Temporary failure in name resolution|nodename nor servname provided.*"
    return re.sub(unknown, "the server's name was not found, as without a network", told)


class LeftOut(OneCaveat):
    """Files of the data that are no usable images."""

    kind: Literal["left_out"] = "left_out"
    files: int
    TEXT = "The data leave out {files}"
    ADVICE = "The data's manifest names each reason."

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        if files := max((record.data.left_out or 0 for record in seen.kept if record.data), default=0):
            yield cls(files=files)


class NoChecksum(OneCaveat):
    """Records without a checksum of their own."""

    kind: Literal["no_checksum"] = "no_checksum"
    records: int
    TEXT = "{records} without a checksum"
    EFFECT = "An edit of them would not show."

    @classmethod
    def _find(cls, seen: Seen) -> Iterator[Self]:
        if bare := sum(record.record_sha256 is None for record in seen.kept):
            yield cls(records=bare)


Inputs = Mixed | UnrepeatedTraining | Reduced | RandomWeights | LeftOut | NoChecksum
