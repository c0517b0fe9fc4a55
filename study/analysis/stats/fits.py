"""The laws of T(b) fitted to the points, each weighed against the others, with an interval for each coefficient.

Errors are multiplicative: every residual is relative to the mean time at its batch size. A block is an effect whose
degrees of freedom count; it is taken out first, by the model in which every batch size has a mean of its own.
"""

from collections.abc import Callable, Sequence

import numpy as np
from pydantic import Field
from scipy import optimize, stats

from study.analysis.stats.laws import LAWS, REFERENCE, Array, Law, profile, solve
from study.analysis.stats.log_model import CONFIDENCE, LogModel
from study.base.strict import Strict

DRAWS, SEED = 1000, 20_240_102


class Bounds(Strict):
    """A 95% confidence set; null is unbounded."""

    low: float | None
    high: float | None


class Fitted(Strict):
    """One candidate law, fitted."""

    coefficients: dict[str, float]
    intervals: dict[str, Bounds] = Field(
        description="Profile intervals: all values with RSS <= RSSmin (1 + F(0.95; 1, n-p) / (n-p)). Empty without a "
        "degree of freedom."
    )
    rss: float = Field(description="Sum of squared relative residuals.")
    aicc: float | None = Field(description="Corrected Akaike criterion; null where it is undefined.")
    weight: float | None = Field(description="Akaike weight among the laws that have a criterion.")
    lack_of_fit_p: float | None = Field(description="p of the F test for lack of fit; null without replicates.")
    left_out_error: float | None = Field(
        description="Root mean square relative error at each batch size, as the law fitted to the others predicts it."
    )
    reported: bool | None = Field(None, description="Power law alone: whether its coefficients are findings.")


class Points(Strict):
    """Distinct batch sizes with the means of their times, blocks taken out, and the weights of these means."""

    sizes: list[float]
    means: list[float]
    weights: list[float]
    pure: float = Field(description="Sum of squares within batch sizes, relative to the mean.")
    pure_degrees: int
    count: int = Field(description="Observations less the degrees of freedom of the blocks.")

    def arrays(self) -> tuple[Array, Array, Array]:
        """Return sizes, weights and means, each of shape (m,)."""
        return np.array(self.sizes), np.array(self.weights), np.array(self.means)


def points_of(sizes: Sequence[float], seconds: Sequence[float], model: LogModel) -> Points:
    """Return the means of the runs at each batch size, less the effects of their blocks in ``model``."""
    x, times = np.asarray(sizes, float), np.asarray(seconds, float) / np.exp(model.block_effects)
    distinct, place, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(place, times) / counts
    # A single time is its own noise: without replicates all points weigh alike.
    scale = means if counts.max() > 1 else np.full(len(means), times.mean())
    pure = float((((times - means[place]) / scale[place]) ** 2).sum())
    return Points(
        sizes=distinct.tolist(),
        means=means.tolist(),
        weights=(counts / scale**2).tolist(),
        pure=pure,
        pure_degrees=len(times) - len(distinct) - model.block_columns,
        count=len(times) - model.block_columns,
    )


def fit_laws(points: Points) -> dict[str, Fitted]:
    """Return every law fitted to the points, with its Akaike weight."""
    fits = {law.name: _fit(law, points) for law in LAWS}
    known = {name: fit.aicc for name, fit in fits.items() if fit.aicc is not None}
    least = min(known.values(), default=0.0)
    total = sum(np.exp(-(value - least) / 2) for value in known.values())
    return {
        name: fit.model_copy(
            update={"weight": float(np.exp(-(known[name] - least) / 2) / total) if name in known else None}
        )
        for name, fit in fits.items()
    }


def _fit(law: Law, points: Points) -> Fitted:
    x, weights, means = points.arrays()
    grid, found, lack = profile(law, x, weights, means)
    best = int(lack.argmin())
    parameters = len(law.coefficients)
    rss = float(lack[best]) + points.pure
    values = dict(zip(law.linear, (found[best] * law.scale(float(grid[best]))).tolist(), strict=True))
    if law.non_linear:
        values[law.non_linear] = float(grid[best])
    return Fitted(
        coefficients=values,
        intervals=_intervals(law, points, grid, lack + points.pure, parameters),
        rss=rss,
        aicc=aicc(rss, points.count, parameters),
        weight=None,
        lack_of_fit_p=_lack_of_fit(float(lack[best]), parameters, points),
        left_out_error=_left_out(law, points),
    )


def predict(law: Law, fit: Fitted, sizes: Array) -> Array:
    """Return the seconds that a fitted law predicts at ``sizes``, of their shape."""
    value = fit.coefficients[law.non_linear] if law.non_linear else 0.0
    scaled = np.array([fit.coefficients[name] for name in law.linear]) / law.scale(value)
    predicted: Array = law.basis(sizes, np.array([value]))[0] @ scaled
    return predicted


class Band(Strict):
    """The band that holds 95% of single runs at an average block, by a parametric bootstrap of the chosen law."""

    x: list[float]
    low: list[float]
    high: list[float]


def bootstrap(law: Law, fit: Fitted, points: Points) -> tuple[Array, Array, float]:
    """Return the law fitted to means that are drawn from itself.

    The three parts are scaled coefficients (d, p), the non-linear one (d,), and the relative noise of a run.
    """
    x, weights, _ = points.arrays()
    rng = np.random.default_rng(SEED)
    noise = float(np.sqrt(fit.rss / (points.count - len(law.coefficients))))
    drawn = predict(law, fit, x) + rng.normal(size=(DRAWS, len(x))) * noise / np.sqrt(weights)
    grid, found, lack = profile(law, x, weights, drawn)
    best = lack.argmin(-1)
    return found[np.arange(DRAWS), best], grid[best], noise


def band_of(law: Law, fit: Fitted, points: Points) -> Band | None:
    """Return the prediction band from the smallest to the largest batch size; None without a degree of freedom."""
    if points.count <= len(law.coefficients):
        return None
    coefficients, values, noise = bootstrap(law, fit, points)
    x = np.geomspace(min(points.sizes), max(points.sizes), 41)
    basis = law.basis(x, np.unique(values))[np.searchsorted(np.unique(values), values)]
    drawn = np.einsum("dxp,dp->dx", basis, coefficients)
    drawn = drawn * (1 + noise * np.random.default_rng(SEED + 1).normal(size=(DRAWS, 1)))
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    return Band(x=x.tolist(), low=low.tolist(), high=high.tolist())


def turn_of(law: Law, fit: Fitted, points: Points) -> Bounds | None:
    """Return an interval of the batch size at which the law rises again, sqrt(A/g), by the same bootstrap.

    It is None where the law never rises, or without a degree of freedom.
    """
    if law.name != "rise" or points.count <= len(law.coefficients) or fit.coefficients["g"] <= 0:
        return None
    coefficients, _, _ = bootstrap(law, fit, points)
    with np.errstate(divide="ignore", invalid="ignore"):
        turns = np.sqrt(coefficients[:, 1] / coefficients[:, 2]) * REFERENCE
    low, high = np.quantile(np.nan_to_num(turns, nan=np.inf), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Bounds(low=float(low), high=float(high) if np.isfinite(high) else None)


def aicc(rss: float, observations: int, parameters: int) -> float | None:
    """Return n ln(RSS/n) + 2k + 2k(k+1)/(n-k-1), where k = parameters + 1, for the variance (Hurvich and Tsai 1989)."""
    k = parameters + 1
    if observations - k - 1 <= 0:
        return None
    safe = max(rss, 1e-12)
    return float(observations * np.log(safe / observations) + 2 * k + 2 * k * (k + 1) / (observations - k - 1))


def _lack_of_fit(lack: float, parameters: int, points: Points) -> float | None:
    """Return p of F = [(SSE - SSPE) / (m - p)] / [SSPE / (n - m)]; None without replicates or a spare batch size."""
    spare = len(points.sizes) - parameters
    if spare <= 0 or points.pure_degrees <= 0 or points.pure <= 0:
        return None
    return float(stats.f.sf(lack / spare / (points.pure / points.pure_degrees), spare, points.pure_degrees))


def _intervals(law: Law, points: Points, grid: Array, rss: Array, parameters: int) -> dict[str, Bounds]:
    degrees = points.count - parameters
    if degrees <= 0:
        return {}
    limit = float(rss.min()) * (1 + float(stats.f.ppf(CONFIDENCE, 1, degrees)) / degrees) * (1 + 1e-12)
    found = {name: _linear_interval(law, points, index, limit) for index, name in enumerate(law.linear)}
    if law.non_linear:
        inside = np.flatnonzero(rss <= limit)
        low, high = int(inside[0]), int(inside[-1])
        found[law.non_linear] = Bounds(
            low=float(grid[low]) if low > 0 else None, high=float(grid[high]) if high < len(grid) - 1 else None
        )
    return found


def _linear_interval(law: Law, points: Points, index: int, limit: float) -> Bounds:
    """Return the values of one coefficient, around the estimate, at which the least squares cross the limit."""
    x, weights, means = points.arrays()
    grid = law.grid(x)
    basis = law.basis(x, grid)
    scales = np.array([law.scale(float(value))[index] for value in grid])
    others = [column for column in range(len(law.linear)) if column != index]
    rest = basis[..., others]
    gram = np.einsum("kmi,m,kmj->kij", rest, weights, rest)

    def squares(value: float) -> float:
        left = means - basis[..., index] * (value / scales)[:, None]
        total = np.einsum("m,km->k", weights, left**2)
        if not others:
            return float(total.min()) + points.pure
        moments = np.einsum("kmi,m,km->ki", rest, weights, left)
        return float(solve(gram, moments, total)[1].min()) + points.pure

    _, found, lack = profile(law, x, weights, means)
    best = int(lack.argmin())
    centre = float(found[best][index] * scales[best])
    low = 0.0 if squares(0.0) <= limit else _cross(squares, limit, 0.0, centre)
    high, reach = centre, max(centre, float(means.max())) or 1.0
    for _ in range(60):
        high = centre + reach
        if squares(high) > limit:
            return Bounds(low=low, high=_cross(squares, limit, high, centre))
        reach *= 4
    return Bounds(low=low, high=None)


def _cross(squares: Callable[[float], float], limit: float, outside: float, inside: float) -> float:
    if squares(inside) >= limit:  # times without noise: the interval is the estimate, but for rounding
        return inside
    return float(optimize.brentq(lambda value: squares(value) - limit, outside, inside, rtol=1e-6))


def _left_out(law: Law, points: Points) -> float | None:
    """Return the root mean square of the relative errors at each batch size, predicted from the others."""
    x, weights, means = points.arrays()
    if len(x) <= len(law.coefficients):
        return None
    errors = []
    for index in range(len(x)):
        keep = np.arange(len(x)) != index
        grid, found, lack = profile(law, x[keep], weights[keep], means[keep])
        best = int(lack.argmin())
        predicted = float(law.basis(x[[index]], grid[[best]])[0, 0] @ found[best])
        errors.append(predicted / means[index] - 1)
    return float(np.sqrt(np.mean(np.square(errors))))
