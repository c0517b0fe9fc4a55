"""How often ``compare``, ``rank`` and ``gate`` are wrong, and what they find, on simulated starts with fresh seeds.

``python -m benchmarks.compared --studies 5000`` prints the tables of the README. All is in log seconds; starts differ
by the standard deviations that are named, and the noise of 15 runs of 2% is in the mean of each.
"""

import argparse
import math
import secrets
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from study_extras.compare.difference import Difference, difference_of
from study_extras.compare.night import STRONG, correlation, limit_of
from study_extras.compare.statistics import differs, within

Array = NDArray[np.float64]
NOISE = 0.02 / math.sqrt(15)
STARTS = ((1, 1), (1, 2), (1, 5), (2, 2), (2, 8), (3, 3), (3, 5), (5, 5))
SPREADS = ((0.05, 0.05), (0.1, 0.1), (0.2, 0.2), (0.08, 0.01), (0.01, 0.08))
GAPS = (1.1, 1.25, 1.5, 2.0)
MARGIN = 0.05
RANKED = ((4, 4, 1), (4, 4, 4), (2, 5, 5))
NIGHTS = (4, 6, 10, 20)
FOLLOW = (0.0, 0.4, 0.8)
SPREAD = 0.03
"""Standard deviation between the starts of a gate's baseline."""


def share(hits: Sequence[bool]) -> str:
    """Return a share in percent with its exact 95% interval."""
    found = stats.binomtest(sum(hits), len(hits))
    low, high = found.proportion_ci(0.95, "exact")
    return f"{100 * found.statistic:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def differences(
    rng: np.random.Generator, studies: int, starts: tuple[int, int], spreads: tuple[float, float], gap: float
) -> list[Difference]:
    """Return the differences of pairs of results, the second of which takes ``gap`` times as long."""
    first, second = (
        math.hypot(spread, NOISE) * rng.standard_normal((studies, count))
        for spread, count in zip(spreads, starts, strict=True)
    )
    return [difference_of(a, b + math.log(gap), [NOISE**2] * 2) for a, b in zip(first, second, strict=True)]


def of_pairs(rng: np.random.Generator, studies: int) -> None:
    """Print how often two results are told apart."""
    heads = [f"{100 * a:g}/{100 * b:g}" for a, b in SPREADS]
    print(
        f"| starts | false, SD {' | '.join(heads)} | told at {' | '.join(map(str, GAPS))} | equal, 5% apart | equal |"
    )

    def cell(
        starts: tuple[int, int], spreads: tuple[float, float], gap: float, told: Callable[[Difference], bool]
    ) -> str:
        return share([told(one) for one in differences(rng, studies, starts, spreads, gap)])

    for starts in STARTS:
        false = [cell(starts, one, 1.0, lambda found: differs(found, 1) is not None) for one in SPREADS]
        power = [cell(starts, (0.03, 0.03), gap, lambda found: differs(found, 1) == "slower") for gap in GAPS]
        same = [cell(starts, (0.01, 0.01), gap, lambda found: within(found, MARGIN)) for gap in (1 + MARGIN, 1.0)]
        print("|", " | ".join([f"{starts[0]} and {starts[1]}", *false, *power, *same]), "|", flush=True)


def of_ranks(rng: np.random.Generator, studies: int) -> None:
    """Print how often one of three equal results is called slower than another, as ``rank`` asks it."""
    for counts in RANKED:
        cells = []
        for spread in (0.03, 0.12, 0.2):
            wrong = []
            for _ in range(studies):
                means = [rng.normal(0, spread, count) for count in counts]
                pairs = [difference_of(a, b, [0.0, 0.0]) for a, b in combinations(means, 2)]
                wrong.append(any(differs(one, len(pairs)) for one in pairs))
            cells.append(share(wrong))
        print("| rank", counts, "|", " | ".join(cells), "|", flush=True)


def nights(rng: np.random.Generator, studies: int, count: int, follow: float) -> Array:
    """Return log seconds (studies, count) of nights, each of which keeps a share of the one before."""
    found = rng.standard_normal((studies, count))
    for night in range(1, count):
        found[:, night] = follow * found[:, night - 1] + math.sqrt(1 - follow**2) * found[:, night]
    return SPREAD * found


def of_gates(rng: np.random.Generator, studies: int) -> None:
    """Print how often the gate fails a night long after its baseline, and what it finds.

    Half of the variance of a setting is its start's, and half its own.
    """
    print(
        "| starts | correlation | settings | false alarms | where a rate is stated | all 10% slower | one 50% slower |"
    )
    for count in NIGHTS:
        for follow in FOLLOW:
            for settings in (1, 10):
                old = nights(rng, studies, count, follow)[:, :, None], nights(rng, studies, 1, 0)[:, :, None]
                own = [
                    np.stack([nights(rng, studies, many, how) for _ in range(settings)], axis=2)
                    for many, how in ((count, follow), (1, 0.0))
                ]
                weight = math.sqrt(0.5) if settings > 1 else 0.0
                before, after = (math.sqrt(1 - weight**2) * a + weight * b for a, b in zip(old, own, strict=True))
                one = np.zeros(settings)
                one[0] = math.log(1.5)
                alarms = [fails(a, b) for a, b in zip(before, after, strict=True)]
                stated = [hit for hit, a in zip(alarms, before, strict=True) if correlation(a.mean(axis=1)) < STRONG]
                cells = [share(alarms), share(stated)] + [
                    share([fails(a, b + shift) for a, b in zip(before, after, strict=True)])
                    for shift in (np.full(settings, math.log(1.1)), one)
                ]
                print("|", " | ".join([str(count), str(follow), str(settings), *cells]), "|", flush=True)


def fails(before: Array, after: Array) -> bool:
    """Return whether the gate fails the starts ``after`` (m, settings), as ``night.gate`` decides."""
    settings = before.shape[1]
    if limit_of(None, before.mean(axis=1), after.mean(axis=1), 1).slower:
        return True
    return settings > 1 and any(
        limit_of("", before[:, place], after[:, place], settings).slower for place in range(settings)
    )


def main() -> None:
    """Print every table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000, help="studies a cell")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"{options.studies} studies a cell, seed {seed}")
    for number, table in enumerate((of_pairs, of_ranks, of_gates)):
        table(np.random.default_rng([seed, number]), options.studies)


if __name__ == "__main__":
    main()
