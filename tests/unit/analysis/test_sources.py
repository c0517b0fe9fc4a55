"""The documents of the published figures."""

import csv
import re

import pytest

from study.analysis.published.claims import examine
from study.analysis.published.sources import FILE, SOURCES, read_sources
from study.analysis.published.table import read_published
from study.analysis.wording.sources import citation, document, place_words
from study.base.files import ROOT


def test_every_published_figure_names_a_document_that_is_known() -> None:
    assert set(read_published()["source"]) == set(SOURCES)
    for source in read_sources().values():
        assert source.title and source.short_name and source.kind


def test_the_facts_are_those_of_the_shared_list() -> None:
    shared = ROOT.parent / "shared" / "published" / "sources.csv"
    if not shared.is_file():
        pytest.skip("the shared list is not here")
    ours = FILE.read_text(encoding="utf-8")
    assert ours.startswith(shared.read_text(encoding="utf-8").rstrip("\n"))


def test_no_field_but_an_address_can_hold_a_persons_account_or_number() -> None:
    with FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for key, value in row.items():
                if key not in ("address", "source"):
                    assert "@" not in value
                    assert not re.search(r"\d{7,}", value)
            assert not row["address"] or re.fullmatch(r"https://[\w./-]+", row["address"])


def test_the_figure_that_the_blog_shows_is_the_blogs() -> None:
    blog, figure = SOURCES["004_b14b822f990ad850.txt"], SOURCES["blog figure batch_size_performance.png"]
    assert (figure.title, figure.address, figure.date) == (blog.title, blog.address, blog.date)


def test_a_citation_names_the_document_the_place_and_the_address() -> None:
    (claim,) = [claim for claim in examine(read_published()) if claim.ratio == 9.97]
    assert citation(claim.source, claim.place) == (
        "the blog: GPU Acceleration: Unravelling Deep Learning Performance Gains (blog post, 2025-04-16), the text, "
        "line 118 of published.csv; https://github.com/Zyzzbarth333/elec4630-blog"
    )


def test_a_document_without_date_or_address_says_neither() -> None:
    lab = SOURCES["003_791f3bb9791d309a.txt"]
    assert document(lab) == "GPU lab (report B): Lab parts 1 to 5: training on CPU and GPU (student's lab report)"
    assert citation(lab, "part 2").endswith("(student's lab report), part 2; no address is known")


def test_places_are_named_once_with_every_line() -> None:
    assert place_words(["table", "table", "part 2"], [3, 5, 9]) == (
        "the table and part 2, lines 3, 5 and 9 of published.csv"
    )
    assert place_words(["log"]) == "the printed log"
