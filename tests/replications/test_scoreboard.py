"""The page of all claims: each is there, with the report's own word, and nothing on it was measured elsewhere."""

import re
import shutil
from pathlib import Path

import pytest

import study
from replications.scoreboard import NOT_MEASURED, main
from study.base.files import ROOT
from study.config.load import read_selection, read_study
from study.host.plan.configuration import study_folders
from tests.examples import EXAMPLE

PAGE = ROOT / "docs" / "scoreboard.md"
BUNDLES = [str(path) for path in (ROOT / "docs" / "example" / "results.zip", *sorted(ROOT.glob("docs/claims/*.zip")))]
CELLS = re.compile(r"(?<!\\)\|")


def rows_of(page: str) -> list[list[str]]:
    """The claim with its study's file, its source, the word and what was measured, of each row of the page's tables."""
    lines = [
        line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| claim |", "| ---"))
    ]
    cells = [[cell.strip() for cell in CELLS.split(line)[1:-1]] for line in lines]
    return [[*claim.split("<br>"), *f"{here}<br>".split("<br>")[:2]] for claim, here in cells]


def of_study(rows: list[list[str]], name: str) -> list[list[str]]:
    """The rows of one study, with the claim in place of its link to the study's file."""
    linked = [(re.fullmatch(r"\*\*\[(.*)\]\((.*)\)\*\*", row[0]), row) for row in rows]
    return [[found[1], *row[1:]] for found, row in linked if found and found[2].endswith(f"/{name}.yaml")]


def printed(capsys: pytest.CaptureFixture[str], *results: str | Path) -> str:
    assert main([str(path) for path in results]) == 0
    return capsys.readouterr().out


def test_the_page_has_every_claim_of_every_replication_and_the_reports_words_of_those_that_were_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = EXAMPLE
    rows = rows_of(printed(capsys, results))
    for file in (ROOT / "replications").glob("*/studies/*.yaml"):
        planned = read_study(file.stem, study_folders(), read_selection({"studies": [file.stem]}))
        assert {claim for claim, *_ in of_study(rows, file.stem)} == {claim.claim for claim in planned.claims}
    opened = study.open(results)
    for name in opened:
        own = [row for row in of_study(rows, name) if NOT_MEASURED not in row[2]]
        judged = [row for row in opened[name].claims() if "Not measured" not in row.measured]
        words = [f"**{': '.join(filter(None, [row.word, row.note]))}**" for row in judged]
        assert [row[2] for row in own] == words
        assert all(
            row.measured in cells[3] and "NVIDIA H100" in cells[3] for row, cells in zip(judged, own, strict=True)
        )
    assert {row[2] for row in of_study(rows, "lab-device")} == {f"**{NOT_MEASURED}**"}


def test_results_of_two_machines_are_two_rows_of_one_claim(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    other = tmp_path / "results"
    shutil.copytree(EXAMPLE, other)
    rows = rows_of(printed(capsys, EXAMPLE, other))
    assert len(of_study(rows, "photographs-speedup")) == 2


@pytest.mark.parametrize(("arguments", "code", "words"), [([], 2, "usage"), (["nowhere"], 1, "error: nowhere: not a")])
def test_nothing_to_read_is_one_line(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    told = capsys.readouterr()
    assert words in told.err and not told.out and len(told.err.splitlines()) == 1


@pytest.mark.xdist_group("the example")
def test_the_committed_page_says_what_the_committed_results_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert PAGE.read_text(encoding="utf-8") == printed(capsys, *BUNDLES), "run: make example"
