"""How far the studies are, in words: the first thing that a report says while runs are missing."""

from collections.abc import Sequence

from study.analysis.table.progress import Progress
from study.analysis.words import agreeing, listed

FEW = 4
"""Settings up to this number are named, more are counted."""


def progress_sentence(studies: Sequence[Progress]) -> str:
    """Return how many of the planned runs of all studies are there, and that the report is not final if some are not.

    A page says it once, before its first answer, and only if a study is not whole.
    """
    there, planned = sum(study.there for study in studies), sum(study.planned for study in studies)
    count = f"{there} of {planned} planned runs {agreeing(planned, 'is', 'are')} there"
    return f"{count}." if all(study.whole for study in studies) else f"{count}: this is no final report."


def missing_sentence(progress: Progress) -> str | None:
    """Return which runs of a study are missing; None where it is whole."""
    if progress.whole:
        return None
    if not progress.there:
        told = [f"Missing: all {progress.planned} runs."]
    else:
        told = [f"Missing: {listed(_blocks(progress))}."]
        told += [f"No run yet: {listed(_few(progress.settings))}."] if progress.settings else []
    if progress.refused:
        told.append(
            f"{progress.refused} of the missing {agreeing(progress.refused, 'has a record', 'have records')} "
            "that cannot be used."
        )
    return " ".join(told)


def _blocks(progress: Progress) -> list[str]:
    parts = [
        f"{gaps} of the {planned} runs of block {block}"
        for block, (gaps, planned) in progress.missing.items()
        if gaps < planned
    ]
    empty = [str(block) for block, (gaps, planned) in progress.missing.items() if gaps == planned]
    return parts + ([f"all runs of block{'s' * (len(empty) > 1)} {listed(empty)}"] if empty else [])


def _few(settings: Sequence[str]) -> list[str]:
    more = len(settings) - FEW
    return [*settings[:FEW], f"{more} more"] if more > 1 else list(settings)
