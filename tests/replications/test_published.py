"""What the published documents print, and what their studies claim."""

import re
import shutil
from pathlib import Path

import pytest

import study
from replications import scoreboard
from replications.published import documents, main
from study.base.files import ROOT
from study.config.load import read_selection, read_study
from study.config.study import Study
from study.host.plan.configuration import study_folders
from tests.conftest import tiny_plan
from tests.examples import EXAMPLE
from tests.unit.analysis.test_report import analysed, with_gpu

PUBLISHED = {one.name: one for one in documents()}
STUDIES = sorted((ROOT / "replications").glob("*/studies/*.yaml"))
OF_THE_FIELD = sorted((ROOT / "replications" / "field" / "studies").glob("*.yaml"))


def named(name: str) -> Study:
    return read_study(name, study_folders(), read_selection({"studies": [name]}))


@pytest.mark.parametrize(
    "path",
    [path for path in STUDIES if path.parent.parent.name in PUBLISHED],
    ids=lambda path: path.stem,
)
def test_a_studys_claims_are_the_printed_numbers_of_its_own_document(path: object) -> None:
    """A ratio of 1 is a sentence of the lab, and no printed number."""
    (path,) = [one for one in STUDIES if one == path]
    document = PUBLISHED[path.parent.parent.name]
    printed = {(figure.metric, figure.value) for figure in document.figures}
    for claim in named(path.stem).claims:
        assert claim.source.title in {source["title"] for source in document.sources.values()}
        assert claim.ratio in (None, 1) or ("speedup", claim.ratio) in printed
        assert all(("relative_performance", share.percent) in printed for share in claim.shares)


@pytest.mark.parametrize("path", OF_THE_FIELD, ids=lambda path: path.stem)
def test_a_claim_of_the_field_says_where_it_stands(path: Path) -> None:
    """A study of at most 40 lines, that needs neither data nor weights from elsewhere."""
    planned, text = named(path.stem), path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    assert planned.claims
    own = planned.command and "python replications/" in planned.command.line
    assert own or (planned.dataset.source, planned.model.weights) == ("generated", "none")
    for claim in planned.claims:
        source = claim.source
        assert source.title and source.date and source.address
        assert source.hardware or not (claim.ratio or claim.shares)


def test_every_printed_ratio_and_share_is_claimed_by_a_study() -> None:
    claims = [claim for path in STUDIES for claim in named(path.stem).claims]
    claimed = (
        {claim.ratio for claim in claims}
        | {share.percent for claim in claims for share in claim.shares}
        | {100}
    )
    metrics = ("speedup", "relative_performance")
    assert {
        figure.value
        for one in PUBLISHED.values()
        for figure in one.figures
        if figure.metric in metrics
    } <= claimed


def test_a_printed_time_stands_beside_what_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    factors = {
        "device": ["cuda"],
        "training.loop": ["fastai", "torch"],
        "training.batch_size": [8, 16],
    }
    plan = tiny_plan(factors=factors, loader={"kind": "workers"})
    groups = analysed(with_gpu(plan.model_copy(update={"name": "batch-size"})), tmp_path).groups
    assert main([str(tmp_path), "batch-size"]) == 0
    rows = [row.strip("| ").split(" | ")[:4] for row in capsys.readouterr().out.splitlines()[2:]]
    (time,) = (one.time for one in groups[0].levels if one.label == "16")  # of stock fastai alone
    here = ["GPU, fastai, 16", f"{time.value:.3g}" if time else ""]
    assert rows == [["table", here[0], "9.44", here[1]], ["figure", here[0], "12.54", here[1]]]
    assert main([str(tmp_path), "none"]) == 1
    assert main([]) == 2


PAGE = ROOT / "docs" / "scoreboard.md"
BUNDLES = [
    str(path)
    for path in (ROOT / "docs" / "example" / "results.zip", *sorted(ROOT.glob("docs/claims/*.zip")))
]
CELLS = re.compile(r"(?<!\\)\|")


def rows_of(page: str) -> list[list[str]]:
    """The claim with its study's file, its source, the word and what was measured, of each row of
    the page's tables."""
    lines = [
        line
        for line in page.splitlines()
        if line.startswith("| ") and not line.startswith(("| claim |", "| ---"))
    ]
    cells = [[cell.strip() for cell in CELLS.split(line)[1:-1]] for line in lines]
    return [[*claim.split("<br>"), *f"{here}<br>".split("<br>")[:2]] for claim, here in cells]


def of_study(rows: list[list[str]], name: str) -> list[list[str]]:
    """The rows of one study, with the claim in place of its link to the study's file."""
    linked = [(re.fullmatch(r"\*\*\[(.*)\]\((.*)\)\*\*", row[0]), row) for row in rows]
    return [
        [found[1], *row[1:]]
        for found, row in linked
        if found and found[2].endswith(f"/{name}.yaml")
    ]


def printed(capsys: pytest.CaptureFixture[str], *results: str | Path) -> str:
    assert scoreboard.main([str(path) for path in results]) == 0
    return capsys.readouterr().out


def test_the_page_has_every_claim_with_the_reports_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = EXAMPLE
    rows = rows_of(printed(capsys, results))
    for file in (ROOT / "replications").glob("*/studies/*.yaml"):
        planned = read_study(file.stem, study_folders(), read_selection({"studies": [file.stem]}))
        assert {claim for claim, *_ in of_study(rows, file.stem)} == {
            claim.claim for claim in planned.claims
        }
    opened = study.open(results)
    for name in opened:
        own = [row for row in of_study(rows, name) if scoreboard.NOT_MEASURED not in row[2]]
        judged = [row for row in opened[name].claims() if "Not measured" not in row.measured]
        words = [f"**{': '.join(filter(None, [row.word, row.note]))}**" for row in judged]
        assert [row[2] for row in own] == words
        assert all(
            row.measured in cells[3] and "NVIDIA H100" in cells[3]
            for row, cells in zip(judged, own, strict=True)
        )
    assert {row[2] for row in of_study(rows, "lab-device")} == {f"**{scoreboard.NOT_MEASURED}**"}


def test_results_of_two_machines_are_two_rows_of_one_claim(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = tmp_path / "results"
    shutil.copytree(EXAMPLE, other)
    rows = rows_of(printed(capsys, EXAMPLE, other))
    assert len(of_study(rows, "photographs-speedup")) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"), [([], 2, "usage"), (["nowhere"], 1, "error: nowhere: not a")]
)
def test_no_results_are_one_line(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scoreboard.main(arguments) == code
    told = capsys.readouterr()
    assert words in told.err and not told.out and len(told.err.splitlines()) == 1


@pytest.mark.xdist_group("the example")
def test_the_committed_page_has_the_numbers_of_the_committed_results(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``make example`` writes it, at a release: its words may be those of before."""
    kept, now = (
        [re.findall(r"\d[\d.,]*", "".join(row[2:])) for row in rows_of(text)]
        for text in (PAGE.read_text(encoding="utf-8"), printed(capsys, *BUNDLES))
    )
    assert kept == now, "run: make example"
