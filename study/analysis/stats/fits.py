"""The laws of T(b) fitted to mean log seconds, each weighed against the others, with an interval for each coefficient.

Errors are multiplicative: every law is fitted to the logarithms, by generalised least squares.
"""

from collections.abc import Sequence

import numpy as np
from pydantic import Field
from scipy import special

from study.analysis.stats.laws import LAWS, Array, Law, LogMeans
from study.analysis.stats.log_model import CONFIDENCE
from study.analysis.stats.region import Best, Region, Target, best_of, region_of, target_of
from study.base.strict import Strict

FOLDS = 10
"""Parts in which sizes are left out, where there are more sizes than that."""


class Bounds(Strict):
    """A 95% confidence set; null is unbounded."""

    low: float | None
    high: float | None


class Fitted(Strict):
    """One candidate law, fitted."""

    coefficients: dict[str, float]
    intervals: dict[str, Bounds]
    """Profile intervals: all values with RSS <= RSSmin (1 + F(0.95; 1, n-p) / (n-p)). Empty without a degree of
    freedom."""
    rss: float
    """Squared residuals of the mean log seconds over their variance, plus the noise's degrees of freedom; without
    replicates in (log s)^2."""
    aicc: float | None
    """Corrected Akaike criterion; null where it is undefined, and for a law with a coefficient for each size, which
    follows any times."""
    weight: float | None = Field(description="Akaike weight among the laws that have a criterion.")
    lack_of_fit_p: float | None = Field(description="p of the F test for lack of fit; null without replicates.")
    left_out_error: float | None
    """Root mean square relative error at each batch size, as the law fitted to the others predicts it."""
    reported: bool | None = Field(None, description="Power law alone: whether its coefficients are findings.")


class Points(Strict):
    """Distinct batch sizes with the means that the laws were fitted to."""

    sizes: list[float]
    means: list[float] = Field(description="Geometric means in seconds, at the average state of the machine.")
    errors: list[float] | None
    """Standard error of each mean's logarithm, without the shift common to all; null without replicates."""


class Band(Strict):
    """The band that holds 95% of single runs at the machine's average state."""

    x: list[float]
    low: list[float]
    high: list[float]


def points_of(means: LogMeans) -> Points:
    """Return the means as values that can be written."""
    errors = np.sqrt(_own_variances(means)).tolist() if means.degrees > 0 else None
    return Points(sizes=means.sizes, means=np.exp(means.logs).tolist(), errors=errors)


def _own_variances(means: LogMeans) -> Array:
    """Return the variance (m,) of each mean without what all share, which is exact where the rest is alike."""
    count = len(means.sizes)
    centre = np.eye(count) - 1 / count
    found: Array = np.diag(centre @ means.covariance @ centre) * count / (count - 1)
    return found


def fit_laws(means: LogMeans, laws: Sequence[Law] = LAWS) -> dict[str, Fitted]:
    """Return every law fitted to the means, with its Akaike weight."""
    target = target_of(means)
    fits = {law.name: _fit(law, means, target) for law in laws}
    known = {name: fit.aicc for name, fit in fits.items() if fit.aicc is not None}
    least = min(known.values(), default=0.0)
    total = sum(np.exp(-(value - least) / 2) for value in known.values())
    return {
        name: fit.model_copy(
            update={"weight": float(np.exp(-(known[name] - least) / 2) / total) if name in known else None}
        )
        for name, fit in fits.items()
    }


def _fit(law: Law, means: LogMeans, target: Target) -> Fitted:
    best, sizes = best_of(law, target), len(means.sizes)
    rss = best.rss + target.degrees
    region = _region(law, target, best)
    return Fitted(
        coefficients={name: float(one[0]) for name, one in Region.single(law, target, best).coefficients().items()},
        intervals=_intervals(region) if region else {},
        rss=rss,
        aicc=aicc(rss, sizes + target.degrees, law.parameters) if law.parameters < sizes else None,
        weight=None,
        lack_of_fit_p=_lack_of_fit(best.rss, sizes - law.parameters, target.degrees),
        left_out_error=_left_out(law, means),
    )


def _region(law: Law, target: Target, best: Best) -> Region | None:
    """Return the laws of this kind that the times do not exclude; None without a degree of freedom."""
    degrees = target.degrees + len(target.u) - law.parameters
    if degrees <= 0:
        return None
    within = (best.rss + target.degrees) * float(special.fdtri(1, degrees, CONFIDENCE)) / degrees
    return region_of(law, target, best, best.rss + within)


def _intervals(region: Region) -> dict[str, Bounds]:
    """Return the range of each coefficient over the region."""
    found = {}
    for name, values in region.coefficients().items():
        if name == region.law.shape:
            low, high = float(values.min()), float(values.max())
            found[name] = Bounds(
                low=None if region.low is None else low,
                high=None if region.high is None else high,
            )
        else:
            least, most = values * np.exp(-region.reach), values * np.exp(region.reach)
            found[name] = Bounds(low=float(least.min()), high=float(most.max()))
    return found


def predict(law: Law, fit: Fitted, sizes: Array) -> Array:
    """Return the seconds that a fitted law predicts at ``sizes``, of their shape."""
    return law.seconds(fit.coefficients, np.asarray(sizes, float))


def band_of(law: Law, means: LogMeans) -> Band | None:
    """Return the band of single runs from the smallest to the largest size; None without a degree of freedom.

    The noise of a run and what the law itself may be off are independent: their squares add up.
    """
    target = target_of(means)
    best = best_of(law, target)
    region = _region(law, target, best)
    if region is None:
        return None
    degrees = target.degrees + len(means.sizes) - law.parameters
    variance = float((_own_variances(means) * means.counts).mean()) * (best.rss + target.degrees) / degrees
    noise = float(special.stdtrit(degrees, (1 + CONFIDENCE) / 2)) * np.sqrt(variance)
    x = np.geomspace(means.sizes[0], means.sizes[-1], 41)
    middle = Region.single(law, target, best).at(x)[0]
    low, high = region.at(x)
    return Band(
        x=x.tolist(),
        low=np.exp(middle - np.hypot(middle - low, noise)).tolist(),
        high=np.exp(middle + np.hypot(high - middle, noise)).tolist(),
    )


def aicc(rss: float, observations: float, parameters: int) -> float | None:
    """Return n ln(RSS/n) + 2k + 2k(k+1)/(n-k-1), where k = parameters + 1, for the variance (Hurvich and Tsai 1989)."""
    k = parameters + 1
    if observations - k - 1 <= 0:
        return None
    safe = max(rss, 1e-12)
    return float(observations * np.log(safe / observations) + 2 * k + 2 * k * (k + 1) / (observations - k - 1))


def _lack_of_fit(squares: float, spare: int, degrees: float) -> float | None:
    """Return p of F = [squares / (m - p)] / 1, as squares are over the noise's variance; None without replicates or a
    spare size."""
    return float(special.fdtrc(spare, degrees, squares / spare)) if spare > 0 and degrees > 0 else None


def _left_out(law: Law, means: LogMeans) -> float | None:
    """Return the root mean square of the relative errors at each size, predicted from the others."""
    count = len(means.sizes)
    if count <= max(law.parameters, 2):
        return None
    errors: list[float] = []
    for fold in range(min(count, FOLDS)):
        out = np.arange(count) % FOLDS == fold
        target = target_of(_part(means, ~out))
        one = Region.single(law, target, best_of(law, target, rounds=2))
        predicted = one.at(np.array(means.sizes)[out])[0]
        errors += np.expm1(np.clip(predicted - means.logs[out], None, 300)).tolist()
    return float(np.sqrt(np.mean(np.square(errors))))


def _part(means: LogMeans, kept: Array) -> LogMeans:
    """Return the means at some of the sizes."""
    places = np.flatnonzero(kept)
    return LogMeans(
        sizes=[means.sizes[place] for place in places],
        logs=means.logs[places],
        covariance=means.covariance[np.ix_(places, places)],
        degrees=means.degrees,
        counts=[means.counts[place] for place in places],
    )
