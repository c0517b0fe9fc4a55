"""Which settings have learned, and which did not reach their target: only such settings can be
compared by their time.

All runs are validated on the same images, so what these images happen to favour is in every run,
and does not average out over runs as the noise between trainings does.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal

import numpy as np
from scipy import special, stats

from study.analysis.stats.estimate import Estimate
from study.analysis.stats.log_model import SIGNIFICANCE, Critical
from study.base.strict import Strict

FEW_RUNS = 3
"""With fewer runs their spread is hardly known."""
LARGE_SHORTFALL = 0.10
"""A mean that is further below the best one's is shown to nobody as having learned, even if noise
could explain it."""


LearningReason = Literal["learned", "at_chance", "below_best", "unclear", "unknown"]


class Learning(Strict):
    """Whether one level has learned."""

    reason: LearningReason
    """`at_chance`: the accuracy is not above chance. `below_best`: it is short of the best level's
    by more than the margin, beyond the noise between runs. `unclear`: it is above chance, but the
    runs differ too much to say so of their mean, or to say why it is more than ten points short of
    the best level's. `unknown`: no run has an accuracy."""
    accuracy: float | None
    """Mean over the runs, 0 to 1."""

    @property
    def learned(self) -> bool | None:
        """Whether it has learned; None where that cannot be told."""
        return {"learned": True, "unclear": None, "unknown": None}.get(self.reason, False)


class CensoredRuns(Strict):
    """The successful runs of one level that did not reach the target accuracy, so that their time
    to it is unknown."""

    missed: int
    runs: int
    """All successful runs of the level, those that reached it included."""


def learning_of(
    accuracies: Mapping[str, Sequence[float]],
    chance: float | None,
    valid_images: int | None,
    margin: float,
    questions: int = 1,
) -> dict[str, Learning]:
    """Return by level whether it has learned.

    ``accuracies`` are those of each level's runs, 0 to 1, on ``valid_images`` images; ``chance`` is
    the share of the most frequent class. A level has not learned if its mean is not above
    ``chance``, or lies below the best level's by more than ``margin``, both beyond noise at 5%;
    equal levels are called unequal in 5% of studies at most, where ``questions`` is how often a
    study asks this. Where nobody says what chance is, or on how many images, the noise is that
    between runs.
    """
    means = {level: fmean(values) for level, values in accuracies.items() if len(values)}
    found = {level: Learning(reason="unknown", accuracy=None) for level in accuracies}
    if not means:
        return found
    best = max(means, key=means.__getitem__)
    errors = _squared_errors({level: accuracies[level] for level in means}, valid_images)
    by_images = 0.0
    if chance is not None and valid_images:
        limit = float(stats.binom.isf(SIGNIFICANCE, valid_images, chance)) / valid_images
        by_images = max(0.0, limit - chance)
    for level in means:
        values = accuracies[level]
        # One pass over the images may reach ``by_images`` above chance, which does not shrink with
        # the number of runs; the t limit of the mean over runs comes on top of it.
        above, by_runs = means[level] - (chance or 0.0), 0.0
        if len(values) > 1:
            spread = np.std(values, ddof=1) / np.sqrt(len(values))
            by_runs = float(-special.stdtrit(len(values) - 1, SIGNIFICANCE) * spread)
        reason: LearningReason = "learned"
        if chance is not None and above <= by_images + by_runs:
            reason = "at_chance" if above <= by_images else "unclear"
        gap = means[best] - means[level] - margin
        below = False
        if gap > 0 and len(means) > 1:
            # Welch's test. Any level may be the best by chance, so Bonferroni's rule counts every
            # ordered pair of the levels, in each question.
            (own, own_degrees), (other, other_degrees) = errors[level], errors[best]
            square = own + other
            per_degree = own**2 / own_degrees + other**2 / other_degrees
            degrees = square**2 / per_degree if per_degree else np.inf
            tests = len(means) * (len(means) - 1) * questions
            # Runs that agree to the last digit have shown their difference; single ones none.
            p = special.stdtr(degrees, -gap / np.sqrt(square)) if square else 0.0
            repeated = any(len(accuracies[name]) > 1 for name in means)
            below = (bool(valid_images) or repeated) and p < SIGNIFICANCE / tests
        if reason != "at_chance" and below:
            reason = "below_best"
        elif reason == "learned" and gap > LARGE_SHORTFALL:
            reason = "unclear"
        found[level] = Learning(reason=reason, accuracy=means[level])
    return found


def learning_by_loss(losses: Mapping[str, Sequence[float]], margin: float) -> dict[str, Learning]:
    """Return by level whether it has learned, from the losses of its runs, of which less is better.

    A level has not learned if its mean loss is above the lowest one by more than ``margin``, a
    share of that, beyond the noise between runs at 5%.
    """
    means = [fmean(values) for values in losses.values() if len(values)]
    lowest = abs(min(means, default=0.0)) or 1.0
    scores = {level: [-value / lowest for value in values] for level, values in losses.items()}
    found = learning_of(scores, None, None, margin)
    return {level: Learning(reason=one.reason, accuracy=None) for level, one in found.items()}


def accuracy_of(accuracies: Sequence[float], critical: Critical) -> Estimate:
    """Return the mean accuracy of some runs with the interval that ``critical`` standard errors
    reach.

    There is no interval below three runs, or where all are equal.
    """
    mean, runs = fmean(accuracies), len(accuracies)
    spread = float(np.std(accuracies, ddof=1)) if runs >= FEW_RUNS else 0.0
    if not spread:
        return Estimate(value=mean)
    reach = critical(runs - 1) * spread / runs**0.5
    return Estimate(value=mean, low=mean - reach, high=mean + reach)


def _squared_errors(
    accuracies: Mapping[str, Sequence[float]], images: int | None
) -> dict[str, tuple[float, float]]:
    """Return the squared standard error of each level's mean, from its own runs, and its degrees of
    freedom.

    A level with one run has the variance of the others' pooled. No variance is below the binomial
    one of the images: runs that happen to agree have not shown that they always do.
    """
    degrees = {level: len(values) - 1 for level, values in accuracies.items()}
    total = sum(degrees.values())
    spreads = {
        level: float(np.var(values, ddof=1))
        for level, values in accuracies.items()
        if degrees[level]
    }
    pooled = sum(spreads[level] * degrees[level] for level in spreads) / total if total else 0.0
    found = {}
    for level, values in accuracies.items():
        variance = spreads.get(level, pooled)
        if images:
            share = (fmean(values) * images + 1) / (images + 2)
            variance = max(variance, share * (1 - share) / images)
        found[level] = variance / len(values), degrees[level] or total or np.inf
    return found
