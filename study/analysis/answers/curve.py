"""The curve T(b) of a group: every law fitted to its points, and the verdict on what they determine."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from pydantic import Field
from scipy import special

from study.analysis.answers.law import (
    Doubt,
    EqualTimes,
    Fall,
    NoDifference,
    NoLaw,
    PowerLaw,
    Rise,
    TooFewPoints,
    Turn,
    Unreplicated,
    Verdict,
    Zigzag,
)
from study.analysis.stats.fits import Fitted, fit_laws, predict
from study.analysis.stats.laws import CLOSE, RISING_ROOT, LogMeans, by_name
from study.analysis.stats.log_model import DIFFERENCE, SIGNIFICANCE, LogModel
from study.analysis.stats.optimum import Optimum, has_noise, label
from study.base.strict import Strict

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


def curve_of_model(
    model: LogModel,
    sizes: Sequence[float | None],
    optimum: Optimum | None,
    differs_p: float | None,
) -> CurveFit:
    """Return every law fitted to the means of a model.

    ``sizes`` (m,) are those of its levels, None for one that is left out (of ``optimum`` and ``differs_p``, too).
    """
    named = {label(level): size for level, size in zip(model.levels, sizes, strict=True) if size is not None}
    means, replicated = means_of(model, sizes), model.spare > 0
    models = fit_laws(means)
    known = {name: fit.aicc for name, fit in models.items() if fit.aicc is not None}
    best = min(known, key=lambda name: known[name]) if known else None
    tied = {named[name] for name in optimum.indistinguishable} if optimum else set()
    equal_times = replicated and not has_noise(model)
    verdict = EqualTimes() if equal_times else judge(models, means, best, differs_p, shape_of(means, tied))
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


def shape_of(means: LogMeans, tied: Collection[float]) -> Turn | Rise | Zigzag | None:
    """Return what the levels show by themselves, whatever law describes them; None where that is a fall at most.

    ``tied`` holds the fastest size with 95% probability. Where the time falls and rises again once, the minimum of the
    curve lies between the neighbours of the fastest size.
    """
    sizes = means.sizes
    places = [place for place, size in enumerate(sizes) if size in tied]
    if not places:
        return None
    if _turns_again(means):
        return Zigzag()
    if places[-1] == len(sizes) - 1:
        return None
    return Turn(low=sizes[places[0] - 1], high=sizes[places[-1] + 1]) if places[0] > 0 else Rise()


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
    shape: Turn | Rise | Zigzag | None,
) -> Verdict:
    """Return what the laws that were fitted to ``means`` determine; ``best`` is the one with the smallest criterion.

    ``differs_p`` is p of the test that no size differs from another, None without replicates. ``shape`` is what the
    levels show by themselves.
    """
    if shape and differs_p is not None and differs_p < DIFFERENCE:
        return shape
    if all(fit.aicc is None for name, fit in models.items() if name != "constant") or best is None:
        return TooFewPoints()
    beats = _beats_constant(models, best)
    if differs_p is None:
        return Unreplicated(law=best if beats else None)
    if differs_p >= SIGNIFICANCE:
        return NoDifference()
    if differs_p >= DIFFERENCE or not beats:
        return NoLaw()
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


def _beats_constant(models: Mapping[str, Fitted], best: str) -> bool:
    """Return whether the best law is another than the constant, by more than criteria may differ by chance."""
    constant, other = models["constant"].aicc, models[best].aicc
    return best != "constant" and (constant is None or (other is not None and other < constant - CLOSE))


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
