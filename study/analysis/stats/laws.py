"""The candidate laws of T(b): a positive scale times a mixture of two columns, with one parameter of shape at most.

    log T(b) = log scale + log((1 - share) first(b) + share second(b)),    share = 1 / (1 + exp(-z))

No coefficient is below zero. Sizes enter as b over their geometric mean, so that z and the parameter are of one size
whatever b is. All is computed on logarithms, which neither overflow nor vanish.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]
Columns = tuple[Array, Array]
ALPHAS = np.geomspace(0.02, 4.0, 97)
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
    """One candidate law."""

    name: str
    parameters: int
    columns: Callable[[Array, Array], Columns]
    """Logs of the two columns, shape (k, m), at u = log(b / reference) (m,) for each value (k,) of the parameter."""
    coefficients: Callable[[Array, Array, Array, float], dict[str, Array]]
    """The coefficients in seconds, of the scales of the two columns, the parameter, and the reference."""
    seconds: Callable[[Mapping[str, float], Array], Array]
    """T(b), of the coefficients."""
    grid: Callable[[Array], Array] = lambda u: np.zeros(1)
    """Values of the parameter to begin from, for the u of the data; one where there is none."""
    shape: str | None = None
    """The coefficient that depends on the parameter alone."""

    @property
    def mixed(self) -> bool:
        """Whether the second column is used."""
        return self.parameters > 1


LAWS = (
    Law(
        "constant",
        1,
        columns=lambda u, _: (0 * u[None], 0 * u[None]),
        coefficients=lambda first, second, _, reference: {"T0": first},
        seconds=lambda c, b: c["T0"] + 0 * b,
    ),
    Law(
        "inverse",
        2,
        columns=lambda u, _: (0 * u[None], -u[None]),
        coefficients=lambda first, second, _, reference: {"T0": first, "A": second * reference},
        seconds=lambda c, b: c["T0"] + c["A"] / b,
    ),
    Law(
        "power",
        3,
        columns=lambda u, alpha: (0 * u * alpha[:, None], -u * alpha[:, None]),
        coefficients=lambda first, second, alpha, reference: {
            "Tmin": first,
            "c": second * reference**alpha,
            "alpha": alpha,
        },
        seconds=lambda c, b: c["Tmin"] + c["c"] * b ** -c["alpha"],
        grid=lambda u: ALPHAS,
        shape="alpha",
    ),
    Law(
        "rise",
        3,
        columns=lambda u, z: (0 * u * z[:, None], mixture(-u, u, z[:, None])),
        coefficients=lambda first, second, z, reference: {
            "T0": first,
            "A": second * share(-z) * reference,
            "g": second * share(z) / reference,
        },
        seconds=lambda c, b: c["T0"] + c["A"] / b + c["g"] * b,
        grid=lambda u: np.linspace(-LARGEST, LARGEST, 121),  # z of the part that rises, in what is not constant
    ),
    Law(
        "hinge",
        3,
        columns=lambda u, bend: (np.maximum(bend[:, None] - u, 0.0), -u + 0 * bend[:, None]),
        coefficients=lambda first, second, bend, reference: {
            "A": (first * np.exp(bend) + second) * reference,
            "T1": first,
            "B": second * reference,
            "bend": np.exp(bend) * reference,
        },
        seconds=lambda c, b: np.maximum(c["A"] / b, c["T1"] + c["B"] / b),
        grid=lambda u: np.linspace(u.min(), u.max(), 65),  # where it may bend: at the largest size it is `inverse`
        shape="bend",
    ),
)


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
    """Covariance of these means (m, m) in (log s)^2, up to an addition common to all entries: a shift of all means,
    which is the machine's."""
    degrees: float
    """Degrees of freedom of the estimate of the noise. Where they are 0 or less there are no replicates: the covariance
    is then the identity, and its scale is unknown."""
    counts: list[int]
    """Clean runs at each size."""
