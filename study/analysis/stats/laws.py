"""The laws of T(b): a positive scale times a mixture of a constant and one column, whose shape one
parameter sets.

    log T(b) = log scale + log((1 - share) + share column(b)),    share = 1 / (1 + exp(-z))

No coefficient is below zero. Sizes enter as u = log(b / their geometric mean), so that z and the
parameter are of one size whatever b is. All is computed on logarithms, which neither overflow nor
vanish.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]
LARGEST = 60.0
"""The z from which a share is 0 or 1: e^-60 of a time cannot be seen."""
CLOSE = 2.0
"""Laws whose criteria differ by less cannot be told apart (Burnham and Anderson 2002)."""


def share(z: Array) -> Array:
    """Return 1 / (1 + exp(-z)), which is 0 or 1 at ``LARGEST``."""
    found: Array = np.where(np.abs(z) < LARGEST, expit(z), z > 0)
    return found


def mixture(first: Array, second: Array, z: Array) -> Array:
    """Return log((1 - share) e^first + share e^second)."""
    found: Array = np.logaddexp(first, z + second) - np.logaddexp(0.0, z)
    return found


@dataclass(frozen=True)
class Law:
    """One law."""

    name: str
    parameters: int
    column: Callable[[Array, Array], Array]
    """Log of the column, at u for the parameter; the two are broadcast."""
    coefficients: Callable[[Array, Array, Array, float], dict[str, Array]]
    """The coefficients, of the seconds of the constant and of the column, the parameter, and the
    mean size."""
    seconds: Callable[[Mapping[str, float], Array], Array]
    """T(b), of the coefficients."""
    grid: Array
    """Values of the parameter to begin from; one where there is none."""
    shape: str | None = None
    """The coefficient that is the parameter."""


# z of the part that rises, in what is not constant
LAWS = (
    Law(
        "constant",
        1,
        column=lambda u, none: 0 * u * none,
        coefficients=lambda constant, column, _, mean: {"T0": constant + column},
        seconds=lambda c, b: c["T0"] + 0 * b,
        grid=np.zeros(1),
    ),
    Law(
        "power",
        3,
        column=lambda u, alpha: -alpha * u,
        coefficients=lambda constant, column, alpha, mean: {
            "Tmin": constant,
            "c": column * mean**alpha,
            "alpha": alpha,
        },
        seconds=lambda c, b: c["Tmin"] + c["c"] * b ** -c["alpha"],
        grid=np.geomspace(0.02, 4.0, 97),
        shape="alpha",
    ),
    Law(
        "rise",
        3,
        column=lambda u, z: mixture(-u, u, z),
        coefficients=lambda constant, column, z, mean: {
            "T0": constant,
            "A": column * share(-z) * mean,
            "g": column * share(z) / mean,
        },
        seconds=lambda c, b: c["T0"] + c["A"] / b + c["g"] * b,
        grid=np.linspace(-LARGEST, LARGEST, 121),
    ),
)

RISING_ROOT = replace(
    LAWS[-1],
    name="rising_root",
    column=lambda u, z: mixture(-u / 2, u, z),
    coefficients=lambda constant, column, z, mean: {
        "T0": constant,
        "A": column * share(-z) * math.sqrt(mean),
        "g": column * share(z) / mean,
    },
    seconds=lambda c, b: c["T0"] + c["A"] / np.sqrt(b) + c["g"] * b,
)
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
