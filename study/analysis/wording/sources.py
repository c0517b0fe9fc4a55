"""The documents in words."""

from collections.abc import Sequence

from study.analysis.words import listed
from study.artifacts.published import Source

PARTS = {
    "claim": "the text",
    "table": "the table",
    "figure": "the figure",
    "log": "the printed log",
    "comparison": "the table of comparison",
    "model": "the description of the model",
}
"""Parts of a document by their names in the column ``table`` of ``published.csv``; others are the document's own."""


def place_words(tables: Sequence[str], lines: Sequence[int] = ()) -> str:
    """Return the place of figures: the parts of their document, and their lines of ``published.csv``."""
    parts = listed([PARTS.get(table, table) for table in dict.fromkeys(tables)])
    numbers = listed([str(line) for line in lines]) if lines else ""
    return f"{parts}, line{'s' * (len(lines) > 1)} {numbers} of published.csv" if lines else parts


def document(source: Source) -> str:
    """Return the document without its address: ``the blog: Title (blog post, 2025-04-16)``."""
    kind = f"{source.kind}, {source.date}" if source.date else source.kind
    return f"{source.short_name}: {source.title} ({kind})"


def citation(source: Source, place: str) -> str:
    """Return the document, the place in it, and its address."""
    return f"{document(source)}, {place}; {source.address or 'no address is known'}"
