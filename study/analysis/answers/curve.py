"""The curve T(b) of a group: every law fitted to its points, and the verdict on what they determine."""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from scipy import special

from study.analysis.stats.fits import Bounds, Fitted, fit_laws, predict
from study.analysis.stats.laws import CLOSE, RISING_ROOT, LogMeans, by_name
from study.analysis.stats.log_model import DIFFERENCE, SIGNIFICANCE, LogModel
from study.analysis.stats.optimum import Optimum, has_noise, label, level_test
from study.analysis.words import coefficients, interval, three_digits
from study.base.strict import Strict

LAWS = {"constant": "a constant", "power": "the power law", "rise": "a curve with a rising arm"}


PlainKind = Literal["too_few_points", "equal_times", "no_difference", "no_law", "rise", "zigzag"]
PLAIN: dict[PlainKind, str] = {
    "too_few_points": "The points are too few to compare any law with a constant.",
    "equal_times": "Repeated runs took equal times: their noise is not known, and no law can be weighed against it.",
    "no_difference": "No law beats a constant: the test of all settings at once finds no difference.",
    "no_law": "The settings differ, but no law is shown to describe their times better than a constant.",
    "rise": "The time rises, and no fall before that shows: no falling power law.",
    "zigzag": "The time goes up and down by more than the noise, and not once: no law describes that.",
}


class Plain(Strict):
    """A verdict without numbers.

    `no_law`: levels differ, but by no more than chance does in one of a hundred studies, or no law beats a constant.
    `equal_times`: a clock of whole seconds does that.
    """

    kind: PlainKind

    def text(self) -> str:
        """Return the verdict in words."""
        return PLAIN[self.kind]


class Unreplicated(Strict):
    """Too few runs were repeated to tell chance from shape: most often none was."""

    kind: Literal["unreplicated"] = "unreplicated"
    law: str | None = Field(description="The law with the smallest criterion; null where none beats a constant.")

    def text(self) -> str:
        """Return the verdict in words."""
        if self.law is None:
            return "No law beats a constant, and without replicates the noise is not known."
        return f"Closest is {LAWS[self.law]}; without replicates the noise is not known."


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


Verdict = Annotated[Plain | Unreplicated | PowerLaw | Turn | Fall, Field(discriminator="kind")]
"""What the points of T(b) determine."""


def law_words(verdict: Verdict, x: str) -> str:
    """Return the power law in words, where it is a finding: ``14.2 s + 380 s / batch size^0.52``; else nothing."""
    if not isinstance(verdict, PowerLaw):
        return ""
    known = {name: three_digits(value) for name, value in verdict.coefficients.items()}
    return f"{known['Tmin']} s + {known['c']} s / {x}^{known['alpha']}"


NARROW = 0.5
"""Width of the interval of alpha from which alpha is no finding: it would hold both alpha = 1 and alpha = 0.5."""


class CurveFit(Strict):
    """The laws that were fitted to the points of a curve, and the verdict on them."""

    observations: int
    batch_sizes: int
    spreads: dict[str, float]
    """Relative standard deviation of the noise, between blocks and between starts, where each can be told; empty
    without replicates."""
    differs_p: float | None = Field(description="p of the F test that no batch size differs; null without replicates.")
    models: dict[str, Fitted]
    best: str | None = Field(description="The law with the smallest criterion; null where none has one.")
    verdict: Verdict = Field(description="What the points determine.")

    @property
    def power(self) -> Fitted:
        """The power law, which is the published one."""
        return self.models["power"]


def curve_of_model(model: LogModel, sizes: Sequence[float | None], optimum: Optimum | None) -> CurveFit:
    """Return every law fitted to the means of a model.

    ``sizes`` (m,) are those of its levels, None for one that is left out (of ``optimum``, too).
    """
    named = {label(level): size for level, size in zip(model.levels, sizes, strict=True) if size is not None}
    differs_p = level_test(model, [level for level, size in zip(model.levels, sizes, strict=True) if size is not None])
    means, replicated = means_of(model, sizes), model.spare > 0
    models = fit_laws(means)
    known = {name: fit.aicc for name, fit in models.items() if fit.aicc is not None}
    best = min(known, key=lambda name: known[name]) if known else None
    tied = {named[name] for name in optimum.indistinguishable} if optimum else set()
    equal_times = replicated and not has_noise(model)
    verdict = Plain(kind="equal_times") if equal_times else judge(models, means, best, differs_p, shape_of(means, tied))
    models["power"] = models["power"].model_copy(update={"reported": isinstance(verdict, PowerLaw)})
    return CurveFit(
        observations=int(sum(runs for runs, size in zip(model.counts, sizes, strict=True) if size is not None)),
        batch_sizes=len(means.sizes),
        spreads=model.spreads if replicated else {},
        differs_p=differs_p,
        models=models,
        best=best,
        verdict=verdict,
    )


def means_of(model: LogModel, sizes: Sequence[float | None]) -> LogMeans:
    """Return the mean log seconds at each size, the smallest first.

    ``sizes`` (m,) are those of the model's levels, None for one that is left out.
    """
    kept = sorted((size, place) for place, size in enumerate(sizes) if size is not None)
    order = np.array([place for _, place in kept])
    model, known = model.even, has_noise(model)
    return LogMeans(
        sizes=[size for size, _ in kept],
        logs=model.effects[order],
        covariance=model.covariance[np.ix_(order, order)] if known else np.eye(len(order)),
        degrees=model.pair_degrees if known else 0.0,
    )


def shape_of(means: LogMeans, tied: Collection[float]) -> Turn | Plain | None:
    """Return what the levels show by themselves, whatever law describes them; None where that is a fall at most.

    ``tied`` holds the fastest size with 95% probability. Where the time falls and rises again once, the minimum of the
    curve lies between the neighbours of the fastest size.
    """
    sizes = means.sizes
    places = [place for place, size in enumerate(sizes) if size in tied]
    if not places:
        return None
    if _turns_again(means):
        return Plain(kind="zigzag")
    if places[-1] == len(sizes) - 1:
        return None
    return Turn(low=sizes[places[0] - 1], high=sizes[places[-1] + 1]) if places[0] > 0 else Plain(kind="rise")


def _turns_again(means: LogMeans) -> bool:
    """Return whether the time rises before its smallest mean, or falls after it, beyond the noise.

    These are one-sided t tests at 5% of all pairs of sizes at once (Bonferroni's rule).
    """
    least, count = int(means.logs.argmin()), len(means.sizes)
    critical = float(-special.stdtrit(means.degrees, SIGNIFICANCE / (count * (count - 1) / 2)))
    own = np.diag(means.covariance)
    one, other = np.triu_indices(count, 1)
    change = means.logs[other] - means.logs[one]
    error = own[one] + own[other] - 2 * means.covariance[one, other]
    wrong = np.where(other <= least, change, np.where(one >= least, -change, 0.0))
    return bool(((wrong > critical * np.sqrt(np.maximum(error, 0.0))) & (error > 0)).any())


def judge(
    models: Mapping[str, Fitted],
    means: LogMeans,
    best: str | None,
    differs_p: float | None,
    shape: Turn | Plain | None,
) -> Verdict:
    """Return what the laws that were fitted to ``means`` determine; ``best`` is the one with the smallest criterion.

    ``differs_p`` is p of the test that no size differs from another, None without replicates. ``shape`` is what the
    levels show by themselves.
    """
    if shape and differs_p is not None and differs_p < DIFFERENCE:
        return shape
    if all(fit.aicc is None for name, fit in models.items() if name != "constant") or best is None:
        return Plain(kind="too_few_points")
    constant, other = models["constant"].aicc, models[best].aicc
    # By more than criteria may differ by chance.
    beats = best != "constant" and (constant is None or (other is not None and other < constant - CLOSE))
    if differs_p is None:
        return Unreplicated(law=best if beats else None)
    if differs_p >= SIGNIFICANCE:
        return Plain(kind="no_difference")
    if differs_p >= DIFFERENCE or not beats:
        return Plain(kind="no_law")
    power, doubt = models["power"], _doubt(models["power"], models[best], means)
    if doubt is None:
        return PowerLaw(coefficients=power.coefficients, intervals=power.intervals)
    over = np.exp(means.logs) / predict(by_name(best), models[best], np.array(means.sizes)) - 1
    p = models[best].lack_of_fit_p
    return Fall(
        law=best,
        doubt=doubt,
        misses=float(np.abs(over).max()) if p is not None and p < SIGNIFICANCE else None,
        alpha_interval=power.intervals.get("alpha"),
    )


def _doubt(power: Fitted, best: Fitted, means: LogMeans) -> Doubt | None:
    """Return why the power law's coefficients are no findings; None where they are.

    A root that is shown to rise shuts them out, unless it fits worse.
    """
    interval = power.intervals.get("alpha")
    if power.aicc is None or power.lack_of_fit_p is None:
        return "untested"
    if best.aicc is None or power.aicc > best.aicc + CLOSE:
        return "another_law"
    if power.lack_of_fit_p < SIGNIFICANCE:
        return "lack_of_fit"
    if interval is None or interval.low is None or interval.high is None or interval.high - interval.low >= NARROW:
        return "wide_interval"
    rival = fit_laws(means, [RISING_ROOT])["rising_root"]
    rises = rival.intervals["g"].low or 0.0
    return "rising_root" if rises > 0 and rival.aicc is not None and rival.aicc < power.aicc + CLOSE else None
