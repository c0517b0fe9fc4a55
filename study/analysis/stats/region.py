"""Generalised least squares of one law on log seconds, and the set of laws that the times do not exclude.

A law is a shape times a scale. Shapes are compared without the scale, so that a shift of all means, the machine's,
changes nothing. The best z is found at each value of the parameter, and the best parameter on a grid that is refined.

The confidence region are all laws with R <= R_min (1 + F(0.95; 1, n - p) / (n - p)), where R is the sum of squared
residuals of the means over their variance, plus the degrees of freedom of the noise. Every interval is the range of
its quantity over that region, which is the profile interval (Bates and Watts 1988, section 6.1).
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from study.analysis.stats.gate import ROUNDING
from study.analysis.stats.laws import LARGEST, Array, Law, LogMeans, mixture, share

TAIL = 14.0
"""The z beyond the columns' own range from which one column is all but alone."""
STARTS = np.linspace(-1.0, 1.0, 41)
STEPS, STILL = 7, 1e-12
"""The most steps of a descent, and the gain in the sum of squares, of unit variance, below which it ends."""
PART = 16
"""Parts into which a step of the grid is divided, again and again."""
ROUNDS = 5
"""Of that division: what is left of a step is a part in 30,000 around the best, and a part in a million at an end."""
HALVINGS = 32
"""Of the stretch of z, at most 120 long, in which an end of the region lies."""


@dataclass(frozen=True)
class Target:
    """Log means, made ready to be fitted."""

    u: Array
    """Log of b over the reference, (m,)."""
    logs: Array
    whiten: Array
    """(m - 1, m): gives residuals unit variance and no correlation, and forgets a shift of all."""
    weights: Array
    """Of the means in the best estimate of a shift, (m,)."""
    shift: float
    """Standard deviation of that estimate."""
    reference: float
    degrees: float

    def shifts(self, shapes: Array) -> Array:
        """Return the log scales (...) that bring shapes (..., m) closest to the means."""
        found: Array = (self.logs - shapes) @ self.weights
        return found


def target_of(means: LogMeans) -> Target:
    """Return the means with what whitens their residuals."""
    count = len(means.sizes)
    contrasts = linalg.helmert(count)
    covariance = means.covariance + ROUNDING**2 * np.eye(count)
    # Not scipy's solve_triangular: that wakes every thread of BLAS, and on busy cores waits for them a thousand times
    # as long as this takes.
    whiten = np.linalg.solve(np.linalg.cholesky(contrasts @ covariance @ contrasts.T), contrasts)
    # With P = whiten' whiten, 1 - P V = w 1', where w are the weights of the generalised mean.
    weights = (1 - whiten.T @ (whiten @ covariance.sum(1))) / count
    logs = np.log(np.asarray(means.sizes, float))
    return Target(
        u=logs - logs.mean(),
        logs=means.logs,
        whiten=whiten,
        weights=weights,
        shift=float(np.sqrt(max(weights @ covariance @ weights, 0.0))),
        reference=float(np.exp(logs.mean())),
        degrees=max(means.degrees, 0.0),
    )


@dataclass(frozen=True)
class Best:
    """The law of a kind that follows the means most closely."""

    parameter: float
    z: float
    rss: float
    """Sum of squared residuals of the means over their variance."""


def profile(law: Law, target: Target, parameters: Array) -> tuple[Array, Array]:
    """Return the best z (k,) at each parameter (k,), and its sum of squared residuals (k,)."""
    first, second = law.columns(target.u, parameters)
    if not law.mixed:
        z = np.full(len(parameters), -LARGEST)
        return z, _squares(target, first, second, z[:, None])[:, 0]
    starts = _starts(second - first)
    squares = _squares(target, first, second, starts)
    return _descend(target, first, second, starts[np.arange(len(parameters)), squares.argmin(1)])


def _starts(apart: Array) -> Array:
    """Return z (k, j) from which one of them is near the best; ``apart`` (k, m) is what the columns differ by."""
    starts = STARTS * _span(apart)[:, None]
    starts[:, [0, -1]] = -LARGEST, LARGEST
    return starts


def _span(apart: Array) -> Array:
    """Return the z (k,) from which one of the columns is all but alone."""
    span: Array = np.minimum(np.abs(apart).max(1) + TAIL, LARGEST)
    return span


def _residuals(target: Target, first: Array, second: Array, z: Array) -> Array:
    """Return the residuals (..., m - 1) at z (..., 1), of unit variance and without correlation."""
    found: Array = (target.logs - mixture(first, second, z)) @ target.whiten.T
    return found


def _squares(target: Target, first: Array, second: Array, z: Array) -> Array:
    """Return the sums of squared residuals (k, j) at z (k, j)."""
    squares: Array = (_residuals(target, first[:, None], second[:, None], z[..., None]) ** 2).sum(-1)
    return squares


def _descend(target: Target, first: Array, second: Array, z: Array) -> tuple[Array, Array]:
    """Return z (k,) and its squares (k,) after Gauss-Newton steps, each shortened until it gains."""
    z, apart, damping = z[:, None], second - first, np.ones((len(z), 1))
    residuals = _residuals(target, first, second, z)
    squares = (residuals**2).sum(1, keepdims=True)
    for _ in range(STEPS):
        slopes = (share(z + apart) * (np.abs(z) < LARGEST)) @ target.whiten.T
        along = (residuals * slopes).sum(1, keepdims=True)
        step = along / np.maximum((slopes**2).sum(1, keepdims=True), 1e-300)
        tried = np.clip(z + damping * np.clip(step, -2, 2), -LARGEST, LARGEST)
        trial = _residuals(target, first, second, tried)
        found = (trial**2).sum(1, keepdims=True)
        gains = found <= squares
        z, squares, residuals = (
            np.where(gains, tried, z),
            np.where(gains, found, squares),
            np.where(gains, trial, residuals),
        )
        damping = np.where(gains, 1.0, damping / 4)
        if np.abs(damping * step * along).max() < STILL:
            break
    return z[:, 0], squares[:, 0]


def best_of(law: Law, target: Target, rounds: int = ROUNDS) -> Best:
    """Return the best law of this kind; each round makes the grid of its parameter finer around the best value."""
    grid = law.grid(target.u)
    z, squares = profile(law, target, grid)
    for _ in range(rounds if len(grid) > 1 else 0):
        at = int(squares.argmin())
        grid = np.append(np.linspace(grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)], PART + 1), grid[at])
        grid.sort()
        z, squares = profile(law, target, grid)
    at = int(squares.argmin())
    return Best(float(grid[at]), float(z[at]), float(squares[at]))


@dataclass(frozen=True)
class Region:
    """Laws that the times do not exclude: a sample of n shapes that fills the region, each with its best scale."""

    law: Law
    target: Target
    parameters: Array
    z: Array
    low: float | None
    """The smallest parameter in the region; None where the grid ends before the region does."""
    high: float | None
    scale: Array
    """Log scale of each."""
    reach: Array
    """How far the log scale of each may lie from that."""

    @classmethod
    def single(cls, law: Law, target: Target, best: Best) -> "Region":
        """Return the best law alone."""
        parameter, z = np.array([best.parameter]), np.array([best.z])
        shape = mixture(*law.columns(target.u, parameter), z[:, None])
        return cls(law, target, parameter, z, None, None, target.shifts(shape), np.zeros(1))

    def coefficients(self) -> dict[str, Array]:
        """Return each coefficient of the sample, (n,)."""
        scale = np.exp(self.scale)
        return self.law.coefficients(
            scale * share(-self.z), scale * share(self.z), self.parameters, self.target.reference
        )

    def reaches(self, logs: Array) -> tuple[Array, Array]:
        """Return the least and the largest of logs of seconds (n, ...) over the region."""
        reach = self.reach.reshape(-1, *[1] * (logs.ndim - 1))
        return (logs - reach).min(0), (logs + reach).max(0)

    def at(self, sizes: Array) -> tuple[Array, Array]:
        """Return the least and the largest log seconds at ``sizes`` (s,) over the region."""
        u = np.log(sizes / self.target.reference)
        first, second = self.law.columns(u, self.parameters)
        return self.reaches(mixture(first, second, self.z[:, None]) + self.scale[:, None])


def region_of(law: Law, target: Target, best: Best, limit: float) -> Region:
    """Return the laws whose sum of squares is at most ``limit``."""
    low, high = _ends(law, target, best, limit)
    grid = law.grid(target.u)
    first, last = (end if end is not None else grid[place] for end, place in ((low, 0), (high, -1)))
    rows = np.unique(np.append(np.linspace(first, last, 41), best.parameter))
    middle, squares = profile(law, target, rows)
    inside = squares <= limit * (1 + 1e-9) + 1e-12
    rows, middle = rows[inside], middle[inside]
    z = _spans(law, target, rows, middle, limit) if law.mixed else middle[:, None]
    squares = _squares(target, *law.columns(target.u, rows), z)
    kept = squares <= limit * (1 + 1e-9) + 1e-12
    parameters = np.broadcast_to(rows[:, None], z.shape)[kept]
    columns = law.columns(target.u, parameters)
    return Region(
        law=law,
        target=target,
        parameters=parameters,
        z=z[kept],
        low=low,
        high=high,
        scale=target.shifts(mixture(*columns, z[kept][:, None])),
        reach=target.shift * np.sqrt(np.maximum(limit - squares[kept], 0.0)),
    )


def _ends(law: Law, target: Target, best: Best, limit: float) -> tuple[float | None, float | None]:
    """Return the smallest and the largest parameter within the limit; None where the grid ends first."""
    grid = np.unique(np.append(law.grid(target.u), best.parameter))
    if len(grid) == 1:
        return None, None
    _, squares = profile(law, target, grid)
    inside = np.flatnonzero((squares <= limit) | (grid == best.parameter))
    first, last = int(inside[0]), int(inside[-1])
    low = _edge(law, target, grid[first], grid[first - 1], limit) if first > 0 else None
    high = _edge(law, target, grid[last], grid[last + 1], limit) if last < len(grid) - 1 else None
    return low, high


def _edge(law: Law, target: Target, inside: float, outside: float, limit: float) -> float:
    """Return the parameter between two at which the sum of squares crosses the limit."""
    for _ in range(ROUNDS):
        tried = np.linspace(inside, outside, PART + 1)
        beyond = profile(law, target, tried)[1] > limit
        beyond[[0, -1]] = False, True
        place = int(beyond.argmax())
        inside, outside = float(tried[place - 1]), float(tried[place])
    return inside


def _spans(law: Law, target: Target, rows: Array, middle: Array, limit: float) -> Array:
    """Return z (r, 35) from end to end of the region at each parameter (r,); ``middle`` is the best one."""
    first, second = law.columns(target.u, rows)
    span, sides = _span(second - first)[:, None], np.array([-1.0, 1.0])
    alone = np.broadcast_to(sides * LARGEST, (len(rows), 2))
    whole = _squares(target, first, second, alone) <= limit
    inside, outside = np.repeat(middle[:, None], 2, axis=1), sides * np.maximum(span, middle[:, None] * sides)
    for _ in range(HALVINGS):
        half = (inside + outside) / 2
        within = _squares(target, first, second, half) <= limit
        inside, outside = np.where(within, half, inside), np.where(within, outside, half)
    low, high = np.where(whole, alone, inside).T[..., None]
    between = np.maximum(low, -span) + (np.minimum(high, span) - np.maximum(low, -span)) * np.linspace(0, 1, 33)
    return np.hstack([low, between, high])
