"""The laws of T(b) fitted to mean log seconds by generalised least squares, with an interval for
each coefficient.

A law is a scale times a shape, which z and a parameter set. The best scale of a shape has a closed
form; the best z is searched at each value of the parameter, and the best parameter on a grid that
is refined.

The confidence region are all laws whose sum of squares is within a limit. Every interval is the
range of its coefficient over that region, which is the profile interval (Bates and Watts 1988,
section 6.1).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy import special

from study.analysis.stats.laws import LARGEST, LAWS, Array, Law, LogMeans, mixture, share
from study.analysis.stats.log_model import CONFIDENCE
from study.analysis.stats.starts import ROUNDING
from study.base.strict import Strict

STARTS = np.linspace(-LARGEST, LARGEST, 81)
"""Values of z of which one is near the best."""
PART = 16
"""Parts into which two steps of a grid are divided, again and again."""
ROUNDS, ROUNDS_OF_Z = 5, 7
"""Of that division: what is left is a part in 30,000 of a step, and one in two million."""
HALVINGS, HALVINGS_OF_Z = 24, 50
"""Of the stretch in which an end of the region lies. Near an end of z a coefficient moves with the
root of what is left, so that half of the digits are lost."""
SLACK = 1e-9
"""Relative difference of two sums of squares that may be rounding."""
ROWS, COLUMNS, SEEN = 41, 81, 25.0
"""Values of the parameter, and of z at each, of which a region's sample is made; beyond that z
nothing changes but at the very end."""


@dataclass(frozen=True)
class Target:
    """Log means, made ready to be fitted."""

    u: Array
    """Log of b over the mean size, (m,)."""
    logs: Array
    whiten: Array
    """(m, m): gives residuals unit variance and no correlation, and takes the best scale out."""
    weights: Array
    """Of the means in the best log scale, (m,)."""
    error: float
    """Standard error of that scale."""
    mean: float
    """Geometric mean of the sizes."""


def target_of(means: LogMeans) -> Target:
    """Return the means with what whitens their residuals."""
    root = np.linalg.inv(
        np.linalg.cholesky(means.covariance + ROUNDING**2 * np.eye(len(means.sizes)))
    )
    error = 1 / float(np.linalg.norm(root.sum(1)))
    scale = error * root.sum(1)
    logs = np.log(np.asarray(means.sizes, float))
    return Target(
        u=logs - logs.mean(),
        logs=means.logs,
        whiten=root - np.outer(scale, scale @ root),
        weights=error * scale @ root,
        error=error,
        mean=float(np.exp(logs.mean())),
    )


@dataclass(frozen=True)
class Shapes:
    """Laws of one kind, each with its best scale."""

    law: Law
    target: Target
    parameters: Array
    z: Array

    def logs(self) -> Array:
        """Return the log of each shape at each size, with m as the last axis."""
        column = self.law.column(self.target.u, self.parameters[..., None])
        return mixture(np.zeros_like(column), column, self.z[..., None])

    def squares(self) -> Array:
        """Return the sums of squared residuals of the means over their variance."""
        # one product, not one a row
        residuals = (self.target.logs - self.logs()).reshape(-1, len(self.target.u))
        found: Array = ((residuals @ self.target.whiten.T) ** 2).sum(-1).reshape(self.z.shape)
        return found

    def coefficients(self, shifts: Array) -> dict[str, Array]:
        """Return each coefficient, where the log scale is ``shifts`` off its best."""
        seconds = np.exp((self.target.logs - self.logs()) @ self.target.weights + shifts)
        return self.law.coefficients(
            seconds * share(-self.z), seconds * share(self.z), self.parameters, self.target.mean
        )


def profile(law: Law, target: Target, parameters: Array) -> tuple[Array, Array]:
    """Return the best z (k,) at each parameter (k,), and its sum of squared residuals (k,)."""
    rows, every = np.arange(len(parameters)), parameters[:, None]
    z = np.tile(STARTS, (len(parameters), 1))
    for left in range(ROUNDS_OF_Z, -1, -1):
        squares = Shapes(law, target, np.broadcast_to(every, z.shape), z).squares()
        at = squares.argmin(1)
        if left:
            low, high = z[rows, np.maximum(at - 1, 0)], z[rows, np.minimum(at + 1, z.shape[1] - 1)]
            z = np.linspace(low, high, PART + 1, axis=1)
    return z[rows, at], squares[rows, at]


def best_of(law: Law, target: Target) -> tuple[Shapes, float]:
    """Return the law of this kind that follows the means most closely, and its sum of squares."""
    grid = law.grid
    z, squares = profile(law, target, grid)
    for _ in range(ROUNDS if len(grid) > 1 else 0):
        at = int(squares.argmin())
        grid = np.linspace(grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)], PART + 1)
        z, squares = profile(law, target, grid)
    at = int(squares.argmin())
    best, least = Shapes(law, target, grid[[at]], z[[at]]), float(squares[at])
    # Where a constant follows the means as closely, any parameter does, and rounding would choose
    # one.
    flat = Shapes(law, target, law.grid[:1], np.array([-LARGEST]))
    closest = float(flat.squares()[0])
    return (flat, closest) if closest <= least * (1 + SLACK) + 1e-12 else (best, least)


def ranges(best: Shapes, limit: float) -> dict[str, tuple[float | None, float | None]]:
    """Return the range of each coefficient over the laws whose sum of squares is at most ``limit``.

    An end of the parameter is None where its grid ends before the region does.
    """
    law, target, limit = best.law, best.target, limit * (1 + SLACK) + 1e-12
    low, high, opens = _ends(best, limit)
    rows = np.unique(np.append(np.linspace(low, high, ROWS), best.parameters))
    middle, squares = profile(law, target, rows)
    # The ends of the region belong to it, on which side of the limit rounding ever puts them.
    edge = limit * (1 + SLACK)
    rows, middle = rows[squares <= edge], middle[squares <= edge]
    z = _spans(law, target, rows, middle, limit)
    shapes = Shapes(law, target, np.broadcast_to(rows[:, None], z.shape), z)
    spare = limit - shapes.squares()
    reach = target.error * np.sqrt(np.maximum(spare, 0.0))
    least, most = shapes.coefficients(-reach), shapes.coefficients(reach)
    inside = spare >= limit - edge
    found: dict[str, tuple[float | None, float | None]] = {
        name: (float(least[name][inside].min()), float(most[name][inside].max())) for name in least
    }
    if law.shape:
        found[law.shape] = (None if opens[0] else low, None if opens[1] else high)
    return found


def _ends(best: Shapes, limit: float) -> tuple[float, float, tuple[bool, bool]]:
    """Return the smallest and the largest parameter within the limit, and which of them is an end
    of the grid."""
    law, target = best.law, best.target
    grid = np.unique(np.append(law.grid, best.parameters))
    within = np.flatnonzero((profile(law, target, grid)[1] <= limit) | (grid == best.parameters))
    first, last = int(within[0]), int(within[-1])
    inside, outside = grid[[first, last]], grid[[max(first - 1, 0), min(last + 1, len(grid) - 1)]]
    low, high = _edges(
        lambda tried: profile(law, target, tried)[1] <= limit, inside, outside, HALVINGS
    ).tolist()
    return low, high, (first == 0, last == len(grid) - 1)


def _edges(
    within: Callable[[Array], NDArray[np.bool_]], inside: Array, outside: Array, halvings: int
) -> Array:
    for _ in range(halvings):
        half = (inside + outside) / 2
        kept = within(half)
        inside, outside = np.where(kept, half, inside), np.where(kept, outside, half)
    return inside


def _spans(law: Law, target: Target, rows: Array, middle: Array, limit: float) -> Array:
    """Return z (r, COLUMNS + 2) from end to end of the region at each parameter (r,); ``middle`` is
    the best one."""

    def within(z: Array) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = (
            Shapes(law, target, np.broadcast_to(rows[:, None], z.shape), z).squares() <= limit
        )
        return found

    outside = np.tile([-LARGEST, LARGEST], (len(rows), 1))
    edges = _edges(within, np.repeat(middle[:, None], 2, axis=1), outside, HALVINGS_OF_Z)
    ends = np.where(within(outside), outside, edges)
    low, high = np.clip(ends, -SEEN, SEEN).T
    return np.hstack([ends, np.linspace(low, high, COLUMNS, axis=1)])


class Bounds(Strict):
    """A 95% confidence set; null is unbounded."""

    low: float | None
    high: float | None


class Fitted(Strict):
    """One law, fitted."""

    coefficients: dict[str, float]
    intervals: dict[str, Bounds]
    """Profile intervals: all values with RSS <= RSSmin (1 + F(0.95; 1, n-p) / (n-p)). Empty without
    a degree of freedom."""
    rss: float
    """Squared residuals of the mean log seconds over their variance, plus the noise's degrees of
    freedom; without replicates in (log s)^2."""
    aicc: float | None
    """Corrected Akaike criterion; null where it is undefined, and for a law with a coefficient for
    each size, which follows any times."""
    lack_of_fit_p: float | None = Field(
        description="p of the F test for lack of fit; null without replicates."
    )
    reported: bool | None = Field(
        None, description="Power law alone: whether its coefficients are findings."
    )


def fit_laws(means: LogMeans, laws: Sequence[Law] = LAWS) -> dict[str, Fitted]:
    """Return every law fitted to the means."""
    return {law.name: _fit(law, means) for law in laws}


def _fit(law: Law, means: LogMeans) -> Fitted:
    best, squares = best_of(law, target_of(means))
    sizes, replicated = len(means.sizes), max(means.degrees, 0.0)
    spare = sizes - law.parameters
    rss, degrees = squares + replicated, spare + replicated
    intervals = {}
    if degrees > 0:
        limit = squares + rss * float(special.fdtri(1, degrees, CONFIDENCE)) / degrees
        intervals = {
            name: Bounds(low=low, high=high) for name, (low, high) in ranges(best, limit).items()
        }
    return Fitted(
        coefficients={
            name: float(value[0]) for name, value in best.coefficients(np.zeros(1)).items()
        },
        intervals=intervals,
        rss=rss,
        aicc=aicc(rss, sizes + replicated, law.parameters) if spare > 0 else None,
        lack_of_fit_p=float(special.fdtrc(spare, replicated, squares / spare))
        if min(spare, replicated) > 0
        else None,
    )


def predict(law: Law, fit: Fitted, sizes: Array) -> Array:
    """Return the seconds that a fitted law predicts at ``sizes``, of their shape."""
    return law.seconds(fit.coefficients, np.asarray(sizes, float))


def aicc(rss: float, observations: float, parameters: int) -> float | None:
    """Return n ln(RSS/n) + 2k + 2k(k+1)/(n-k-1), where k = parameters + 1, for the variance
    (Hurvich and Tsai 1989)."""
    k = parameters + 1
    if observations - k - 1 <= 0:
        return None
    safe = max(rss, 1e-12)
    return float(
        observations * np.log(safe / observations)
        + 2 * k
        + 2 * k * (k + 1) / (observations - k - 1)
    )
