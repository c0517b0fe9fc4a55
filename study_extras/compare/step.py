"""The step ``compare``: results folders in, verdicts and what differs out."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from study.analysis.words import TOTALS, listed
from study.base.strict import Strict
from study_extras.compare.results import Same, same_work, studies_of
from study_extras.compare.statistics import Margin, Pair, Ranking, compare, rank
from study_extras.compare.words import (
    differences_table,
    margin_line,
    ranking_lines,
    reasons,
    settings_table,
    verdict_lines,
)


class Compared(Strict):
    """One study of several results folders, the first of which is what the others are compared with."""

    study: str
    total: str
    margin: Margin
    pairs: list[Pair]
    ranking: Ranking | None
    left_out: dict[str, list[str]]
    differs: dict[str, list[str]]


def compare_folders(folders: Sequence[Path], studies: Sequence[str], margin: float | None) -> list[Compared]:
    """Return how each study of the folders compares; ``margin`` replaces the study's own margin of equivalence.

    Raise :class:`StudyError` if the folders share no study, or if the work is not the same.
    """
    return [_compared(same_work(study, folders), margin) for study in studies_of(folders, studies)]


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
    yield f"{found.study}: {TOTALS[found.total].replace(' (s)', '')}"
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
