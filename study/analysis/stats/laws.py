"""The candidate laws of T(b), fitted by weighted least squares with no coefficient below zero.

Every law is linear in its coefficients once its one non-linear parameter, if it has one, is fixed; that parameter is
profiled on a grid. Runs at one batch size enter by their mean: no law can tell them apart, so their spread (the pure
error) is the same for all laws. Ten thousand rows are therefore fitted as quickly as ten.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ALPHAS = np.round(np.concatenate([np.arange(0.02, 1.0, 0.005), np.arange(1.0, 4.0001, 0.01)]), 4)
REFERENCE = 64.0
"""Batch size by which the basis is scaled, so that its columns are of one size."""
CLOSE = 2.0
"""Laws whose criteria differ by less cannot be told apart (Burnham and Anderson 2002)."""


@dataclass(frozen=True)
class Law:
    """One candidate: ``basis(x, grid)`` has a column for each of ``linear``, for each value of the grid."""

    name: str
    linear: tuple[str, ...]
    basis: Callable[[Array, Array], Array]
    grid: Callable[[Array], Array]
    non_linear: str | None = None

    @property
    def coefficients(self) -> tuple[str, ...]:
        """The names of the coefficients, the non-linear one last."""
        return (*self.linear, self.non_linear) if self.non_linear else self.linear

    def scale(self, value: float) -> Array:
        """The factor of each column, shape (linear,), that turns a scaled coefficient into the printed one."""
        return SCALES[self.name](value)


def _none(x: Array) -> Array:
    return np.zeros(1)


def _columns(*columns: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """Return a basis of shape (grid, x, column); each column is a function of b / 64 and the grid's value."""
    return lambda x, grid: np.stack(
        [np.broadcast_to(column(x[None, :] / REFERENCE, grid[:, None]), (len(grid), len(x))) for column in columns], -1
    )


def _breaks(x: Array) -> Array:
    """Return the batch sizes at which the hinge may bend: a logarithmic grid between the smallest and the largest."""
    low, high = np.log(x.min()), np.log(x.max())
    return np.exp(np.linspace(low, high, 129)[1:-1])


LAWS = (
    Law("constant", ("T0",), _columns(lambda x, _: x**0), _none),
    Law(
        "inverse",
        ("T0", "A"),
        _columns(lambda x, _: x**0, lambda x, _: 1 / x),
        _none,
    ),
    Law(
        "power",
        ("Tmin", "c"),
        _columns(lambda x, _: x**0, lambda x, alpha: x**-alpha),
        lambda x: ALPHAS,
        "alpha",
    ),
    Law(
        "rise",
        ("T0", "A", "g"),
        _columns(lambda x, _: x**0, lambda x, _: 1 / x, lambda x, _: x),
        _none,
    ),
    Law(
        "hinge",
        ("T1", "B"),
        _columns(lambda x, bend: np.maximum(bend / REFERENCE / x, 1.0), lambda x, _: 1 / x),
        _breaks,
        "bend",
    ),
)
SCALES: dict[str, Callable[[float], Array]] = {
    "constant": lambda _: np.ones(1),
    "inverse": lambda _: np.array([1.0, REFERENCE]),
    "power": lambda alpha: np.array([1.0, REFERENCE**alpha]),
    "rise": lambda _: np.array([1.0, REFERENCE, 1 / REFERENCE]),
    "hinge": lambda _: np.array([1.0, REFERENCE]),
}


def solve(gram: Array, moments: Array, squares: Array) -> tuple[Array, Array]:
    """Return coefficients (..., p), none of them negative, and weighted residual squares (...) of many small problems.

    ``gram`` is X'WX (..., p, p), ``moments`` X'Wy (..., p), ``squares`` y'Wy (...). Each subset of columns is solved,
    and the best without a negative coefficient is kept. That is exact, as scipy's ``nnls`` is, which takes one problem
    at a time.
    """
    shape = np.broadcast_shapes(gram.shape[:-2], moments.shape[:-1], squares.shape)
    p = moments.shape[-1]
    best = np.zeros((*shape, p))
    rss = np.broadcast_to(squares, shape).astype(float).copy()
    for count in range(1, p + 1):
        for subset in combinations(range(p), count):
            chosen = np.array(subset)
            inner = gram[..., chosen[:, None], chosen]
            right = np.broadcast_to(moments[..., chosen], (*shape, count))
            found = np.einsum("...ij,...j->...i", np.linalg.pinv(inner), right)
            value = squares - np.einsum("...i,...i->...", found, right)
            better = (found >= 0).all(-1) & (value < rss - 1e-15)
            rss = np.where(better, value, rss)
            full = np.zeros((*shape, p))
            full[..., chosen] = found
            best = np.where(better[..., None], full, best)
    return best, np.maximum(rss, 0.0)


def profile(law: Law, x: Array, weights: Array, means: Array) -> tuple[Array, Array, Array]:
    """Return the grid (k,), and at each of its values scaled coefficients (..., k, p) and residual squares (..., k).

    ``x`` (m,) are distinct batch sizes, ``means`` (..., m) their mean seconds, and ``weights`` (m,) the weights of
    these.
    """
    grid = law.grid(x)
    basis = law.basis(x, grid)
    weighted = basis * weights[None, :, None]
    gram = np.einsum("kmi,kmj->kij", weighted, basis)
    moments = np.einsum("kmi,...m->...ki", weighted, means)
    squares = np.einsum("m,...m->...", weights, means**2)[..., None]
    found, rss = solve(gram, moments, np.broadcast_to(squares, moments.shape[:-1]))
    return grid, found, rss


def by_name(name: str) -> Law:
    """Return the law of that name."""
    return next(law for law in LAWS if law.name == name)
