"""Bounds of what chance decides, for any number of draws: a test that is right breaks one of them
once in 500 times."""

from scipy.stats import binom


def at_most(share: float, draws: int) -> int:
    """The most of ``draws`` that happen, where each happens with the probability ``share``."""
    return int(binom.ppf(0.998, draws, share))


def at_least(share: float, draws: int) -> int:
    """The fewest of ``draws`` that happen, where each happens with the probability ``share``."""
    return int(binom.ppf(0.002, draws, share))
