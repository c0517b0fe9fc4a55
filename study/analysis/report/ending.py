"""The step ``answer``: what the terminal says at the end of a start, the same words as the page's first screen."""

from collections.abc import Sequence
from pathlib import Path

from study.analysis.analysis import Analysis, read_analysis
from study.artifacts.layout import Results
from study.artifacts.plan import Selected


def ending(studies: Sequence[str], results: Path) -> list[str]:
    """Return the first screen of each study, and the report's address, in lines.

    Without ``studies`` they are those of the last start. Raise :class:`StudyError` where a file is missing.
    """
    files = Results(results)
    names = list(studies) or Selected.read(files.selection, "name the studies of an earlier start").studies
    lines = []
    for name in names:
        lines += [*([f"{name}:"] if len(names) > 1 else []), *screen_lines(read_analysis(files.fit(name)))]
    if files.report.is_file():
        lines.append(f"report  {files.report.resolve().as_uri()}")
    return lines


def screen_lines(analysis: Analysis) -> list[str]:
    """Return one study's first screen, each line with its name before it."""
    screen = analysis.screen
    parts = [("answer", analysis.answer.replace("**", "")), ("job", "; ".join(screen.job))]
    for row, before in zip(analysis.claims, [None, *analysis.claims], strict=False):
        claim = "the same" if before and before.claim == row.claim else f'"{row.claim}"'
        parts.append(("claim", f"{row.word}: {claim}. {row.measured}{f': {row.note}' if row.note else ''}"))
    if screen.limit:
        parts.append(("limit", f"{screen.limit.phase}: {screen.limit.text[0].lower()}{screen.limit.text[1:]}"))
    may = " ".join(f"{change.cause} {change.becomes}" for change in screen.changes)
    more = screen.other_notes
    notes = (
        f"{more} {'more ' * bool(may)}note{'s' * (more != 1)}{'; none changes a verdict' * (not may)}" if more else ""
    )
    if may or notes:
        parts.append(("may", f"{may} {notes}.".strip() if notes else may))
    if screen.next:
        command = f": {screen.next.command}" if screen.next.command else f". {screen.next.text}"
        parts.append(("next", f"{screen.next.title}{command}"))
    return [f"{name:<8}{text}" for name, text in parts if text]
