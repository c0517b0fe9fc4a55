"""All claims of all replications beside what was measured: ``python -m replications.scoreboard
RESULTS...``."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

import study
from replications.command import run

HERE = Path(__file__).parent
EXAMPLE = "example"
"""The folder of ``docs`` whose studies are examined, too: they train on photographs, which no
replication has."""
HEAD = """# Published claims, measured again

What {sources} claim about training speed, beside what was measured here.
`python -m replications.scoreboard RESULTS...` writes this page from any results folders or bundles.

{counts}

The words are those of the report, which has
[the exact rule of each](reading-the-report.md#the-words-of-a-verdict).
A row is **not decided** where its interval reaches into the margin around the claim (5%, if its
study names no other), or where it has none: the runs are too few, or within blocks the machine's
own speed changed as much as the settings differ. A claim about several settings has a row for each.

The source had other hardware, so "contradicted" does not say that a number was wrong there. It
says that it does not carry over to the machine that is named here. Each claim leads to its study,
which measures it on your machine."""
COLUMNS = ("claim and source", "measured here")
NOT_MEASURED = "not measured"
LOST = "An older version measured it in another way: it waits to be measured again, as a command."


@dataclass(frozen=True)
class Row:
    """One claim at one setting, on one machine: a row of the page."""

    claim: str
    source: str
    address: str | None
    measured: str
    word: str
    study: Path

    def cells(self) -> str:
        """Return the row of the table."""
        source = escaped(self.source) + (f" [Source]({self.address})" if self.address else "")
        claim = f"**[{escaped(self.claim)}](../{self.study.relative_to(HERE.parent)})**"
        here = "<br>".join(filter(None, [f"**{self.word}**", escaped(self.measured)]))
        return f"| {claim}<br>{source} | {here} |"


def escaped(text: str) -> str:
    """Return the text as Markdown shows it inside a table."""
    for mark in "\\|[]<>*_`":
        text = text.replace(mark, f"\\{mark}")
    return text


def made(part: study.StudyResults) -> str:
    """Return how many runs in how many starts a study has, and the devices that they were measured
    on.

    Beside a CPU's name stands how many threads its trainings had.
    """
    devices, starts = dict[str, None](), dict[int, int]()
    for record in part.records().values():
        if record.outcome == "ok" and record.machine and record.measurement:
            name, on_cpu = record.machine.device_name, record.settings.device == "cpu"
            devices[f"{name} ({record.measurement.threads} threads)" if on_cpu else name] = None
            starts[record.session] = starts.get(record.session, 0) + 1
    runs = f"{sum(starts.values())} runs in {len(starts)} start{'s' * (len(starts) > 1)}"
    return f"{runs} on {' and '.join(devices)}"


def rows_of(file: Path, results: Sequence[study.ResultsFolder]) -> Iterator[Row]:
    """Yield the rows of each claim of a study's file: one for each of the results that measured it,
    or one for none."""
    found, lost = [], ""
    for part in (folder[file.stem] for folder in results if file.stem in folder.studies):
        try:
            found += [(row, made(part)) for row in part.claims() if was_measured(row)]
        except study.StudyError as error:
            if error.key != "study.task":  # its plan asks for what nothing measures any more
                raise
            lost = LOST
    for claim in yaml.safe_load(file.read_text(encoding="utf-8")).get("claims", []):
        own = [
            (row, on)
            for row, on in found
            if row.claim == claim["claim"] and row.claimed == number_of(claim)
        ]
        for row, on in own:
            word = f"{row.word}: {row.note}" if row.note else row.word
            yield Row(row.claim, row.source, row.address, f"{row.measured}; {on}", word, file)
        if not own:
            source = claim["source"]
            told = [
                str(source[key])
                for key in ("title", "place", "date", "runs", "hardware", "differs")
                if key in source
            ]
            yield Row(
                claim["claim"], ", ".join(told), source.get("address"), lost, NOT_MEASURED, file
            )


def was_measured(row: study.ClaimRow) -> bool:
    """Return whether any run tells of the claim."""
    return not row.measured.startswith("Not measured")


def number_of(claim: dict[str, Any]) -> float | None:
    """Return the claimed number, or None where a claim has several, or names a setting."""
    kinds = ("ratio", "seconds", "accuracy", "images_per_second")
    return next((float(claim[kind]) for kind in kinds if kind in claim), None)


def title_of(folder: str) -> str:
    """Return what a replication is of, by the first line of its package."""
    if folder == EXAMPLE:
        return "The GPU blog's claims on photographs"
    return (
        (HERE / folder / "__init__.py")
        .read_text(encoding="utf-8")
        .splitlines()[0]
        .strip('".')
        .partition(":")[0]
    )


def page(results: Sequence[study.ResultsFolder]) -> str:
    """Return the page in Markdown."""
    folders: dict[str, list[Row]] = {}
    for file in sorted(HERE.glob("*/studies/*.yaml")):
        folders.setdefault(file.parent.parent.name, []).extend(rows_of(file, results))
    for file in sorted((HERE.parent / "docs" / EXAMPLE).glob("*.yaml")):
        folders.setdefault(EXAMPLE, []).extend(rows_of(file, results))
    rows = list(chain(*folders.values()))
    words = [row.word.partition(":")[0] for row in rows]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(sorted(words)))
    sources = len({row.address or row.source.partition(",")[0] for row in rows})
    text = [
        HEAD.format(sources=f"{sources} published sources", counts=f"{len(rows)} rows: {counts}.")
    ]
    for folder, some in sorted(folders.items(), key=lambda item: -len(item[1])):
        head = [
            f"## {title_of(folder)}\n",
            f"| {' | '.join(COLUMNS)} |",
            "| --- " * len(COLUMNS) + "|",
        ]
        text.append("\n".join([*head, *(row.cells() for row in some)]))
    return "\n\n".join(text)


def main(arguments: Sequence[str]) -> int:
    """Print the page of some results; return the exit code."""
    return run(
        "scoreboard RESULTS...",
        bool(arguments),
        lambda: [page([study.open(path) for path in arguments])],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
