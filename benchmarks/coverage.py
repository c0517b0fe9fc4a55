"""How often the statistics are right under the noise that real machines make: planted truths, fresh seeds.

    python -m benchmarks.coverage --studies 1000

Every condition of ``benchmarks.simulated`` goes through the rule for far runs, the mixed model and the gate, as a study
does. Printed with the exact 99% binomial interval (Clopper and Pearson): an interval of 95% is honest where that holds
95%. ``benchmarks.coverage_laws`` does the same for the laws.
"""

import argparse
import secrets
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.simulated import APART, CONDITIONS, FLAT, LEVELS, Array, Condition, Runs, simulate
from study.analysis.answers.curve import curve_of_model
from study.analysis.answers.law import Drifted, NoDifference, NoLaw, TooFewPoints
from study.analysis.stats.equivalence import equivalent_to
from study.analysis.stats.gate import undetermined
from study.analysis.stats.groups import drift_of, unfair_levels
from study.analysis.stats.learning import learning_of
from study.analysis.stats.log_model import Interval, LogModel, fit_log_model, level_test
from study.analysis.stats.optimum import may_be_fastest, optimum_of
from study.analysis.stats.ratios import critical_of
from study.analysis.table.exclusions import far_runs
from study.config.study import Study

SIZES = 2.0 ** np.arange(4, 9)
NO_LAW = (TooFewPoints, NoDifference, NoLaw, Drifted)
MARGIN = 0.05
IMAGES, LESS = 206, Study.model_fields["learning_margin"].default
"""Validation images of the blog's job, and the margin of accuracy of a study."""


@dataclass(frozen=True)
class Told:
    """What one study tells: its clean runs, their model, and the levels whose means are determined."""

    runs: Runs
    model: LogModel
    determined: list[int]


def tell(runs: Runs, warmed_up: bool) -> Told:
    """Return what the pipeline makes of the runs; without a warm-up run the first of each start is left out."""
    runs = runs if warmed_up else runs.keep(~runs.first)
    far = far_runs(runs.seconds.tolist(), runs.levels.tolist(), runs.blocks.tolist())
    clean = runs.keep(~far)
    model = fit(clean)
    told = []
    for level in model.levels:
        own = clean.levels == level
        times, blocks = pd.Series(clean.seconds[own]), pd.Series(clean.blocks[own].astype(str))
        if undetermined(model.mean(level), times, blocks) is None:
            told.append(int(level))
    return Told(clean, model, told)


def fit(runs: Runs) -> LogModel:
    """Return the model of some runs."""
    return fit_log_model(runs.seconds.tolist(), runs.levels.tolist(), runs.blocks.tolist(), runs.starts.tolist())


def holds(interval: Interval, truth: float) -> bool:
    """Whether an interval holds the planted log value."""
    return interval.low is not None and interval.high is not None and interval.low <= np.exp(truth) <= interval.high


class Shares:
    """Hits and trials by name."""

    def __init__(self) -> None:
        self.hits: dict[str, int] = defaultdict(int)
        self.trials: dict[str, int] = defaultdict(int)
        self.widths: dict[str, list[float]] = defaultdict(list)

    def add(self, name: str, hit: bool) -> None:
        """Count one trial."""
        self.hits[name] += hit
        self.trials[name] += 1

    def width(self, name: str, interval: Interval) -> None:
        """Keep half the width of an interval, in log seconds."""
        if interval.low and interval.high:
            self.widths[name].append(float(np.log(interval.high / interval.low)) / 2)

    def lines(self) -> list[str]:
        """Return a line for each name."""
        told = []
        for name, trials in self.trials.items():
            bounds = stats.binomtest(self.hits[name], trials).proportion_ci(0.99, "exact")
            told.append(f"{name}: {self.hits[name] / trials:.1%} (99%: {bounds.low:.1%} to {bounds.high:.1%})")
        return told + [f"{name}, median half width: {np.median(widths):.1%}" for name, widths in self.widths.items()]


def count_apart(shares: Shares, told: Told, effects: Array) -> None:
    """Count what a study of levels that differ says of means, ratios, extremes and the fastest."""
    model = told.model
    for level in told.determined:
        mean = model.mean(level)
        own = told.runs.seconds[told.runs.levels == level]
        shares.add("a mean's interval holds the typical time", holds(mean, effects[level]))
        shares.add("a printed mean lies outside its clean runs", not own.min() <= mean.value <= own.max())
        shares.width("mean", mean)
    pairs = [(a, b) for a in told.determined for b in told.determined if a < b]
    for a, b in pairs:
        ratio = model.ratio(a, b)
        shares.add("a ratio's interval holds it", holds(ratio, effects[a] - effects[b]))
        shares.width("ratio", ratio)
    shares.add("all means are determined", len(told.determined) == LEVELS)
    optimum = optimum_of(model)
    if optimum:
        held = str(effects.argmin()) in may_be_fastest(optimum, level_test(model))
        shares.add("Hsu's set holds the fastest", held)
    count_extremes(shares, told, effects)


def count_extremes(shares: Shares, told: Told, effects: Array) -> None:
    """Count how often the smallest and the largest of the ratios over the first level hold theirs."""
    base, *others = told.determined or [0]
    if len(others) < 2:
        return
    model = told.model
    weights = np.array([model.weights(other, base) for other in others])
    critical = critical_of(weights @ model.covariance @ weights.T, model.pair_degrees)
    values = weights @ model.effects
    for place in (int(values.argmin()), int(values.argmax())):
        found = model.interval(weights[place], critical)
        shares.add("an extreme ratio's interval holds it", holds(found, effects[others[place]] - effects[base]))


def count_flat(shares: Shares, told: Told) -> None:
    """Count what a study of equal levels says that is not so."""
    model = told.model
    differs, optimum = level_test(model), optimum_of(model)
    verdict = curve_of_model(model, [SIZES[level] for level in model.levels], optimum, differs).verdict
    shares.add("flat: a law is named", not isinstance(verdict, NO_LAW))
    fastest = may_be_fastest(optimum, differs) if optimum else []
    slower = bool(optimum) and any(str(level) not in fastest for level in told.determined)
    shares.add("flat: a level is called slower than the fastest", slower)
    frame = pd.DataFrame(
        {
            "y": told.runs.seconds,
            "level": told.runs.levels.astype(str),
            "session_block": told.runs.blocks.astype(str),
            "session": told.runs.starts,
            "started": np.arange(len(told.runs.seconds)),
        }
    )
    shares.add("flat: the machine is said to drift", drift_of(frame, "y") is not None)


def count_margin(shares: Shares, told: Told, best: int) -> None:
    """Count how often a level that is slower by just the margin is called equivalent to the fastest."""
    same = equivalent_to(told.model, best, MARGIN)
    for level in told.model.levels:
        if level != best:
            shares.add("a level at the margin is called equivalent", str(level) in same)


def count_learning(shares: Shares, blocks: int, rng: np.random.Generator) -> None:
    """Count how often a level that guesses two classes, or little more, may be called the fastest, and one that learned
    as the others did may not."""
    reached = np.append(np.full(LEVELS - 1, 0.9), rng.uniform(0.5, 0.6))
    accuracies = {
        str(level): (rng.binomial(IMAGES, share, blocks) / IMAGES).tolist() for level, share in enumerate(reached)
    }
    unfair = unfair_levels(learning_of(accuracies, 0.5, IMAGES, LESS), [])
    shares.add("a setting that did not learn is a candidate", str(LEVELS - 1) not in unfair)
    shares.add("one that learned is none", any(str(level) in unfair for level in range(LEVELS - 1)))


def run(condition: Condition, studies: int, rng: np.random.Generator) -> Shares:
    """Return the shares of one condition."""
    shares = Shares()
    quiet = Condition(**{**condition.__dict__, "noise": 0.4 * condition.noise})
    at_margin = np.where(np.arange(LEVELS) == 2, 0.0, np.log1p(MARGIN))
    for _ in range(studies):
        count_apart(shares, tell(simulate(condition, APART, rng), not condition.first_slow), APART)
        count_flat(shares, tell(simulate(condition, FLAT, rng), not condition.first_slow))
        count_margin(shares, tell(simulate(quiet, at_margin, rng), not condition.first_slow), 2)
        count_learning(shares, condition.blocks, rng)
    return shares


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", default="", help="conditions whose name contains this")
    options = parser.parse_args()
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"{options.studies} studies a condition, seed {seed}")
    for place, condition in enumerate(CONDITIONS):
        if options.only in condition.name:
            shares = run(condition, options.studies, np.random.default_rng([seed, place]))
            print(f"\n{condition.name}", *shares.lines(), sep="\n", flush=True)


if __name__ == "__main__":
    main()
