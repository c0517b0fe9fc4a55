"""The documents that published the figures and claims."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parent / "sources.csv"


@dataclass(frozen=True)
class Source:
    """A published document. Its author is left out: the documents are those of students, or name none."""

    file: str
    """Its name in the column ``source`` of ``published.csv``."""
    short_name: str
    title: str
    kind: str
    date: str | None
    """Day of its publication as YYYY-MM-DD; None where none is printed."""
    address: str | None
    note: str | None


def read_sources() -> dict[str, Source]:
    """Return every document by the name of its file, in the order of ``sources.csv``."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return {row["source"]: _source(row) for row in csv.DictReader(file)}


def _source(row: Mapping[str, str]) -> Source:
    return Source(
        file=row["source"],
        short_name=row["short_name"],
        title=row["title"],
        kind=row["kind"],
        date=row["date"] or None,
        address=row["address"] or None,
        note=row["note"] or None,
    )


SOURCES = read_sources()
