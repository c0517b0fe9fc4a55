"""The page in print: nothing folded, every table whole, its head on each sheet, and the sheets
numbered."""

import io
import re
import unicodedata
from dataclasses import dataclass
from typing import Any

import pytest
from pypdf import PageObject, PdfReader

from tests.browser.chromium import Browser
from tests.browser.conftest import GATED_PAGES, PAGES, probe

pytestmark = pytest.mark.thorough


def squeezed(text: str) -> str:
    """The text without spaces, soft hyphens and ligatures: a line breaks elsewhere in print.

    Letters from right to left are left out: a PDF holds them as they are seen.
    """
    return re.sub(r"[\s\u00ad\u0590-\u05ff\u2066-\u2069]", "", unicodedata.normalize("NFKC", text))


@dataclass(frozen=True)
class Sheet:
    """One printed page: its text without spaces, and each piece of text with its place in shares of
    the paper."""

    text: str
    pieces: list[tuple[float, float, str]]


def read(sheet: PageObject) -> Sheet:
    pieces: list[tuple[float, float, str]] = []
    width, height = float(sheet.mediabox.width), float(sheet.mediabox.height)

    def note(text: str, matrix: list[float], of_text: list[float], *_: Any) -> None:
        x = of_text[4] * matrix[0] + of_text[5] * matrix[2] + matrix[4]
        y = of_text[4] * matrix[1] + of_text[5] * matrix[3] + matrix[5]
        if text.strip():
            pieces.append((x / width, y / height, text.strip()))

    return Sheet(squeezed(sheet.extract_text(visitor_text=note)), pieces)


@dataclass(frozen=True)
class Printed:
    """The sheets, and what the page has: its runs, its tables, and the words of each
    ``summary``."""

    runs: int
    sheets: list[Sheet]
    tables: list[dict[str, Any]]
    summaries: list[str]

    def sheets_of(self, row: list[str]) -> list[Sheet]:
        """The sheets that hold the row in one piece. Its first cell may be painted apart, for it is
        sticky."""
        first, *rest = (squeezed(cell) for cell in row)
        return [
            sheet for sheet in self.sheets if first in sheet.text and "".join(rest) in sheet.text
        ]


@pytest.fixture(scope="module", params=GATED_PAGES)
def printed(browser: Browser, request: pytest.FixtureRequest) -> Printed:
    with browser.page() as page:
        page.open(request.getfixturevalue(request.param))
        if request.param == "thirteen":
            probe(page, "openTwoStudies()")
        pdf = page.pdf()
        page.media(medium="print")
        probe(page, "openDetails()")
        summaries = page.evaluate("[...document.querySelectorAll('summary')].map(s => s.innerText)")
        tables = probe(page, "tables()")
    sheets = [read(sheet) for sheet in PdfReader(io.BytesIO(pdf)).pages]
    return Printed(PAGES[request.param], sheets, tables, summaries)


def test_every_table_is_printed_whole_and_nothing_stays_folded(printed: Printed) -> None:
    assert len(printed.tables) >= 4
    rows = [row for table in printed.tables for row in table["rows"]]
    assert len(rows) > printed.runs  # every run is one
    lost = [row for row in rows if not printed.sheets_of(row)]
    assert not lost, f"{len(lost)} rows are not in print, or cut by the end of a sheet: {lost[:5]}"
    everything = "".join(sheet.text for sheet in printed.sheets)
    assert [summary for summary in printed.summaries if squeezed(summary) not in everything] == []


def test_every_head_is_repeated_on_each_sheet_of_its_table(printed: Printed) -> None:
    spread = 0
    for table in printed.tables:
        # A row that stands on one sheet only says where its table goes on.
        places = [
            found[0]
            for row in table["rows"]
            if len(found := printed.sheets_of(row)) == 1 and len(row) > 2
        ]
        sheets = {id(sheet): sheet for sheet in places}.values()
        spread += len(sheets) > 1
        for head in table["heads"]:
            assert all(squeezed(head) in sheet.text for sheet in sheets), (table["name"], head)
    assert spread or printed.runs < 68, "no table goes over a sheet's end: this test shows nothing"


def test_every_sheet_has_its_number_and_nothing_is_cut_by_its_edge(printed: Printed) -> None:
    for number, sheet in enumerate(printed.sheets, 1):
        margins = [text for _, y, text in sheet.pieces if y < 0.06 or y > 0.94]
        assert any(str(number) in re.findall(r"\d+", text) for text in margins), (number, margins)
        assert [
            piece for piece in sheet.pieces if not 0 <= piece[0] <= 1 or not 0 <= piece[1] <= 1
        ] == []
