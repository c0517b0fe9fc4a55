"""How often the laws are right: intervals of alpha, a law named on flat times, where a U turns, the
noise model's test.

    python -m benchmarks.coverage_laws --studies 1000

Planted truths, fresh seeds; printed with exact 99% intervals.
"""

import argparse
import secrets
from collections.abc import Callable, Hashable, Iterator, Sequence

import numpy as np
from scipy import stats

from study.analysis.answers.curve import CurveFit, Verdict, curve_of_model, means_of
from study.analysis.stats.laws import LogMeans, by_name, fit_laws
from study.analysis.stats.log_model import fit_log_model
from study.analysis.stats.mixed_model import Array
from study.analysis.stats.optimum import optimum_of

Draw = Callable[[np.random.Generator, int], Array]
FIVE: Array = np.geomspace(16.0, 256.0, 5)
TEN: Array = np.geomspace(16.0, 256.0, 10)
RUNS, NOISE = 5, 0.05
DRAWS: dict[str, Draw] = {
    "Gaussian noise": lambda rng, count: rng.normal(0, NOISE, count),
    "t noise of 3 degrees": lambda rng, count: rng.standard_t(3, count) * NOISE / np.sqrt(3),
}
U_SHAPES: dict[str, tuple[Callable[[Array], Array], float]] = {
    "rise": (lambda b: 5 + 80 / b + 80 / 60**2 * b, 60.0),
    "V in |log b|": (lambda b: 5 * np.exp(0.25 * np.abs(np.log(b / 75))), 75.0),
    "parabola in log b": (lambda b: 5 * np.exp(0.12 * np.log(b / 50) ** 2), 50.0),
    "hinge, then linear": (
        lambda b: np.maximum(240 / b, 2) + 0.02 * np.maximum(b - 120, 0) + 3,
        120.0,
    ),
}
"""Times, and the batch size of their minimum."""


def studies(truth: Array, draw: Draw, rng: np.random.Generator, count: int) -> Iterator[Array]:
    """Times of ``count`` studies, each (runs, sizes)."""
    for _ in range(count):
        yield truth * np.exp(draw(rng, RUNS * len(truth)).reshape(RUNS, -1))


def fit_curve(
    batch_sizes: Sequence[float], seconds: Sequence[float], blocks: Sequence[Hashable]
) -> CurveFit:
    """Return every law fitted to the runs, with the verdict on what they determine. Each argument
    has one entry for each run."""
    model = fit_log_model(seconds, batch_sizes, blocks)
    return curve_of_model(model, model.levels, optimum_of(model))


def means_of_runs(sizes: Sequence[float], seconds: Sequence[float]) -> LogMeans:
    """The means of runs that have nothing in common but their size."""
    model = fit_log_model(seconds, sizes, [0] * len(seconds))
    return means_of(model, model.levels)


def alpha_held(sizes: Array, times: Array, alpha: float) -> bool:
    """Whether the interval of alpha holds the planted one."""
    law = by_name("power")
    means = means_of_runs(np.tile(sizes, len(times)).tolist(), times.ravel().tolist())
    bounds = fit_laws(means, [law])["power"].intervals["alpha"]
    return (bounds.low or 0.0) <= alpha <= (bounds.high if bounds.high is not None else np.inf)


def law_named(sizes: Array, times: Array) -> bool:
    """Whether the verdict is that some law other than the constant describes the times."""
    return verdict_of(sizes, times).kind not in ("flat", "undetermined")


def verdict_of(sizes: Array, times: Array) -> Verdict:
    """The verdict on runs that have nothing in common but their size."""
    runs = np.tile(sizes, len(times)).tolist()
    return fit_curve(runs, times.ravel().tolist(), [0] * len(runs)).verdict


def turn_of(sizes: Array, times: Array) -> Verdict | None:
    """The verdict that the time falls and rises again; None where it is another."""
    verdict = verdict_of(sizes, times)
    return verdict if verdict.low is not None else None


def line(name: str, hits: int, studies: int) -> str:
    """A share with its exact 99% interval."""
    bounds = stats.binomtest(hits, studies).proportion_ci(0.99, "exact")
    return f"{name}: {hits / studies:.1%} (99%: {bounds.low:.1%} to {bounds.high:.1%})"


def print_alpha(count: int, rng: np.random.Generator) -> None:
    """Print how often the interval of alpha holds it."""
    for sizes in (FIVE, TEN):
        for alpha in (0.5, 1.0):
            truth = 5 + 15 * (16 / sizes) ** alpha
            for name, draw in DRAWS.items():
                held = sum(
                    alpha_held(sizes, times, alpha) for times in studies(truth, draw, rng, count)
                )
                print(
                    line(
                        f"{len(sizes)} sizes, {name}: alpha = {alpha:g} within its interval",
                        held,
                        count,
                    ),
                    flush=True,
                )


def print_flat(count: int, rng: np.random.Generator) -> None:
    """Print how often a law is named on flat times."""
    for name, draw in DRAWS.items():
        named = sum(
            law_named(FIVE, times) for times in studies(np.full(len(FIVE), 5.0), draw, rng, count)
        )
        print(line(f"flat, {name}: a law is named", named, count), flush=True)


def print_turns(count: int, rng: np.random.Generator) -> None:
    """Print how often a turn is said of a U, and how often it then holds the minimum."""
    for shape, (truth, minimum) in U_SHAPES.items():
        for name, draw in DRAWS.items():
            said = [
                turn
                for times in studies(truth(FIVE), draw, rng, count)
                if (turn := turn_of(FIVE, times))
            ]
            held = sum((turn.low or 0) <= minimum <= (turn.high or 0) for turn in said)
            print(line(f"{shape}, {name}: the turn is said", len(said), count))
            print(
                line(f"{shape}, {name}: it holds the minimum", held, max(len(said), 1)), flush=True
            )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"{options.studies} studies a line, {RUNS} runs a size, {NOISE:.0%} noise, seed {seed}")
    for part, show in enumerate((print_alpha, print_flat, print_turns)):
        show(options.studies, np.random.default_rng([seed, part]))


if __name__ == "__main__":
    main()
