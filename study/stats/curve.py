"""The published law T(b) = c / b^alpha + Tmin against a constant, with honest intervals.

Errors are multiplicative: every residual is relative to the mean time at its batch size. For a given
alpha the law is linear in c and Tmin, solved with both non-negative; alpha is profiled on a grid.
"""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy import optimize, stats

from study.config import Strict
from study.stats.summary import CONFIDENCE, SIGNIFICANCE, fit_log_model, level_test

ALPHAS = np.round(np.concatenate([np.arange(0.02, 1.0, 0.005), np.arange(1.0, 4.0001, 0.01)]), 4)
REFERENCE = 64.0


class Fitted(Strict):
    """One candidate law."""

    name: str
    parameters: dict[str, float]
    rss: float = Field(description="Sum of squared relative residuals.")
    aicc: float | None = Field(description="Corrected Akaike criterion; null where it is undefined.")
    lack_of_fit_p: float | None = Field(description="p of the F test for lack of fit; null without replicates.")


class Bounds(Strict):
    """A confidence set on alpha; null is unbounded (the end of the grid was reached)."""

    low: float | None
    high: float | None


class CurveFit(Strict):
    """What the curve's points determine."""

    observations: int
    batch_sizes: int
    constant: Fitted
    power: Fitted
    alpha_interval: Bounds | None = Field(description="95% profile interval; null where there are too few points.")
    differs_p: float | None = Field(description="p of the F test that no batch size differs; null without replicates.")
    alpha_printed: bool = Field(description="Whether the data determine alpha well enough to print it.")
    verdict: str = Field(description="In words, what the points determine.")


def fit_curve(batch_sizes: Sequence[float], seconds: Sequence[float], blocks: Sequence[Hashable]) -> CurveFit:
    """Fit both laws to one entry a run. A bare table without blocks gives every run the same block."""
    sizes, times = np.asarray(batch_sizes, float), np.asarray(seconds, float)
    model = fit_log_model(seconds, batch_sizes, blocks)
    lost = model.block_columns
    adjusted = times / np.exp(model.block_effects)
    weights = _weights(sizes, adjusted)
    count = len(times) - lost

    constant = _linear(np.ones((len(times), 1)), adjusted, weights)
    profile = [_linear(_basis(sizes, alpha), adjusted, weights) for alpha in ALPHAS]
    losses = np.array([rss for _, rss in profile])
    best = int(losses.argmin())
    (scale, floor), alpha = profile[best][0], float(ALPHAS[best])
    pure = _pure_error(sizes, adjusted, weights, lost)
    fits = [
        Fitted(
            name=name,
            parameters=parameters,
            rss=rss,
            aicc=aicc(rss, count, len(parameters)),
            lack_of_fit_p=_lack_of_fit(rss, len(parameters), len(set(sizes)), pure),
        )
        for name, parameters, rss in (
            ("constant", {"T0": float(constant[0][0])}, constant[1]),
            (
                "power",
                {"c": float(scale * REFERENCE**alpha), "alpha": alpha, "Tmin": float(floor)},
                float(losses[best]),
            ),
        )
    ]
    interval = _profile_interval(losses, count)
    differs = level_test(seconds, batch_sizes, blocks)
    printed, verdict = _judge(fits[0], fits[1], interval, differs)
    return CurveFit(
        observations=len(times),
        batch_sizes=len(set(sizes)),
        constant=fits[0],
        power=fits[1],
        alpha_interval=interval,
        differs_p=differs,
        alpha_printed=printed,
        verdict=verdict,
    )


def _weights(sizes: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """One over the mean time at each batch size; without replicates that is mere noise: then over the mean of all."""
    if len(set(sizes)) == len(sizes):
        return np.full(len(times), 1 / times.mean())
    return 1 / np.array([times[sizes == size].mean() for size in sizes])


def _basis(sizes: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    return np.stack([(sizes / REFERENCE) ** -alpha, np.ones_like(sizes)], axis=1)


def _linear(
    basis: NDArray[np.float64], times: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    solution, norm = optimize.nnls(basis * weights[:, None], times * weights)
    return solution, float(norm) ** 2


def aicc(rss: float, observations: int, parameters: int) -> float | None:
    """n ln(RSS/n) + 2k + 2k(k+1)/(n-k-1) with k = parameters + 1, for the variance counts (Hurvich and Tsai 1989)."""
    k = parameters + 1
    if observations - k - 1 <= 0:
        return None
    safe = max(rss, 1e-12)
    return float(observations * np.log(safe / observations) + 2 * k + 2 * k * (k + 1) / (observations - k - 1))


def _pure_error(
    sizes: NDArray[np.float64], times: NDArray[np.float64], weights: NDArray[np.float64], lost: int
) -> tuple[float, int]:
    """Squares within batch sizes, and their degrees of freedom."""
    squares = sum(
        float((((times - times[sizes == size].mean()) * weights)[sizes == size] ** 2).sum()) for size in set(sizes)
    )
    return squares, len(times) - len(set(sizes)) - lost


def _lack_of_fit(rss: float, parameters: int, sizes: int, pure: tuple[float, int]) -> float | None:
    """F = [(SSE - SSPE) / (m - p)] / [SSPE / (n - m)]."""
    squares, degrees = pure
    if sizes <= parameters or degrees <= 0 or squares <= 0:
        return None
    ratio = max(rss - squares, 0.0) / (sizes - parameters) / (squares / degrees)
    return float(stats.f.sf(ratio, sizes - parameters, degrees))


def _profile_interval(losses: NDArray[np.float64], count: int, parameters: int = 3) -> Bounds | None:
    """All alpha with RSS <= RSSmin (1 + F(0.95; 1, n-p) / (n-p)); its hull, open where it meets the grid's end."""
    degrees = count - parameters
    if degrees <= 0:
        return None
    limit = losses.min() * (1 + float(stats.f.ppf(CONFIDENCE, 1, degrees)) / degrees)
    inside = np.flatnonzero(losses <= limit * (1 + 1e-12))
    low, high = int(inside[0]), int(inside[-1])
    return Bounds(
        low=float(ALPHAS[low]) if low > 0 else None, high=float(ALPHAS[high]) if high < len(ALPHAS) - 1 else None
    )


def _judge(constant: Fitted, power: Fitted, interval: Bounds | None, differs_p: float | None) -> tuple[bool, str]:
    """Whether alpha may be printed, and what the points determine in words."""
    if power.aicc is None or constant.aicc is None:
        return False, (
            "The points are too few to compare the power law with a constant: nothing here shows that the law "
            "describes them better."
        )
    if differs_p is None:
        better = power.aicc < constant.aicc - 2
        return False, (
            "Each batch size was run once, so chance cannot be told from shape"
            + (
                "; the power law follows the points more closely than a constant, "
                "which replicates would have to confirm."
                if better
                else ", and no power law follows the points better than a constant."
            )
        )
    if differs_p >= SIGNIFICANCE:
        return False, "A constant describes the times: no batch size differs from another by more than the noise."
    if power.aicc >= constant.aicc - 2:
        return False, (
            "Batch size makes a difference, but not as a falling power law: the law describes the times no better than "
            "a constant."
        )
    if power.lack_of_fit_p is not None and power.lack_of_fit_p < SIGNIFICANCE:
        return False, (
            "Batch size makes a difference, but the power law misses the times by more than the noise between "
            "replicates, so its exponent means nothing here."
        )
    if interval is None or interval.low is None or interval.high is None or interval.high - interval.low >= 0.5:
        return False, (
            "The time falls with the batch size and a power law describes it, but the points do not determine "
            f"its exponent ({interval_words(interval)})."
        )
    return True, (
        f"T(b) = {power.parameters['c']:.3g} / b^{power.parameters['alpha']:.2f} + {power.parameters['Tmin']:.3g} s, "
        f"with alpha {interval.low:.2f} to {interval.high:.2f} (95%)."
    )


def interval_words(interval: Bounds | None) -> str:
    """The confidence set on alpha as words."""
    if interval is None:
        return "no interval: too few points"
    low = f"{interval.low:.2f}" if interval.low is not None else "unbounded"
    high = f"{interval.high:.2f}" if interval.high is not None else "unbounded"
    return "95% of alpha: unbounded" if low == high == "unbounded" else f"95% of alpha: {low} to {high}"
