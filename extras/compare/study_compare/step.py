"""The step ``compare``: results folders in, verdicts and what differs out."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from study.analysis.words import listed, number
from study.base.strict import Strict
from study.config.times import TIMES, TimeName
from study_compare.results import Same, same_work, studies_of
from study_compare.statistics import Margin, Pair, Ranking, compare, rank
from study_compare.words import (
    differences_table,
    margin_line,
    ranking_lines,
    reasons,
    settings_table,
    verdict_lines,
)


class Compared(Strict):
    """One study of several results folders, the first of which is what the others are compared
    with."""

    study: str
    total: TimeName
    margin: Margin
    pairs: list[Pair]
    ranking: Ranking | None
    left_out: dict[str, list[str]]
    differs: dict[str, list[str]]


def compare_folders(
    folders: Sequence[Path], studies: Sequence[str], margin: float | None
) -> list[Compared]:
    """Return how each study of the folders compares; ``margin`` replaces the study's own margin of
    equivalence.

    Raise :class:`StudyError` if the folders share no study, or if the work is not the same.
    """
    return [_compared(same_work(study, folders), margin) for study in studies_of(folders, studies)]


def failures(found: Sequence[Compared], limit: float) -> Iterator[str]:
    """Yield what forbids that the others pass beside the first result: a line each.

    A slowdown by more than ``limit`` counts only where the interval, which knows how far starts
    differ, excludes equal times. A setting that was not measured may be slower, too, and one that
    learns less is no replacement.
    """
    for one in found:
        for pair in one.pairs:
            yield from (f"{one.study}: {pair.second} {words}" for words in _failures(pair, limit))
        if missing := one.left_out.get(one.pairs[0].first):
            yield f"{one.study}: some result has no run that counts at {listed(missing)}"


def _failures(pair: Pair, limit: float) -> Iterator[str]:
    for one in (pair.overall, *pair.settings):
        at = "over all settings" if one.setting is None else f"at {one.setting}"
        if one.ratio.value > 1 + limit and (one.ratio.low or 0) > 1:
            yield (
                f"takes {number(one.ratio.value)} times as long {at}, and "
                f"{number(1 + limit)} is the limit"
            )
        if one.setting is not None and one.learning[1] == "less":
            yield f"learns less {at}"


def _compared(same: Same, given: float | None) -> Compared:
    first, *others = same.sides
    margin = Margin(
        value=given or same.margins[first.name],
        source="command_line" if given else "plan",
        planned=same.margins,
    )
    return Compared(
        study=same.study,
        total=same.total,
        margin=margin,
        pairs=[compare(first, other, same.settings, margin.value) for other in others],
        ranking=rank(same.sides, same.settings) if len(others) > 1 else None,
        left_out={name: left for name, left in same.left_out.items() if left},
        differs=same.differs,
    )


def as_text(found: Sequence[Compared]) -> str:
    """Return the comparison of every study as text for a terminal."""
    return "\n\n".join("\n".join(_lines(one)) for one in found)


def _lines(found: Compared) -> Iterator[str]:
    names = [found.pairs[0].first, *(pair.second for pair in found.pairs)]
    yield f"{found.study}: {TIMES[found.total].heading}"
    if found.ranking:
        yield from ranking_lines(found.ranking)
    for pair in found.pairs:
        yield from verdict_lines(pair)
        yield from settings_table(pair)
        yield from reasons(pair)
    yield margin_line(found.margin)
    for name, left in found.left_out.items():
        yield f"Only in {name}, and not compared: {listed(list(itertools.islice(left, 12)))}."
    yield from differences_table(names, found.differs)
