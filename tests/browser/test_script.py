"""What the page's script adds, by a real mouse. Each test is one sentence of its contract."""

import json
import re
from pathlib import Path

import pytest

from tests.browser.chromium import Page
from tests.browser.conftest import PROBES, probe
from tests.examples import STUDIES

pytestmark = pytest.mark.thorough


@pytest.fixture
def opened(page: Page, example: Path) -> Page:
    page.open(example)
    return page


def test_every_run_is_a_dot_that_links_to_its_row_and_the_row_to_its_record(
    opened: Page, example: Path
) -> None:
    rows = set(
        opened.evaluate(
            "[...document.querySelectorAll('svg a')].map(dot => dot.getAttribute('href').slice(1))"
        )
    )
    measured = {
        f"run-{study}/{file.relative_to(records).as_posix().partition('.')[0]}": file.as_uri()
        for study in STUDIES
        for records in [example.parent / study / "records"]
        for file in records.rglob("*.json")  # those of excluded runs, too
    }
    assert rows == set(measured)
    for row, record in measured.items():
        assert (
            opened.evaluate(f"document.getElementById({row!r}).querySelector('a').href") == record
        )


def test_a_click_on_a_dot_opens_its_row_and_drops_no_filter(opened: Page) -> None:
    probe(opened, "openDetails()")
    opened.click("document.querySelector('input[data-filter]')")
    opened.write("torch")
    opened.evaluate("document.querySelectorAll('details').forEach(box => { box.open = false; })")
    row = opened.evaluate(f"(window.chosen = {PROBES}.dot())?.getAttribute('href').slice(1)")
    assert not opened.evaluate(f"document.getElementById({row!r}).checkVisibility()")
    opened.click("window.chosen")
    assert opened.until(f"document.getElementById({row!r}).checkVisibility()")
    assert opened.until(
        "location.hash === '#photographs-filter=torch'"
    )  # a part of the page is no state
    assert opened.messages == []


def test_a_filter_and_a_sorting_survive_that_the_page_is_opened_anew(opened: Page) -> None:
    table, word = "photographs-runs", "fastai"
    probe(opened, "openDetails()")
    opened.click("document.querySelector('input[data-filter]')")
    opened.write(word)
    head = f"document.getElementById({table!r}).tHead.rows[0].cells[1]"
    for _ in range(2):
        opened.click(f"{head}.querySelector('button')")
    what = [
        f"{head}.getAttribute('aria-sort')",
        "document.querySelector('input[data-filter]').value",
    ]
    seen, rows = [opened.evaluate(one) for one in what], shown_rows(opened, table)
    assert seen == ["descending", word]
    assert 0 < len(rows) < 50
    # what was there before would pass for what comes
    opened.evaluate("window.before = true; location.reload()")
    assert opened.until(
        f"!window.before && document.readyState === 'complete' && {what[0]} === 'descending'"
    )
    assert [opened.evaluate(one) for one in what] == seen
    assert shown_rows(opened, table) == rows  # in this order, and not folded
    opened.click(f"{head}.querySelector('button')")
    assert opened.evaluate("decodeURIComponent(location.hash)") == (
        f"#photographs-filter={word}&photographs-runs-sort=1+ascending"
    )
    assert opened.messages == []


def as_numbers(texts: list[str]) -> list[float]:
    """The number that each cell begins with, cells without a value left out; nothing for a column
    of words."""
    said = [text.replace("\u2212", "-") for text in texts if text not in ("", "\u2013", "none")]
    found = [re.match(r"-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?", text) for text in said]
    return [float(one.group().replace(",", "")) for one in found if one] if all(found) else []


def test_each_button_in_a_head_sorts_its_table_both_ways(opened: Page) -> None:
    probe(opened, "openDetails()")
    tables = "document.querySelectorAll('table.sortable')"
    told = "cell => cell.dataset.value ?? cell.innerText.trim()"  # 795 MB are less than 3.61 GB
    counts: list[int] = opened.evaluate(
        f"[...{tables}].map(t => t.tHead.querySelectorAll('th').length)"
    )
    assert counts
    for table, column in [
        (table, column) for table, count in enumerate(counts) for column in range(count)
    ]:
        head = f"{tables}[{table}].tHead.querySelectorAll('th')[{column}]"
        cells = (
            f"[...{tables}[{table}].tBodies[0].rows].map(row => row.cells[{column}]).map({told})"
        )
        others = (
            f"[...{head}.parentElement.children].filter(h => "
            "/cending$/.test(h.getAttribute('aria-sort') ?? ''))"
        )
        before, orders = opened.evaluate(cells), set()
        for _ in range(2):
            old = opened.evaluate(f"{head}.getAttribute('aria-sort')")
            opened.click(f"{head}.querySelector('button')")
            assert opened.until(f"{head}.getAttribute('aria-sort') !== {json.dumps(old)}")
            order, after = (
                opened.evaluate(one) for one in (f"{head}.getAttribute('aria-sort')", cells)
            )
            orders.add(order)
            assert opened.evaluate(f"{others}.length") == 1
            assert sorted(after) == sorted(before)
            numbers = as_numbers(after)
            assert numbers == sorted(numbers, reverse=order == "descending"), (table, column, order)
        assert orders == {"ascending", "descending"}


def shown_rows(page: Page, table: str) -> list[str]:
    rows = f"[...document.getElementById({table!r}).tBodies[0].rows]"
    found: list[str] = page.evaluate(
        f"{rows}.filter(row => row.checkVisibility()).map(row => row.innerText)"
    )
    return found


def test_a_filter_leaves_the_rows_that_hold_its_words(opened: Page) -> None:
    probe(opened, "openDetails()")
    fields = "document.querySelectorAll('input[data-filter]')"
    filters: list[str] = opened.evaluate(
        f"[...{fields}].map(field => field.getAttribute('aria-controls'))"
    )
    assert filters
    for number, table in enumerate(filters):
        every = shown_rows(opened, table)
        word = every[0].split()[0]
        wanted = [row for row in every if word.lower() in row.lower()]
        assert 0 < len(wanted) < len(every)
        opened.click(f"{fields}[{number}]")
        opened.write(word.upper())
        rows = (
            f"[...document.getElementById({table!r}).tBodies[0].rows].filter(r => "
            "r.checkVisibility()).length"
        )
        assert opened.until(f"{rows} === {len(wanted)}")
        assert shown_rows(opened, table) == wanted
        opened.evaluate(f"{fields}[{number}].select()")
        opened.write("no run has this name")
        assert opened.until(f"{rows} === 0")
