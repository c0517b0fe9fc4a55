"""What the points of T(b) determine: one kind for each verdict, with its words."""

from typing import Annotated, Literal

from pydantic import Field

from study.analysis.stats.fits import Bounds
from study.analysis.stats.optimum import label
from study.analysis.words import coefficients, interval, three_digits
from study.base.strict import Strict

LAWS = {"constant": "a constant", "power": "the power law", "rise": "a curve with a rising arm"}


class TooFewPoints(Strict):
    """No law has a criterion."""

    kind: Literal["too_few_points"] = "too_few_points"

    def text(self) -> str:
        """Return the verdict in words."""
        return "The points are too few to compare any law with a constant."


class Unreplicated(Strict):
    """Too few runs were repeated to tell chance from shape: most often none was."""

    kind: Literal["unreplicated"] = "unreplicated"
    law: str | None = Field(description="The law with the smallest criterion; null where none beats a constant.")

    def text(self) -> str:
        """Return the verdict in words."""
        if self.law is None:
            return "No law beats a constant, and without replicates the noise is not known."
        return f"Closest is {LAWS[self.law]}; without replicates the noise is not known."


class EqualTimes(Strict):
    """Repeated runs took equal times, so that the noise is not known: a clock of whole seconds does that."""

    kind: Literal["equal_times"] = "equal_times"

    def text(self) -> str:
        """Return the verdict in words."""
        return "Repeated runs took equal times: their noise is not known, and no law can be weighed against it."


class NoDifference(Strict):
    """No level differs from another by more than the noise."""

    kind: Literal["no_difference"] = "no_difference"

    def text(self) -> str:
        """Return the verdict in words."""
        return "No law beats a constant: the test of all settings at once finds no difference."


class NoLaw(Strict):
    """Levels differ, but by no more than chance does in one of a hundred studies, or no law beats a constant."""

    kind: Literal["no_law"] = "no_law"

    def text(self) -> str:
        """Return the verdict in words."""
        return "The settings differ, but no law is shown to describe their times better than a constant."


class PowerLaw(Strict):
    """T(b) = Tmin + c / b^alpha: the coefficients of the power law are findings."""

    kind: Literal["power_law"] = "power_law"
    coefficients: dict[str, float]
    intervals: dict[str, Bounds]

    def text(self) -> str:
        """Return the verdict in words."""
        text = f"Power law (s; 95%): Tmin + c/b^alpha with {coefficients(self.coefficients, self.intervals)}."
        bounds = self.intervals["alpha"]
        one = (bounds.low or 0) <= 1 <= (bounds.high or 1)
        return f"{text} It does not exclude alpha = 1, a cost of each step and one of each image." if one else text


class Turn(Strict):
    """The time falls along the axis, and rises again: both ends are slower than the fastest beyond noise."""

    kind: Literal["turn"] = "turn"
    low: float = Field(description="The level below all that may be the fastest.")
    high: float = Field(description="The level above all that may be the fastest.")

    def text(self) -> str:
        """Return the verdict in words."""
        ends = f"{label(self.low)} and {label(self.high)}"
        return f"The time falls and rises again: no power law. Its shortest lies between {ends} (95%)."


class Rise(Strict):
    """The time rises along the axis, and no fall before that shows."""

    kind: Literal["rise"] = "rise"

    def text(self) -> str:
        """Return the verdict in words."""
        return "The time rises, and no fall before that shows: no falling power law."


class Zigzag(Strict):
    """The time goes up and down along the axis, beyond the noise, and not by one fall and one rise after it."""

    kind: Literal["zigzag"] = "zigzag"

    def text(self) -> str:
        """Return the verdict in words."""
        return "The time goes up and down by more than the noise, and not once: no law describes that."


Doubt = Literal["another_law", "untested", "lack_of_fit", "wide_interval", "rising_root"]


class Fall(Strict):
    """The time falls along the axis, and no rise after that shows; the exponent of the power law is no finding."""

    kind: Literal["fall"] = "fall"
    law: str = Field(description="The law with the smallest criterion.")
    doubt: Doubt
    """Why the power law's coefficients are no findings: another law fits better; no replicates or too few levels to
    test it; it misses the means by more than the noise; the interval of alpha is too wide."""
    misses: float | None
    """Largest distance of a mean from the law, over the law, where the law lacks fit; null where it does not, or where
    that cannot be told."""
    alpha_interval: Bounds | None = Field(description="Of the power law.")

    def text(self) -> str:
        """Return the verdict in words."""
        power = self.law == "power"
        told = f"The time falls, and {'the power law fits best' if power else 'no rise after that shows'}."
        if self.misses is not None:
            misses = f"{'It' if power else 'The closest curve'} misses a mean by {100 * self.misses:.2g}%"
            told = f"{told} {misses}, more than the noise."
        return f"{told} The exponent alpha is no finding: {self._doubt()}."

    def _doubt(self) -> str:
        bounds = self.alpha_interval
        known = bounds is not None and interval(bounds.low, bounds.high)
        alpha = f" (95%: {bounds.low:.2f} to {bounds.high:.2f})" if bounds and known else ""
        return {
            "another_law": "another law fits better",
            "untested": "there are no replicates, or too few settings to test it",
            "lack_of_fit": "the power law misses the times by more than the noise",
            "rising_root": "a root that rises again fits as well",
            "wide_interval": f"the points do not determine it{alpha}",
        }[self.doubt]


Verdict = Annotated[
    TooFewPoints | Unreplicated | EqualTimes | NoDifference | NoLaw | PowerLaw | Turn | Rise | Zigzag | Fall,
    Field(discriminator="kind"),
]
"""What the points of T(b) determine."""


def law_words(verdict: Verdict, x: str) -> str:
    """Return the power law in words, where it is a finding: ``14.2 s + 380 s / batch size^0.52``; else nothing."""
    if not isinstance(verdict, PowerLaw):
        return ""
    known = {name: three_digits(value) for name, value in verdict.coefficients.items()}
    return f"{known['Tmin']} s + {known['c']} s / {x}^{known['alpha']}"
