"""The laws of T(b) fitted to mean log seconds, with an interval for each coefficient.

Errors are multiplicative: every law is fitted to the logarithms, by generalised least squares.
"""

from collections.abc import Sequence

import numpy as np
from pydantic import Field
from scipy import special

from study.analysis.stats.laws import LAWS, Array, Law, LogMeans
from study.analysis.stats.log_model import CONFIDENCE
from study.analysis.stats.region import best_of, ranges, target_of
from study.base.strict import Strict


class Bounds(Strict):
    """A 95% confidence set; null is unbounded."""

    low: float | None
    high: float | None


class Fitted(Strict):
    """One law, fitted."""

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
    lack_of_fit_p: float | None = Field(description="p of the F test for lack of fit; null without replicates.")
    reported: bool | None = Field(None, description="Power law alone: whether its coefficients are findings.")


def fit_laws(means: LogMeans, laws: Sequence[Law] = LAWS) -> dict[str, Fitted]:
    """Return every law fitted to the means."""
    return {law.name: _fit(law, means) for law in laws}


def _fit(law: Law, means: LogMeans) -> Fitted:
    best, squares = best_of(law, target_of(means))
    sizes, replicated = len(means.sizes), max(means.degrees, 0.0)
    rss, degrees = squares + replicated, sizes - law.parameters + replicated
    intervals = {}
    if degrees > 0:
        limit = squares + rss * float(special.fdtri(1, degrees, CONFIDENCE)) / degrees
        intervals = {name: Bounds(low=low, high=high) for name, (low, high) in ranges(best, limit).items()}
    return Fitted(
        coefficients={name: float(value[0]) for name, value in best.coefficients(np.zeros(1)).items()},
        intervals=intervals,
        rss=rss,
        aicc=aicc(rss, sizes + replicated, law.parameters) if law.parameters < sizes else None,
        lack_of_fit_p=_lack_of_fit(squares, sizes - law.parameters, replicated),
    )


def predict(law: Law, fit: Fitted, sizes: Array) -> Array:
    """Return the seconds that a fitted law predicts at ``sizes``, of their shape."""
    return law.seconds(fit.coefficients, np.asarray(sizes, float))


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
