"""The word for a claimed number beside the interval of what was measured, and the digits that bear it.

A claim holds if the whole interval lies within the study's margin around the claimed number, or if the number lies in
an interval whose upper end is at most twice its lower. It is contradicted if the whole interval lies beyond the margin.
"""

from collections.abc import Sequence
from typing import Literal

from study.analysis.stats.usable import Estimate
from study.analysis.words import clear_of, short

Word = Literal["holds", "contradicted", "not decided"]


def word_of(low: float, high: float, here: Estimate, margin: float, points: bool = False, ratio: bool = False) -> Word:
    """Return the word for a claimed number, or a range of them, by the interval of what was measured.

    The margin is a factor, or a difference with ``points``. An interval that holds 1 shows no gain and no loss: with
    ``ratio`` a claimed gain needs one without it, and "no gain" one within the margin.
    """
    if here.low is None or here.high is None:
        return "not decided"
    least, most = (low - margin, high + margin) if points else (low / (1 + margin), high * (1 + margin))
    if least <= here.low and here.high <= most:
        return "holds"
    if here.high < least or here.low > most:
        return "contradicted"
    none = ratio and here.low <= 1 <= here.high and not low < 1 < high
    return "holds" if here.low <= high and low <= here.high <= 2 * here.low and not none else "not decided"


def told_of(here: Estimate, unit: str, claimed: Sequence[float], first: bool = True, tenths: bool = False) -> str:
    """Return what was measured; its digits stand on its side of the numbers ``claimed``, so that they bear the word.

    Documents print accuracies in ``tenths`` of a point.
    """
    value, *ends = (
        clear_of(one, claimed, f"{one:.1f}" if tenths else short(one, like=here.value))
        for _, one in here
        if one is not None
    )
    return f"{value}{unit} ({'95%: ' * first}{' to '.join(ends)})" if ends else f"{value}{unit} (no interval)"


def against(word: Word, claimed: float) -> tuple[float, ...]:
    """Return the number of which the digits of what was measured must stand clear: none where the claim holds."""
    return () if word == "holds" else (claimed,)


def note_of(word: Word, here: Estimate, claimed: float) -> str:
    """Return in which direction a number is contradicted."""
    return f"{'less' if here.value < claimed else 'more'} here" if word == "contradicted" else ""
