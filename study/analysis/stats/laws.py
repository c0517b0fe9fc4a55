"""The laws of the time T at batch size b, in seconds:

    T(b) = stays + shrinks / b^exponent + grows b

Each law has some of these parts, none below zero. It is a scale times a mixture of shares:

    (1 - share) + share ((1 - rising) (mean / b)^exponent + rising b / mean)

with the geometric mean of the sizes, so that shares mean the same whatever b is.

They are fitted to mean log seconds by generalised least squares, with an interval for each
coefficient. Laws of one kind differ in a share, a parameter beside it, and a scale, whose best
value has a closed form. A grid of the first two is narrowed to the best law, and another one to the
laws whose sum of squares is within a limit. Every interval is the range of its coefficient over
these, at any scale that is within the limit: the profile interval (Bates and Watts 1988, section
6.1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import geometric_mean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field
from scipy import special

from study.analysis.stats.log_model import CONFIDENCE
from study.analysis.stats.mixed_model import Array, Flags
from study.analysis.stats.noise import ROUNDING
from study.analysis.stats.optimum import label
from study.base.strict import Strict

CLOSE = 2.0
"""Laws whose criteria differ by less cannot be told apart (Burnham and Anderson 2002)."""
EXPONENTS: Array = np.geomspace(0.02, 4.0, 61)
"""The exponents from which a search begins, of which one is near the best."""
SHARES: Array = np.hstack([0.0, special.expit(np.linspace(-25.0, 25.0, 59)), 1.0])
"""The shares from which a search begins. At both ends a part of the law is missing."""


class Law(NamedTuple):
    """One kind of law, of which a share, one parameter beside it and a scale make each."""

    name: str
    names: Mapping[str, str]
    """The name of each coefficient, by the part of T(b) that it sets."""
    exponent: float = 1.0
    """That of what shrinks, where it is no coefficient."""

    def coefficients(
        self, mean: float, beside: Array, shares: Array, scale: Array | float = 1.0
    ) -> dict[str, Array]:
        """Return the coefficients of such laws at sizes with this geometric mean; the scale is in
        seconds."""
        exponent = beside if "exponent" in self.names else self.exponent
        rising = beside if "grows" in self.names else 0.0
        parts: dict[str, Any] = {
            "stays": scale * (1 - shares),
            "shrinks": scale * shares * (1 - rising) * mean**exponent,
            "exponent": exponent,
            "grows": scale * shares * rising / mean,
        }
        return {name: parts[part] for part, name in self.names.items()}

    def parts(self, coefficients: Mapping[str, Any], b: ArrayLike) -> dict[str, Array]:
        """Return the seconds of each part of T(b); coefficients are numbers or arrays."""
        values = {part: coefficients[name] for part, name in self.names.items()}
        exponent = values.pop("exponent", self.exponent)
        powers = {"stays": 0.0, "shrinks": -exponent, "grows": 1.0}
        sizes = np.asarray(b, float)
        return {part: value * sizes ** powers[part] for part, value in values.items()}

    def seconds(self, coefficients: Mapping[str, Any], b: ArrayLike) -> Array:
        """Return T(b); coefficients are numbers or arrays."""
        return sum(self.parts(coefficients, b).values(), np.zeros(1))


LAWS = (
    Law("constant", {"stays": "T0"}),
    Law("step", {"stays": "T0", "shrinks": "A"}),
    Law("root", {"stays": "T0", "shrinks": "A"}, 0.5),
    Law("power", {"stays": "Tmin", "shrinks": "c", "exponent": "alpha"}),
    Law("rise", {"stays": "T0", "shrinks": "A", "grows": "g"}),
)
"""With the exponent 1, as in ``step``, each step has a cost of its own, and each image another."""
RISING_ROOT = Law("rising_root", {"stays": "T0", "shrinks": "A", "grows": "g"}, 0.5)
"""A root with a rising arm: where it describes the times as well, an exponent of the power law is
none of theirs."""


def by_name(name: str) -> Law:
    """Return the law of that name."""
    return next(law for law in LAWS if law.name == name)


@dataclass(frozen=True)
class LogMeans:
    """Means of log seconds at m distinct sizes, the smallest first."""

    sizes: list[float]
    logs: Array
    """Mean log seconds, shape (m,)."""
    covariance: Array
    """Covariance of these means (m, m) in (log s)^2."""
    degrees: float
    """Degrees of freedom of the estimate of the noise. Where they are 0 or less there are no
    replicates: the covariance is then the identity, and its scale is unknown."""

    @cached_property
    def mean(self) -> float:
        """The geometric mean of the sizes."""
        return geometric_mean(self.sizes)

    @cached_property
    def precision(self) -> NDArray[np.floating[Any]]:
        """The inverse of the covariance, with the rounding of a clock (m, m)."""
        return np.linalg.inv(self.covariance + ROUNDING**2 * np.eye(len(self.sizes)))


ROUNDS = 6
"""Grids, each narrowed from the one before: the last step is less than a millionth of the first."""
SLACK = 1e-9
"""Relative difference of two sums of squares that may be rounding."""
POINTS = 61
"""Sizes at which a band is given."""


class Shapes(NamedTuple):
    """Laws of one kind, each with the scale that follows the means most closely."""

    beside: Array
    shares: Array
    scales: Array
    """Log seconds."""
    squares: Array
    """Sums of squared residuals of the means over their variance."""


def shapes_within(law: Law, means: LogMeans, limit: float = 0.0) -> Shapes:
    """Return laws (k,) that fill the region whose sums of squares are at most ``limit``; with 0
    those that are the best but for rounding, a constant first."""
    # To begin from: the shares of what is not constant, and the exponent or the rising share.
    first = SHARES if "shrinks" in law.names else SHARES[:1]
    beside = SHARES if "grows" in law.names else SHARES[:1]
    beside = EXPONENTS if "exponent" in law.names else beside
    for _ in range(ROUNDS):
        # At each value: those within the limit and one more at each end, or the best and its
        # neighbours.
        shares = np.tile(first, (len(beside), 1))
        for _ in range(ROUNDS):
            parts = law.coefficients(means.mean, beside[:, None, None], shares[..., None])
            ratios = means.logs - np.log(law.seconds(parts, means.sizes))
            scales = ratios @ means.precision.sum(0) / means.precision.sum()
            residuals = ratios - scales[..., None]
            squares = np.einsum("...m,...m", residuals @ means.precision, residuals)
            found = Shapes(beside[:, None], shares, scales, squares)
            shares = _narrowed(shares, _within(squares, limit))
        beside = _narrowed(beside, _within(found.squares.min(-1), limit))
    inside = _within(found.squares, limit, None)
    return Shapes(*(np.broadcast_to(part, inside.shape)[inside] for part in found))


def _within(squares: Array, limit: float, axis: int | None = -1) -> Flags:
    """Return which sums of squares are within the limit, or the least along the axis."""
    most: Array = np.maximum(squares.min(axis, keepdims=True), limit)
    return squares <= most * (1 + SLACK) + 1e-12


def _narrowed(values: Array, kept: Flags) -> Array:
    """Return as many values on the last axis, from the one before those that are kept to the one
    after them.

    They lie as points of a circle seen from its side, dense at both ends: there the limit leaves
    the scale the least room, and a coefficient changes fastest.
    """
    last = values.shape[-1] - 1
    low = np.maximum(kept.argmax(-1) - 1, 0)
    high = last - np.maximum(kept[..., ::-1].argmax(-1) - 1, 0)
    ends = np.take_along_axis(values, np.stack([low, high], -1), -1)
    part = (1 - np.cos(np.linspace(0, np.pi, last + 1))) / 2
    return ends[..., :1] * (1 - part) + ends[..., 1:] * part


class Bounds(Strict):
    """A 95% confidence set; null is unbounded."""

    low: float | None
    high: float | None

    def hold(self, value: float) -> bool:
        """Return whether a value above 0 is in it."""
        return (self.low or 0.0) <= value <= (self.high or value)


class Band(Strict):
    """Seconds of a law at one size, and their range over the laws of its kind that the times do not
    exclude: those that give the coefficients their intervals."""

    x: float
    value: float
    low: float
    high: float


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
    lack_of_fit_p: float | None
    """p of the F test for lack of fit; null without replicates."""
    reported: bool | None = None
    """Power law alone: whether its coefficients are findings."""
    misses: dict[str, float] = {}
    """Fitted over measured geometric mean, less 1, by size."""
    band: list[Band] = Field([], exclude=True)
    """At ``POINTS`` sizes, evenly spaced in log from the smallest to the largest. Empty where the
    intervals are, and not written: a curve has that of one law."""

    def beats(self, other: "Fitted") -> bool:
        """Return whether its criterion is smaller by more than what cannot be told apart."""
        return self.aicc is not None and other.aicc is not None and self.aicc + CLOSE < other.aicc


def fit_laws(means: LogMeans, laws: Sequence[Law] = LAWS) -> dict[str, Fitted]:
    """Return every law fitted to the means."""
    return {law.name: _fit(law, means) for law in laws}


def _fit(law: Law, means: LogMeans) -> Fitted:
    sizes, replicated = len(means.sizes), max(means.degrees, 0.0)
    lack_of_fit_df = sizes - len(law.names)
    shapes = shapes_within(law, means)
    squares = float(shapes.squares[0])
    best = law.coefficients(means.mean, shapes.beside, shapes.shares, np.exp(shapes.scales))
    coefficients = {name: float(values[0]) for name, values in best.items()}
    rss, degrees = squares + replicated, lack_of_fit_df + replicated
    intervals = {}
    band = []
    if degrees > 0:
        limit = squares + rss * float(special.fdtri(1, degrees, CONFIDENCE)) / degrees
        shapes = shapes_within(law, means, limit)
        reach = np.sqrt(np.maximum(limit - shapes.squares, 0.0) / means.precision.sum())
        scales = np.exp([shapes.scales - reach, shapes.scales + reach])
        region = law.coefficients(means.mean, shapes.beside, shapes.shares, scales)
        intervals = {name: _range(name, values) for name, values in region.items()}
        x = np.geomspace(means.sizes[0], means.sizes[-1], POINTS)
        least, most = law.seconds({name: part[..., None] for name, part in region.items()}, x)
        rows = np.column_stack([x, law.seconds(coefficients, x), least.min(0), most.max(0)])
        band = [Band(x=x, value=value, low=low, high=high) for x, value, low, high in rows.tolist()]
    misses = law.seconds(coefficients, means.sizes) / np.exp(means.logs) - 1
    return Fitted(
        coefficients=coefficients,
        intervals=intervals,
        rss=rss,
        aicc=aicc(rss, sizes + replicated, len(law.names)) if lack_of_fit_df > 0 else None,
        lack_of_fit_p=float(special.fdtrc(lack_of_fit_df, replicated, squares / lack_of_fit_df))
        if min(lack_of_fit_df, replicated) > 0
        else None,
        misses=dict(zip(map(label, means.sizes), misses.tolist(), strict=True)),
        band=band,
    )


def _range(name: str, values: Array) -> Bounds:
    """Return the range of a coefficient. An end of alpha is None where its grid ends before the
    laws within the limit do."""
    ends = [float(values.min()), float(values.max())]
    open_at = EXPONENTS[[0, -1]].tolist() if name == "alpha" else []
    low, high = (None if end in open_at else end for end in ends)
    return Bounds(low=low, high=high)


def aicc(rss: float, observations: float, parameters: int) -> float | None:
    """Return n ln(RSS/n) + 2k + 2k(k+1)/(n-k-1), where k = parameters + 1, for the variance
    (Hurvich and Tsai 1989)."""
    k = parameters + 1
    denominator = observations - k - 1
    if denominator <= 0:
        return None
    fit = observations * np.log(max(rss, 1e-12) / observations)
    return float(fit + 2 * k * (1 + (k + 1) / denominator))
