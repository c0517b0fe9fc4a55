"""The blog's post and its figures: their numbers are those of the analysis, and what they quote is text."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt

import study
from replications.gpu_blog import figures, markdown
from replications.gpu_blog.post import interval, main, number, seconds
from study.base.files import ROOT
from study.base.imports import imported
from tests.examples import EXAMPLE, STUDIES

pytestmark = pytest.mark.xdist_group("a post of the example")
HOSTILE = [
    "<script>alert(1)</script>",
    "**bold** _under_ `code` [link](http://a.example) ![x](y)",
    "a | b | c",
    "{{ site.secret }} {% raw %}",
    "$x$ ~~gone~~ # no heading",
    "שלום עולם \u202etxt.exe",
    "two\nlines\n\n# and a heading",
    "\x1b[31mred\x07",
    "www.a.example &amp; &lt;b&gt;",
    "T" * 300,
]


class Read(HTMLParser):
    """A post as a reader sees it: its text, tables, pictures and links."""

    def __init__(self, post: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.feed(MarkdownIt("commonmark").enable("table").render(post))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag in ("p", "h2", "h3", "h4", "li", "td", "th"):
            self.blocks.append("")

    def handle_data(self, data: str) -> None:
        if data.strip() and self.tags[-1][0] in ("td", "th"):
            self.tables[-1][-1][-1] += data
        if self.blocks:
            self.blocks[-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self.tables[-1][-1][-1] = self.tables[-1][-1][-1].strip()

    @property
    def text(self) -> str:
        return "\n".join(block.strip() for block in self.blocks)

    def table(self, *head: str) -> Iterator[list[dict[str, str]]]:
        """Yield the rows of each table whose heading begins with these columns."""
        for first, *rows in self.tables:
            if first[: len(head)] == list(head):
                yield [dict(zip(first, row, strict=True)) for row in rows]


def split(post: Path) -> tuple[dict[str, Any], str]:
    """The values of the front matter, and the post below it."""
    before, front, body = post.read_text(encoding="utf-8").split("---\n", 2)
    assert before == ""
    values = yaml.safe_load(front)
    assert isinstance(values, dict)
    return values, body


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The post about the committed example."""
    output = tmp_path_factory.mktemp("blog")
    assert main([str(EXAMPLE), str(output)]) == 0
    return output


@pytest.fixture(scope="module")
def post(folder: Path) -> Path:
    (found,) = folder.glob("*.md")
    return found


@pytest.fixture(scope="module")
def seen(post: Path) -> Read:
    return Read(split(post)[1])


def test_the_front_matter_is_what_a_sites_generator_reads(post: Path, folder: Path) -> None:
    values, _ = split(post)
    assert values["title"] == (
        "Ways to train on photographs, Speed-up of the GPU on photographs, Switches of a GPU on photographs"
    )
    assert values["date"] == datetime(2026, 11, 27, 16, 37, 2, tzinfo=UTC)  # the last record's
    assert post.name.startswith("2026-11-27-")
    assert values["description"] == study.open(EXAMPLE)["photographs"].answer()[0]
    assert values["categories"] == ["deep-learning", "hardware", "performance"]
    assert (folder / values["image"]).is_file()
    assert re.match(r"---\ndate: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00\n", post.read_text(encoding="utf-8"))


def test_every_time_share_and_ratio_is_that_of_the_analysis(seen: Read) -> None:
    tables = seen.table("Batch Size", "Training Time")
    for group in study.open(EXAMPLE)["photographs"].analysis().groups:
        rows, least = next(tables), min(level.time.value for level in group.levels if level.time)
        for row, level in zip(rows, group.levels, strict=True):
            assert level.time is not None
            assert row["Batch Size"] == level.label
            assert row["Training Time"] == seconds(level.time.value)
            assert row["95% interval"] == interval(level.time)
            share = f"{100 * least / level.time.value:.1f}%"
            assert row["Relative Performance"] == share
            assert row["Relative Performance, corrected"] == ("-" if level.label in group.unfair else share)
            assert row["Accuracy"] == f"{level.accuracy:.1%}"
            assert row["Runs"] == str(level.runs)
    (ratios,) = seen.table("Setting", "Compared", "First Time", "Second Time", "Speedup Factor")
    found = study.open(EXAMPLE)["photographs-speedup"].analysis().ratios
    assert [row["Speedup Factor"] for row in ratios] == [number(ratio.ratio.value) for ratio in found]
    assert [row["First Time"] for row in ratios] == [seconds(ratio.slower_seconds) for ratio in found]


def test_each_claim_stands_beside_what_was_measured_with_its_word(seen: Read) -> None:
    (rows,) = seen.table("Claim", "Measured here")
    claims = [row for name in STUDIES for row in study.open(EXAMPLE)[name].claims()]
    assert [row["Claim"] for row in rows] == [claim.claim for claim in claims]
    assert [row["Measured here"] for row in rows] == [claim.measured for claim in claims]
    assert [row["Verdict"].partition(":")[0] for row in rows] == [
        "not decided", "contradicted", "contradicted",
    ]  # fmt: skip


def test_the_post_copies_no_sentence_of_the_blog(post: Path) -> None:
    text = post.read_text(encoding="utf-8")
    for phrase in ("deep dive", "classic U-shaped", "dramatic", "transformative"):
        assert phrase not in text


def test_every_picture_is_there_under_the_blogs_name_or_ours(seen: Read, folder: Path) -> None:
    pictures = [str(values["src"]) for tag, values in seen.tags if tag == "img"]
    assert all((folder / picture).read_bytes().startswith(b"\x89PNG") for picture in pictures)
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.png")} == set(pictures)
    assert {"images/photographs/batch_size_performance.png", "images/photographs/GPU-batch-test.png"} <= set(pictures)
    assert all(len(str(values["alt"])) > 20 for tag, values in seen.tags if tag == "img")


def test_every_table_has_equal_numbers_of_cells(post: Path, seen: Read) -> None:
    assert len(seen.tables) == 11
    for table in seen.tables:
        assert {len(row) for row in table} == {len(table[0])}
        assert all(cell for row in table for cell in row)
    # A reader of tables that splits at each bar, whatever it means, finds the same.
    lines = split(post)[1].splitlines()
    for one, other in pairwise(lines):
        if one.startswith("|") and other.startswith("|"):
            assert one.count("|") == other.count("|")


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_is_shown_as_text(hostile: str) -> None:
    shown = " ".join(hostile.split()).replace("\u202e", "\\u202e").replace("\x1b", "\\x1b").replace("\x07", "\\x07")
    written = "\n\n".join(
        [f"## {markdown.inline(hostile)}", markdown.paragraph(hostile), f"- {markdown.paragraph(hostile)}"]
    )
    cell = markdown.inline(hostile)
    written += f"\n\n| a | {cell} |\n| --- | --- |\n| {cell} | 1 |"
    seen = Read(written)
    assert [block.strip() for block in seen.blocks] == [shown, shown, shown, "a", shown, shown, "1"]
    assert {tag for tag, _ in seen.tags} == {"h2", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}
    assert not re.search(r"[<${}]|\bhttp://|\bwww\.", written)  # nor for a site's templates, formulas and links
    assert all(one == "\n" or one.isprintable() for one in written)
    values = yaml.safe_load(markdown.front_matter(datetime(2026, 1, 1, tzinfo=UTC), {"title": hostile})[4:-4])
    assert values["title"].isprintable()
    assert not set("<>{}") & set(values["title"])


def test_the_blogs_figures_are_written_under_their_own_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert figures.main([str(EXAMPLE), str(tmp_path / "blog")]) == 0
    assert sorted(path.name for path in (tmp_path / "blog").iterdir()) == [
        "GPU-batch-test.png", "batch_size_performance.png",
    ]  # fmt: skip
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (tmp_path / "blog").iterdir())
    assert not capsys.readouterr().err


@pytest.mark.parametrize("module", [figures.main, main])
def test_results_without_a_study_are_a_line(
    module: Callable[[Sequence[str]], int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert module([str(tmp_path), str(tmp_path / "blog")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert module([str(tmp_path)]) == 2


def test_what_belongs_to_a_document_uses_the_public_interface_alone_and_the_core_none_of_it() -> None:
    for file in (ROOT / "replications").rglob("*.py"):
        assert {name for name in imported(file) if name.partition(".")[0].startswith("study")} <= {"study"}, file
    for file in (file for package in ("study", "study_extras") for file in (ROOT / package).rglob("*.py")):
        assert not [name for name in imported(file) if name.partition(".")[0] == "replications"], file
