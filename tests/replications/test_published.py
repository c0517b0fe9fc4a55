"""What the published documents print, and what their studies claim."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

import study
from replications import scoreboard
from replications.published import documents, main
from study.analysis.answers.compared import Word
from study.analysis.stats.estimate import Estimate
from study.base.files import ROOT
from study.base.imports import imported
from study.config.claims import Claim
from study.config.load import read_selection, read_study
from study.config.selection import Selection
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


def rows_of(page: str) -> dict[str, list[str]]:
    """The cells of each row of the page's tables, by the claim; a claim with two rows is none of
    the keys."""
    lines = [line for line in page.splitlines() if line.startswith("| **")]
    cells = [[cell.strip() for cell in CELLS.split(line)[1:-1]] for line in lines]
    claims = [first.partition("**<br>")[0].strip("*") for first, *_ in cells]
    return {claim: row for claim, row in zip(claims, cells, strict=True) if claims.count(claim) < 2}


def printed(capsys: pytest.CaptureFixture[str], *results: str | Path) -> str:
    assert scoreboard.main([str(path) for path in results]) == 0
    return capsys.readouterr().out


def stated(
    word: Word, differs: Sequence[str] = (), quotient: float | None = 1.5, **source: str
) -> scoreboard.Stated:
    """A claim whose measurement got this word."""
    sides = {"slower": {"device": "cpu"}, "faster": {"device": "cuda"}}
    told = {"claim": "A is 2 times as fast", "ratio": 2, "differs": [*differs]}
    claim = Claim.model_validate(told | sides | {"source": {"title": "<i>T</i>"} | source})
    over = Estimate(value=quotient, low=quotient, high=quotient) if quotient else None
    row = study.ClaimRow(
        claim=claim.claim, here=None, over=over, points=False, within=0.1,
        measured="3 <script> times", word=word, note="", better="", grade=claim.grade,
        differs=claim.differs, source="<i>T</i>.", address=None, marks=[],
    )  # fmt: skip
    measured = [scoreboard.Measured(row, claim, [], Path("/elsewhere/of-him.zip"))]
    file = ROOT / "replications" / "a.yaml"
    return scoreboard.Stated(claim, "Group", {file: claim}, measured if quotient else [])


def page_of(*claims: scoreboard.Stated) -> str:
    return scoreboard.rendered("html", scoreboard.contents(claims), ROOT / "docs")


def test_the_page_has_every_claim_with_the_reports_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    opened, rows = study.open(EXAMPLE), rows_of(printed(capsys, EXAMPLE))
    for path in [*STUDIES, *(ROOT / "docs" / "example").glob("*.yaml")]:
        for claim in read_study(str(path), [], Selection()).claims:
            first, theirs, ours = rows[scoreboard.escaped(claim.claim)]
            assert f"`study start {path.relative_to(ROOT)}`" in first
            assert not claim.source.hardware or claim.source.hardware in theirs
            assert ours != "not measured" or path.stem not in opened
    for name in opened:
        for row in opened[name].claims(str(ROOT / "docs" / "example" / f"{name}.yaml")):
            told = rows[scoreboard.escaped(row.claim)][2]
            word = "\N{EN DASH} another job" if row.grade == "C" else f"**{row.word}**"
            assert f"{word}, {row.grade}: {scoreboard.escaped(row.measured)}" in told
            assert row.quotient in told and "NVIDIA H100" in told


def test_a_claim_of_two_studies_is_one_row_and_results_of_two_machines_share_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = tmp_path / "results"
    shutil.copytree(EXAMPLE, other)
    first, _, ours = rows_of(printed(capsys, EXAMPLE, other))[
        "The GPU is 9.97 times as fast as the CPU"
    ]
    assert first.count("study start") >= 2 and ours.count("Records: ") == 2
    assert str(tmp_path) not in ours, "no path of this machine"


def test_the_headline_counts_each_published_claim_once() -> None:
    told = [stated("same here"), stated("same here"), stated("less here"), stated("cannot tell")]
    hidden = stated("more here", kind="report, unpublished")
    page = page_of(*told, stated("another job", "ab"), stated("same here", quotient=None), hidden)
    assert "Of 6 published claims <strong>4 were measured on a like job</strong>" in page
    assert "2 <strong>same here</strong>, 1 <strong>less here</strong>; 1 cannot be told" in page
    assert "1 another job" in page and "1 not measured" in page and "1 of a report, unp" in page


def test_a_claim_counts_by_the_measurements_of_its_best_grade_that_can_tell() -> None:
    one, silent, like = stated("same here"), stated("cannot tell"), stated("less here", "a")
    one.measured += [*silent.measured, *like.measured]
    assert one.word == "same here"
    one.measured += stated("less here").measured
    assert one.word == scoreboard.MIXED


def test_another_job_has_no_word_and_a_grey_mark() -> None:
    body = page_of(stated("another job", "ab")).partition("<tbody>")[2]
    assert 'class="grey"' in body and "<circle" in body and "<b>another" not in body


def test_a_quotient_stands_on_one_logarithmic_axis() -> None:
    assert [scoreboard.place(one, 2) for one in (0.25, 0.5, 1, 2, 9)] == [0, 25, 50, 75, 100]
    page = page_of(stated("more here", quotient=2**0.5), stated("less here", quotient=0.3))
    assert '<svg x="62.5%"' in page


def test_the_page_for_browsers_has_no_script_and_escapes_every_text() -> None:
    page = page_of(stated("same here"))
    assert "<script" not in page and "<i>T" not in page and "3 &lt;script&gt; times" in page
    assert "of-him.zip" in page and "elsewhere" not in page
    kept = PAGE.with_suffix(".html").read_text(encoding="utf-8")
    links = {link for link in re.findall(r'href="([^"#]*)', kept) if "://" not in link}
    assert {"claims/h100.zip", "../replications/gpu_lab/studies/lab-device.yaml"} <= links
    assert all((PAGE.parent / link).exists() for link in links)


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
def test_the_committed_pages_have_the_numbers_of_the_committed_results(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """``make example`` writes them, at a release: their words may be those of before."""
    written = tmp_path / "page.html"
    now = printed(capsys, *BUNDLES, "--page", written)
    pages = [(PAGE, now), (PAGE.with_suffix(".html"), written.read_text(encoding="utf-8"))]
    for path, text in pages:
        kept = path.read_text(encoding="utf-8")
        assert re.findall(r"\d[\d.,]*", kept) == re.findall(r"\d[\d.,]*", text), "run: make example"


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_program_of_a_study_imports_nothing_that_its_copy_has_not(path: Path) -> None:
    """Where the checkout is installed, its packages would hide it."""
    for script in re.findall(r"replications/\S+\.py", path.read_text(encoding="utf-8")):
        tops = {name.partition(".")[0] for name in imported(ROOT / script)}
        assert not tops & {"replications", "study", "study_extras", "tests"}
