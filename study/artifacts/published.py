"""What a published document prints: its sources, and its figures with our keys as their conditions.

A replication is a folder of ``replications``. Its ``sources.yaml`` names the document, and each row of its
``published.csv`` is a printed figure. A plan holds those that concern its study.
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError

from study.base import strict_yaml
from study.base.checkout import replications
from study.base.errors import StudyError
from study.base.files import read_text
from study.base.strict import LARGEST, Strict, explain
from study.config.settings import setting_keys

FIGURES, SOURCES = "published.csv", "sources.yaml"


class PrintedData(Strict):
    """The images on which a document trained."""

    name: str
    images: int = Field(gt=0)
    image_size: int = Field(gt=0, description="Height and width in pixels.")


class Source(Strict):
    """A published document. Its author is left out: the documents are those of students, or name none."""

    short_name: str
    title: str
    kind: str
    date: str | None = Field(None, description="Day of its publication as YYYY-MM-DD; none where none is printed.")
    address: str | None = None
    note: str | None = None
    dataset: PrintedData | None = Field(None, description="None where it is not printed.")


class Figure(Strict):
    """A printed figure: a row of ``published.csv``."""

    line: int = Field(description="Its line in the file; the first is the header.")
    source: str = Field(description="Its source, by the key that ``sources.yaml`` has.")
    study: str | None = Field(None, description="The study that repeats it; none: every study of the replication.")
    table: str = Field(description="The part of the document that prints it.")
    hardware: str | None = None
    epochs: str | None = None
    metric: str
    value: float
    unit: str
    note: str | None = None
    at: dict[str, bool | str | int | float] = Field(description="Its printed conditions: levels by dotted key.")


class Published(Strict):
    """The printed figures of one replication, all or those that concern one study."""

    name: str = Field(description="The replication's folder.")
    sources: dict[str, Source]
    figures: list[Figure]

    def about(self, study: str) -> Self:
        """Return what concerns ``study``: the figures that name it or no study, or all if none names it."""
        named = [figure for figure in self.figures if figure.study == study]
        if not named:
            return self
        figures = [figure for figure in self.figures if figure.study in (study, None)]
        used = {figure.source for figure in figures}
        sources = {key: source for key, source in self.sources.items() if key in used}
        return self.model_copy(update={"figures": figures, "sources": sources})


def published_by(key: str, name: str, study: str) -> Published:
    """Return the figures of the replication ``name`` that concern ``study``, whose ``key`` names it.

    Raise :class:`StudyError` if there is no such replication, or if its files are not as they should be.
    """
    known = {one: folder for one, folder in replications().items() if (folder / FIGURES).is_file()}
    if name not in known:
        raise StudyError(source=f"study {study}", key=key, value=name, why="no such replication", allowed=known)
    return read_published(known[name]).about(study)


def all_published() -> list[Published]:
    """Return the figures of every replication that has some."""
    return [read_published(folder) for folder in replications().values() if (folder / FIGURES).is_file()]


def read_published(folder: Path) -> Published:
    """Return all figures of the replication in ``folder``. Raise :class:`StudyError` with the line that is wrong."""
    name = f"{folder.name}/{SOURCES}"
    try:
        sources = {key: Source.model_validate(one) for key, one in strict_yaml.read_mapping(folder / SOURCES).items()}
    except ValidationError as error:
        raise explain(error, Source, name) from None
    rows = csv.DictReader(read_text(folder / FIGURES, LARGEST).splitlines())
    own = {*Figure.model_fields} - {"line", "at"}
    conditions = [column for column in rows.fieldnames or () if column not in own]
    for column in conditions:
        if column not in setting_keys():
            raise StudyError(source=f"{folder.name}/{FIGURES}", key=column, why="no such key of a study")
    figures = [
        _figure(row, line, conditions, sources, f"{folder.name}/{FIGURES}, line {line}")
        for line, row in enumerate(rows, start=2)
        if row.get("value")
    ]
    return Published(name=folder.name, sources=sources, figures=figures)


def _figure(
    row: Mapping[str, str], line: int, conditions: list[str], sources: Mapping[str, Source], where: str
) -> Figure:
    """Return the figure in a row, whose empty cells are what the document does not print."""
    values: dict[str, Any] = {key: cell for key, cell in row.items() if cell and key not in conditions}
    if values.get("source") not in sources:
        raise StudyError(source=where, key="source", value=values.get("source"), allowed=sources)
    at = {key: strict_yaml.parse_leaves(row[key], f"{where}: {key}") for key in conditions if row[key]}
    try:
        return Figure.model_validate(values | {"line": line, "value": float(values["value"]), "at": at})
    except ValidationError as error:
        raise explain(error, Figure, where) from None
    except ValueError:
        raise StudyError(source=where, key="value", value=values["value"], allowed="a number") from None
