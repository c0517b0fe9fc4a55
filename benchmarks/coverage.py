"""How often the statistics are right: planted truths, simulated studies, fresh seeds.

    python -m benchmarks.coverage --studies 1000

Five batch sizes, five blocks whose machine differs by 20%, 5% noise. Printed with the exact 99% binomial interval
(Clopper and Pearson): an interval of 95% is honest where that holds 95%.
"""

import argparse
import secrets
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from study.analysis.stats.curve import CurveFit, fit_curve
from study.analysis.stats.findings import OtherLaw, PowerLaw, Rise, Turn
from study.analysis.stats.log_model import fit_log_model
from study.analysis.stats.optimum import optimum_of

Array = NDArray[np.float64]
SIZES = np.array([16.0, 32, 64, 128, 256])
BLOCKS, NOISE, BLOCK_NOISE = 5, 0.05, 0.2
TRUTHS: dict[str, Callable[[Array], Array]] = {
    "flat": lambda b: 5 + 0 * b,
    "alpha = 1": lambda b: 5 + 15 * 16 / b,
    "alpha = 0.5": lambda b: 5 + 15 * (16 / b) ** 0.5,
    "U": lambda b: 5 + 80 / b + 80 / 64**2 * b,
}


def simulate(truth: str, rng: np.random.Generator) -> tuple[list[float], list[float], list[int]]:
    """Batch sizes, seconds and blocks of one study."""
    sizes, blocks = np.tile(SIZES, BLOCKS), np.repeat(np.arange(BLOCKS), len(SIZES))
    machine = rng.normal(0, BLOCK_NOISE, BLOCKS)[blocks]
    seconds = TRUTHS[truth](sizes) * np.exp(rng.normal(0, NOISE, len(sizes)) + machine)
    return sizes.tolist(), seconds.tolist(), blocks.tolist()


def holds_alpha(fit: CurveFit, alpha: float) -> bool:
    """Whether the interval of alpha holds the planted one."""
    bounds = fit.power.intervals["alpha"]
    return (bounds.low or 0.0) <= alpha <= (bounds.high if bounds.high is not None else np.inf)


def names_a_law(fit: CurveFit) -> bool:
    """Return whether the verdict is that some law other than the constant describes the times."""
    return isinstance(fit.verdict, PowerLaw | Turn | Rise | OtherLaw)


def holds_contrast(sizes: list[float], seconds: list[float], blocks: list[int], truth: str) -> bool:
    """Whether the interval of T(16)/T(64) holds the planted ratio."""
    ratio = fit_log_model(seconds, sizes, blocks).ratio(16.0, 64.0)
    planted = float(TRUTHS[truth](np.array([16.0]))[0] / TRUTHS[truth](np.array([64.0]))[0])
    return (ratio.low or 0.0) <= planted <= (ratio.high or np.inf)


def holds_fastest(fastest: str, sizes: list[float], seconds: list[float], blocks: list[int]) -> bool:
    """Whether Hsu's set, by itself, holds the fastest; on flat data any one is."""
    found = optimum_of(fit_log_model(seconds, [f"{size:g}" for size in sizes], blocks))
    return found is not None and fastest in found.indistinguishable


def line(name: str, hits: int, studies: int) -> str:
    """A share with its exact 99% interval."""
    bounds = stats.binomtest(hits, studies).proportion_ci(0.99, "exact")
    return f"{name}: {hits / studies:.1%} (99%: {bounds.low:.1%} to {bounds.high:.1%})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"{options.studies} studies for each truth, seed {seed}")
    for truth in TRUTHS:
        rng = np.random.default_rng([seed, len(truth)])
        studies = [simulate(truth, rng) for _ in range(options.studies)]
        fits = [fit_curve(*study) for study in studies]
        count = len(studies)
        print(f"\n{truth}")
        print(line("16 over 64 within its interval", sum(holds_contrast(*study, truth) for study in studies), count))
        print(line("alpha is printed", sum(bool(fit.power.reported) for fit in fits), count))
        print(line("the verdict names a law", sum(names_a_law(fit) for fit in fits), count))
        for name in fits[0].models:
            print(line(f"{name} has the smallest AICc", sum(fit.best == name for fit in fits), count))
        if truth.startswith("alpha"):
            alpha = float(truth.split("= ")[1])
            print(line("alpha within its interval", sum(holds_alpha(fit, alpha) for fit in fits), count))
        fastest = f"{SIZES[TRUTHS[truth](SIZES).argmin()]:g}"
        hits = sum(holds_fastest(fastest, *study) for study in studies)
        print(line(f"the fastest, {fastest}, is in the optimum's set", hits, count))


if __name__ == "__main__":
    main()
