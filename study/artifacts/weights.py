"""The decision about the source of a model's weights, as a value. Host side: no torch."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from study.base.strict import Strict


class Weights(Strict):
    """The decision for one model of a study: made once, before any run, and followed by every run."""

    model: str
    requested: str = Field(description="`imagenet`, `none`, or the base name of the file that was asked for.")
    kind: Literal["imagenet", "file", "random"]
    file: str | None = Field(description="Base name of the file; null for random weights.")
    sha256: str | None = Field(description="Checksum of the file; null for random weights.")
    body_sha256: str = Field(description="Checksum of the body's tensors, from which every run starts.")
    reason: str = Field(description="Reason for this kind.")


def read_weights(path: Path) -> Weights:
    """Return the decision that the weights step wrote. Raise :class:`StudyError` if there is none."""
    return Weights.read(path, "make it with: python -m study weights")


def fell_back(weights: Weights) -> bool:
    """Return whether ImageNet weights were asked for and not available."""
    return weights.requested == "imagenet" and weights.kind == "random"
