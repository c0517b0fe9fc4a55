"""The laws of the time T at batch size b, in seconds:

    T(b) = stays + shrinks / b^exponent + grows b

Each law has some of these parts, none below zero. It is a scale times a mixture of shares:

    (1 - share) + share ((1 - rising) (mean / b)^exponent + rising b / mean)

with the geometric mean of the sizes, so that shares mean the same whatever b is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import geometric_mean
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from study.analysis.stats.starts import ROUNDING

Array = NDArray[np.float64]
CLOSE = 2.0
"""Laws whose criteria differ by less cannot be told apart (Burnham and Anderson 2002)."""
EXPONENTS: Array = np.geomspace(0.02, 4.0, 61)
"""The exponents from which a search begins, of which one is near the best."""
SHARES: Array = np.hstack([0.0, expit(np.linspace(-25.0, 25.0, 59)), 1.0])
"""The shares from which a search begins. At both ends a part of the law is missing."""


@dataclass(frozen=True)
class Law:
    """One kind of law, of which a share, one parameter beside it and a scale make each."""

    name: str
    names: Mapping[str, str]
    """The name of each coefficient, by the part of T(b) that it sets."""
    exponent: float = 1.0
    """That of what shrinks, where it is no coefficient."""

    @property
    def shares(self) -> Array:
        """The shares of what is not constant to begin from."""
        return SHARES if "shrinks" in self.names else SHARES[:1]

    @property
    def beside(self) -> Array:
        """The values of the parameter to begin from: the exponent, or the rising share."""
        if "exponent" in self.names:
            return EXPONENTS
        return SHARES if "grows" in self.names else SHARES[:1]

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
