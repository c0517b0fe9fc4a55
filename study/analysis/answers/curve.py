"""The curve T(b) of a group: every law fitted to its points, and the verdict on what they
determine."""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import Field
from scipy import special

from study.analysis.stats.fits import Fitted, fit_laws
from study.analysis.stats.laws import CLOSE, RISING_ROOT, LogMeans
from study.analysis.stats.log_model import DIFFERENCE, SIGNIFICANCE, LogModel
from study.analysis.stats.optimum import Optimum, has_noise, label, level_test
from study.analysis.words import coefficients, three_digits
from study.base.strict import Strict

Kind = Literal["power_law", "falls", "turns", "flat", "undetermined"]
TEXTS: dict[Kind, str] = {
    "power_law": "Power law (s; 95%): Tmin + c/b^alpha with",
    "falls": "The time falls. The exponent alpha is no finding:",
    "turns": "The time rises somewhere by more than the noise: no falling power law.",
    "flat": "No law is shown to describe the times better than a constant.",
    "undetermined": "No law can be weighed against a constant:",
}
Reason = Literal[
    "another_law",
    "untested",
    "lack_of_fit",
    "wide_interval",
    "rising_root",
    "points",
    "replicates",
    "equal_times",
]
REASONS: dict[Reason, str] = {
    "another_law": "another law fits better",
    "untested": "the settings are too few to test it",
    "lack_of_fit": "the power law misses the times by more than the noise",
    "wide_interval": "the points do not determine it",
    "rising_root": "a root that rises again fits as well",
    "points": "the points are too few",
    "replicates": "without replicates the noise is not known",
    "equal_times": "repeated runs took equal times, so that their noise is not known",
}


class Verdict(Strict):
    """What the points of T(b) determine.

    `power_law`: the coefficients of T(b) = Tmin + c / b^alpha are findings. `falls`: the time
    falls, and the exponent is none. `turns`: some setting is slower than a smaller one beyond the
    noise. `flat`: no difference shows, or none that a law describes. `undetermined`: something is
    missing to tell.
    """

    kind: Kind
    reason: Reason | None = Field(
        None, description="Why the exponent is no finding, or what is missing."
    )
    low: float | None = Field(
        None, description="The level below all that may be the fastest, where it falls to them."
    )
    high: float | None = Field(
        None, description="The level above all that may be the fastest, where it then rises."
    )


def law_words(curve: "CurveFit", x: str) -> str:
    """Return the power law in words, where it is a finding: ``14.2 s + 380 s / batch size^0.52``;
    else nothing."""
    if curve.verdict.kind != "power_law":
        return ""
    known = {name: three_digits(value) for name, value in curve.power.coefficients.items()}
    return f"{known['Tmin']} s + {known['c']} s / {x}^{known['alpha']}"


NARROW = 0.5
"""Width of the interval of alpha from which alpha is no finding: it would hold both alpha = 1 and
alpha = 0.5."""


class CurveFit(Strict):
    """The laws that were fitted to the points of a curve, and the verdict on them."""

    observations: int
    batch_sizes: int
    spreads: dict[str, float]
    """Relative standard deviation of the noise, between blocks and between starts, where each can
    be told; empty without replicates."""
    differs_p: float | None = Field(
        description="p of the F test that no batch size differs; null without replicates."
    )
    models: dict[str, Fitted]
    best: str | None = Field(
        description="The law with the smallest criterion; null where none has one."
    )
    verdict: Verdict

    @property
    def power(self) -> Fitted:
        """The power law, which is the published one."""
        return self.models["power"]

    def text(self) -> str:
        """Return the verdict in words."""
        verdict, told = self.verdict, TEXTS[self.verdict.kind]
        if verdict.reason:
            return f"{told} {REASONS[verdict.reason]}."
        if verdict.low is not None and verdict.high is not None:
            return (
                f"{told} Its shortest lies between {label(verdict.low)} and "
                f"{label(verdict.high)} (95%)."
            )
        if verdict.kind != "power_law":
            return told
        told = f"{told} {coefficients(self.power.coefficients, self.power.intervals)}."
        alpha = self.power.intervals["alpha"]
        one = (alpha.low or 0) <= 1 <= (alpha.high or 1)
        return (
            f"{told} It does not exclude alpha = 1, a cost of each step and one of each image."
            if one
            else told
        )


def curve_of_model(
    model: LogModel, sizes: Sequence[float | None], optimum: Optimum | None
) -> CurveFit:
    """Return every law fitted to the means of a model.

    ``sizes`` (m,) are those of its levels, None for one that is left out (of ``optimum``, too).
    """
    named = {
        label(level): size
        for level, size in zip(model.levels, sizes, strict=True)
        if size is not None
    }
    differs_p = level_test(
        model, [level for level, size in zip(model.levels, sizes, strict=True) if size is not None]
    )
    means, replicated = means_of(model, sizes), model.spare > 0
    models = fit_laws(means)
    known = {name: fit.aicc for name, fit in models.items() if fit.aicc is not None}
    best = min(known, key=lambda name: known[name]) if known else None
    tied = {named[name] for name in optimum.indistinguishable} if optimum else set()
    if replicated and not has_noise(model):
        verdict = Verdict(kind="undetermined", reason="equal_times")
    else:
        verdict = judge(models, means, best, differs_p, shape_of(means, tied))
    models["power"] = models["power"].model_copy(update={"reported": verdict.kind == "power_law"})
    return CurveFit(
        observations=int(
            sum(runs for runs, size in zip(model.counts, sizes, strict=True) if size is not None)
        ),
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


def shape_of(means: LogMeans, tied: Collection[float]) -> Verdict | None:
    """Return that the levels turn, whatever law describes them; None where they fall at most.

    ``tied`` holds the fastest size with 95% probability. Where the time falls and rises again once,
    the minimum of the curve lies between the neighbours of the fastest size.
    """
    sizes = means.sizes
    places = [place for place, size in enumerate(sizes) if size in tied]
    if not places:
        return None
    if _turns_again(means):
        return Verdict(kind="turns")
    first, last = places[0], places[-1]
    if last == len(sizes) - 1:
        return None
    return (
        Verdict(kind="turns", low=sizes[first - 1], high=sizes[last + 1])
        if first
        else Verdict(kind="turns")
    )


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
    turn: Verdict | None,
) -> Verdict:
    """Return what the laws that were fitted to ``means`` determine; ``best`` is the one with the
    smallest criterion.

    ``differs_p`` is p of the test that no size differs from another, None without replicates.
    ``turn`` is what the levels show by themselves.
    """
    if turn and differs_p is not None and differs_p < DIFFERENCE:
        return turn
    if all(fit.aicc is None for name, fit in models.items() if name != "constant") or best is None:
        return Verdict(kind="undetermined", reason="points")
    if differs_p is None:
        return Verdict(kind="undetermined", reason="replicates")
    constant, other = models["constant"].aicc, models[best].aicc
    # By more than criteria may differ by chance.
    beats = best != "constant" and (
        constant is None or (other is not None and other < constant - CLOSE)
    )
    if differs_p >= DIFFERENCE or not beats:
        return Verdict(kind="flat")
    doubt = _doubt(models["power"], models[best], means)
    return Verdict(kind="falls", reason=doubt) if doubt else Verdict(kind="power_law")


def _doubt(power: Fitted, best: Fitted, means: LogMeans) -> Reason | None:
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
    if (
        interval is None
        or interval.low is None
        or interval.high is None
        or interval.high - interval.low >= NARROW
    ):
        return "wide_interval"
    rival = fit_laws(means, [RISING_ROOT])["rising_root"]
    rises = rival.intervals["g"].low or 0.0
    return (
        "rising_root"
        if rises > 0 and rival.aicc is not None and rival.aicc < power.aicc + CLOSE
        else None
    )
