"""A linear mixed model with nested random factors, fitted in time linear in the observations.

The variances are those of restricted maximum likelihood (Patterson and Thompson 1971). The
covariance of the coefficients is Kenward and Roger's (1997), which adds what the estimates of the
variances miss in few observations.
"""

import functools
import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
"""The code of each observation: the index of its group or level among the distinct ones, from 0."""
Flags = NDArray[np.bool_]
MANY_GROUPS = 400
"""Groups from which the degrees of freedom no longer matter; the matrices of their traces would
fill the memory."""
STEP = 10.0
GRID = (0.0, *(1e-3 * STEP**power for power in range(8)))
"""Ratios of a random factor's variance to the noise's that are tried first, up to 10,000."""
MOST_ROUNDS = 100
SETTLED = 1e-6
"""Gain in the deviance below which a round of the search is its last, and a ratio is no other than
zero."""
EXACT = 1e-13
"""Relative error of a ratio at the end. Values of the deviance alone would leave 1e-7, which
another processor's sums move: the zero of its slope is known as far as numbers go."""
FARTHEST = (-40.0, 40.0)
"""Logarithms of the ratios that the search for that zero may try."""
ROUNDING = 1e-20
"""Share of the sum of squares below which a residual is rounding."""


@dataclass(frozen=True)
class Groups:
    """A random factor: the code (n,) of the group of each observation."""

    name: str
    codes: Codes

    @functools.cached_property
    def count(self) -> int:
        """Number of groups."""
        return int(self.codes.max()) + 1

    def sums(self, values: Array) -> Array:
        """Return the sum over each group of rows, shape (groups, k), of ``values`` (n, k)."""
        width = values.shape[1]
        cells = self.codes[:, None] * width + np.arange(width)
        sums = np.bincount(cells.ravel(), values.ravel(), self.count * width)
        return sums.astype(float, copy=False).reshape(self.count, width)

    def matrix(self) -> Array:
        """Return the indicators of the groups, shape (n, groups)."""
        return np.eye(self.count)[self.codes]


class MixedFit(NamedTuple):
    """The coefficients of the fixed part, the variances of the random one, and what few
    observations need."""

    beta: Array
    """Coefficients (p,)."""
    covariance: Array
    """Kenward and Roger's covariance (p, p) of ``beta``."""
    variances: dict[str, float]
    """The variance of the ``noise``, then that of each random factor that can be told from it."""
    random_effects: Array
    """Best linear unbiased predictor (n,) of the random part of each observation, without its
    noise."""
    residual_df: int
    """Residual degrees of freedom: observations less the rank of the fixed part."""
    slopes: Array
    """Derivative (variances, p, p) of the plain covariance of ``beta`` on each variance; empty
    where not needed."""
    spread: Array
    """Covariance of the estimated variances: twice the inverse of their expected information."""


def codes(values: Sequence[Hashable]) -> Codes:
    """Return the code of each value, as ``pandas.factorize`` has it: the distinct values are
    numbered from 0 in the order of their first appearance."""
    index: dict[Hashable, int] = {}
    return np.array([index.setdefault(value, len(index)) for value in values], np.int64)


def fit_mixed(y: Array, x: Array, candidates: Sequence[Groups]) -> MixedFit:
    """Return the fit of ``y`` (n,) on the columns of ``x`` (n, p), with random factors.

    Each of the ``candidates`` is nested in the next. Those that the data cannot tell from the
    noise, from each other or from ``x`` are left out.
    """
    rank, random = int(np.linalg.matrix_rank(x)), list[Groups]()
    for groups in candidates:
        finer = min([len(y), *(item.count for item in random)])
        if 1 < groups.count < finer and (
            groups.count > MANY_GROUPS
            or np.linalg.matrix_rank(np.hstack([x, groups.matrix()])) > rank
        ):
            random.append(groups)
    return _Restricted(y, x, len(y) - rank, random).fit()


@dataclass(frozen=True)
class _Restricted:
    """Restricted likelihood of y = X beta + random factors + noise.

    ``ratios`` are the variances of the factors over that of the noise. The inverse of the
    covariance V has a closed form, because the factors are nested: the finest is taken out first,
    then the next.
    """

    y: Array
    x: Array
    residual_df: int
    random: list[Groups]

    @functools.cached_property
    def both(self) -> Array:
        """The columns of X, and y."""
        return np.column_stack([self.x, self.y])

    def solve(self, ratios: Array, values: Array) -> tuple[Array, float]:
        """Return V^-1 ``values`` (n, k) and the logarithm of the determinant of V, both for a noise
        of variance 1."""
        solved = values
        column = np.ones((len(self.y), 1))
        determinant = 0.0
        for groups, ratio in zip(self.random, ratios, strict=True):
            # z'A^-1z of each group, A being what is already taken out
            weights = groups.sums(column)
            scale = ratio / (1 + ratio * weights)
            solved = solved - column * (scale * groups.sums(solved))[groups.codes]
            determinant += np.log1p(ratio * weights).sum()
            column = column - column * (scale * weights)[groups.codes]
        return solved, determinant

    def moments(self, ratios: Array) -> tuple[Array, Array, float, float]:
        """Return (X'V^-1X)^+, beta, the residual y'Py, and the logarithm of |V| |X'V^-1X|."""
        solved, determinant = self.solve(ratios, self.both)
        products = self.both.T @ solved
        gram, right = products[:-1, :-1], products[:-1, -1]
        values, vectors = np.linalg.eigh(gram)
        kept = values > values[-1] * 1e-10
        values, vectors = values[kept], vectors[:, kept]
        inverse = (vectors / values) @ vectors.T
        beta = inverse @ right
        return (
            inverse,
            beta,
            float(products[-1, -1] - right @ beta),
            determinant + float(np.log(values).sum()),
        )

    def deviance(self, ratios: Array) -> float:
        """Return -2 log restricted likelihood, but for a constant."""
        *_, residual, determinants = self.moments(ratios)
        return float(self.residual_df * np.log(max(residual, 1e-300)) + determinants)

    def ratios(self) -> Array:
        """Return the ratios at which the restricted likelihood is largest; zero is allowed.

        A grid comes first, because the likelihood can have a second peak at zero; then each ratio
        is refined in turn.
        """
        best = np.zeros(len(self.random))
        if not self.random or self.residual_df <= 1 or self._is_rounding(best):
            return best
        best = np.array(
            min(
                itertools.product(GRID, repeat=len(best)),
                key=lambda at: self.deviance(np.array(at)),
            )
        )
        for _ in range(MOST_ROUNDS):
            before = self.deviance(best)
            for place in range(len(best)):
                best[place] = self._refined(best, place)
            if before - self.deviance(best) < SETTLED:
                break
        for place in range(len(best)):
            without = np.where(np.arange(len(best)) == place, 0.0, best)
            if self.deviance(without) - self.deviance(best) < SETTLED:
                best = without
        return self._polished(best)

    def _is_rounding(self, ratios: Array) -> bool:
        """Return whether the factors and the fixed part leave nothing of the observations but
        rounding."""
        squares = ((self.y - self.y.mean()) ** 2).sum()
        return bool(self.moments(ratios)[2] <= ROUNDING * squares)

    def _polished(self, best: Array) -> Array:
        """Return the ratios that are not zero moved to where the slope of the deviance is zero."""
        free = best > 0
        many = any(groups.count > MANY_GROUPS for groups in self.random)
        if many or not free.any() or self._is_rounding(best):
            return best

        def ratios_at(logs: Array) -> Array:
            ratios = best.copy()
            ratios[free] = np.exp(np.clip(logs, *FARTHEST))
            return ratios

        def slopes_at(logs: Array) -> Array:
            ratios = ratios_at(logs)
            return (ratios * self.slopes(ratios))[free]  # of the logarithms

        start = np.log(best[free])
        found = optimize.root(slopes_at, start, options={"xtol": EXACT})
        near = np.abs(found.x - start).max() < np.log(STEP)
        exact = ratios_at(found.x) if near else best
        return exact if self.deviance(exact) < self.deviance(best) + SETTLED else best

    def slopes(self, ratios: Array) -> Array:
        """Return the derivative of the deviance on each ratio (Harville 1977).

        With P = V^-1 - V^-1 X (X'V^-1X)^+ X'V^-1 and the indicators Z of a factor it is
        tr(Z'PZ) - (n - p) |Z'Py|^2 / y'Py.
        """
        inverse, beta, residual, _ = self.moments(ratios)
        solved, _ = self.solve(ratios, self.both)
        projected = solved[:, -1] - solved[:, :-1] @ beta  # Py
        slopes = np.zeros(len(self.random))
        for place, groups in enumerate(self.random):
            z = groups.matrix()
            zx = z.T @ solved[:, :-1]
            trace = (z * self.solve(ratios, z)[0]).sum() - ((zx @ inverse) * zx).sum()
            slopes[place] = trace - self.residual_df * ((z.T @ projected) ** 2).sum() / residual
        return slopes

    def _refined(self, ratios: Array, place: int) -> float:
        """Return the best value of one ratio between the neighbours of its own on the grid; the
        others stay."""

        def at(value: float) -> float:
            return self.deviance(np.where(np.arange(len(ratios)) == place, value, ratios))

        low, high = max(ratios[place] / STEP, 0.0), max(ratios[place] * STEP, GRID[1])
        found = optimize.minimize_scalar(
            at, bounds=(low, high), method="bounded", options={"xatol": 1e-4 * high}
        )
        return float(found.x if found.fun < at(ratios[place]) else ratios[place])

    def fit(self) -> MixedFit:
        """Return the fit at the largest restricted likelihood."""
        ratios = self.ratios()
        inverse, beta, residual, _ = self.moments(ratios)
        noise = max(residual, 0.0) / self.residual_df if self.residual_df > 0 else 0.0
        left = self.y - self.x @ beta
        solved, _ = self.solve(ratios, left[:, None])
        random_effects = np.zeros(len(left))
        for groups, ratio in zip(self.random, ratios, strict=True):
            random_effects += ratio * groups.sums(solved)[groups.codes, 0]
        covariance, slopes, spread = self.small_sample(ratios, noise, inverse * noise)
        named = zip(self.random, ratios, strict=True)
        return MixedFit(
            beta=beta,
            covariance=covariance,
            variances={"noise": noise}
            | {groups.name: noise * float(ratio) for groups, ratio in named},
            random_effects=random_effects,
            residual_df=self.residual_df,
            slopes=slopes,
            spread=spread,
        )

    def small_sample(self, ratios: Array, noise: float, plain: Array) -> tuple[Array, Array, Array]:
        """Return Kenward and Roger's covariance, the slopes of the plain one, and the variances'
        spread.

        Of the matrices P_i = X'V^-1 V_i V^-1 X and Q_ij = X'V^-1 V_i V^-1 V_j V^-1 X, where V is
        the sum of s_i V_i, those of the noise follow from the others, and so does its information.
        """
        if (
            noise <= 0
            or self.residual_df <= 0
            or any(groups.count > MANY_GROUPS for groups in self.random)
        ):
            return plain, np.empty((0, *plain.shape)), np.empty((0, 0))
        factors, count = range(len(self.random)), len(self.random) + 1
        s = noise * ratios
        z = [groups.matrix() for groups in self.random]
        solved = [self.solve(ratios, part)[0] / noise for part in z]
        zx = [part.T @ self.x for part in solved]
        zz = [[a.T @ b for b in solved] for a in z]
        p = np.zeros((count, *plain.shape))
        q = np.zeros((count, count, *plain.shape))
        information = np.zeros((count, count))
        for i in factors:
            p[i + 1] = zx[i].T @ zx[i]
            for j in factors:
                q[i + 1, j + 1] = zx[i].T @ zz[i][j] @ zx[j]
                information[i + 1, j + 1] = ((zz[i][j] - zx[i] @ plain @ zx[j].T) ** 2).sum()
        p[0] = (np.linalg.pinv(plain, hermitian=True) - np.tensordot(s, p[1:], 1)) / noise
        for i in factors:
            q[i + 1, 0] = (p[i + 1] - np.tensordot(s, q[i + 1, 1:], 1)) / noise
            q[0, i + 1] = q[i + 1, 0].T
            trace = np.trace(zz[i][i] - zx[i] @ plain @ zx[i].T)
            information[0, i + 1] = information[i + 1, 0] = (
                trace - s @ information[i + 1, 1:]
            ) / noise
        q[0, 0] = (p[0] - np.tensordot(s, q[0, 1:], 1)) / noise
        # The trace of PVPV is the number of residual degrees of freedom.
        rest = 2 * noise * s @ information[0, 1:] + s @ information[1:, 1:] @ s
        information[0, 0] = (self.residual_df - rest) / noise**2
        spread = 2 * np.linalg.pinv(information, hermitian=True).astype(float)
        inner = np.einsum("ij,ijkl->kl", spread, q - p[:, None] @ plain @ p)
        adjusted = plain + 2 * plain @ inner @ plain
        # columns that are all but dependent
        if (np.diag(adjusted) < np.diag(plain) * (1 - 1e-6)).any():
            adjusted = plain
        return (adjusted + adjusted.T) / 2, np.array([plain @ part @ plain for part in p]), spread
