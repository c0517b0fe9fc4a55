"""What the documents print, and the same figures here: ``python -m replications.published RESULTS
STUDY``."""

import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import study
from replications.command import run

OWN = ("source", "study", "table", "hardware", "epochs", "metric", "value", "unit", "note")
"""Columns of a ``published.csv``; every other is a key of a study, whose level is a condition of
the figure."""
TIMES = {
    "fit_time": ("fit_seconds", "blog_seconds", "train_seconds"),
    "epoch_time": ("epoch_seconds",),
}
"""The times that a study compares, by the printed one that each can stand beside."""


@dataclass(frozen=True)
class Figure:
    """A printed figure: a row of a ``published.csv``."""

    source: str
    study: str
    table: str
    metric: str
    value: float
    at: dict[str, Any]


@dataclass(frozen=True)
class Document:
    """A document, or several of one lab, with all that they print."""

    name: str
    sources: dict[str, dict[str, Any]]
    figures: list[Figure]


def documents() -> Iterator[Document]:
    """Yield the document of each folder beside this file that has one."""
    for path in sorted(Path(__file__).parent.glob("*/published.csv")):
        sources = yaml.safe_load((path.parent / "sources.yaml").read_text(encoding="utf-8"))
        with path.open(encoding="utf-8", newline="") as file:
            figures = [
                Figure(
                    row["source"],
                    row.get("study", ""),
                    row["table"],
                    row["metric"],
                    float(row["value"]),
                    {
                        key: yaml.safe_load(cell)
                        for key, cell in row.items()
                        if key not in OWN and cell
                    },
                )
                for row in csv.DictReader(file)
                if row["value"]
            ]
        yield Document(path.parent.name, sources, figures)


def beside(document: Document, part: study.StudyResults) -> Iterator[str]:
    """Yield the rows of a Markdown table: each printed time, and the mean here of each setting that
    it is of."""
    planned, analysis = part.plan().study, part.analysis()
    yield "| printed in | setting | printed (s) | here (s) | 95% |"
    yield "| --- | --- | --- | --- | --- |"
    for figure in document.figures:
        if figure.study not in ("", part.name) or planned.total not in TIMES.get(figure.metric, ()):
            continue
        for group in analysis.groups:
            for level in group.levels:
                levels = group.setting.levels | level.setting.levels
                same = all(str(figure.at.get(key, own)) == str(own) for key, own in levels.items())
                if same and level.time:
                    low, high = level.time.low, level.time.high
                    interval = "-" if low is None or high is None else f"{low:.3g} to {high:.3g}"
                    where = f"{group.label}, {level.label}"
                    yield (
                        f"| {figure.table} | {where} | {figure.value:g} | "
                        f"{level.time.value:.3g} | {interval} |"
                    )


def main(arguments: Sequence[str]) -> int:
    """Print the table of a study in a results folder; return the exit code."""
    return run("published RESULTS STUDY", len(arguments) == 2, lambda: table(*arguments))


def table(results: str, name: str) -> Iterator[str]:
    """Yield the rows of the table of the study ``name``: those of the document whose folder has
    it."""
    part = study.open(results)[name]
    homes = {
        path.parent.parent.name for path in Path(__file__).parent.glob(f"*/studies/{name}.yaml")
    }
    for document in documents():
        if document.name in homes:
            yield from beside(document, part)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
