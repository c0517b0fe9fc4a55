"""How narrow the interval of a study's answer is, beside what `replicates: {until: 5%}` asks for."""

import math

from pydantic import Field

from study.base.errors import quantity
from study.base.strict import Strict

DEGREES = 7.999
"""Degrees of freedom of the noise from which a look counts, 8 but for rounding: with fewer, a study stops where it saw
little of it by chance."""


class Reached(Strict):
    """What a look at a study's whole blocks finds."""

    asked: float = Field(description="The half width that is asked for, as a share.")
    half_width: float | None
    """The widest of the answer's intervals: half of its width on the scale of logarithms, as a share; null without
    one."""
    degrees: float | None = Field(description="The fewest degrees of freedom of these intervals; null without one.")
    blocks: int = Field(description="Blocks that are there.")
    most: int = Field(description="Blocks that are planned at most.")
    seen: str = Field("", description="Checksum of what a look saw that left the other blocks.")

    @property
    def enough(self) -> bool:
        """Whether no further block is needed."""
        return self.half_width is not None and self.half_width <= self.asked and (self.degrees or 0.0) >= DEGREES

    def text(self) -> str:
        """Return it in words; a width is rounded up, so that it stands on its side of what is asked."""
        asked, blocks = f"{100 * self.asked:g}%", quantity(self.blocks, "block")
        told = "no interval yet" if self.half_width is None else f"±{math.ceil(1000 * self.half_width) / 10:g}%"
        if self.blocks >= self.most:
            return f"{blocks}, the most: {told}{' is reached' * bool(self.half_width)}, {asked} was asked"
        if self.enough:
            return f"stopped after {blocks}: the interval is {told} (asked: {asked})"
        return f"{blocks} of at most {self.most}: {told}, {asked} is asked"
