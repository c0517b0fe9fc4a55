"""What the page's script adds, by a real mouse and real keys. Each test is one sentence of its contract."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import Page
from tests.browser.conftest import probe, probes

pytestmark = pytest.mark.thorough

DOTS = "[...document.querySelectorAll('svg a')]"


@pytest.fixture
def opened(page: Page, example: Path) -> Page:
    page.open(example)
    return page


def test_every_run_of_the_example_is_a_dot_that_links_to_its_row_and_the_row_to_its_record(
    opened: Page, example: Path
) -> None:
    rows = set(opened.evaluate(f"{DOTS}.map(dot => dot.getAttribute('href').slice(1))"))
    measured = {
        f"run-{study}/{file.name.split('.')[0]}": file.as_uri()
        for study in ("batch-size", "speedup")
        for file in (example.parent / study / "records").iterdir()
    }
    assert rows == set(measured)
    for row, record in measured.items():
        assert opened.evaluate(f"document.getElementById({row!r}).querySelector('a').href") == record


def test_a_click_on_a_dot_opens_its_row_and_drops_no_filter(opened: Page) -> None:
    probe(opened, "openDetails()")
    opened.click("document.querySelector('input[data-filter]')")
    opened.write("fastai")
    opened.evaluate("document.querySelectorAll('details').forEach(box => { box.open = false; })")
    row = opened.evaluate(f"(window.chosen = {probes('dot()')})?.getAttribute('href').slice(1)")
    assert not opened.evaluate(f"document.getElementById({row!r}).checkVisibility()")
    opened.click("window.chosen")
    assert opened.until(f"document.getElementById({row!r}).checkVisibility()")
    assert opened.until("location.hash === '#batch-size-filter=fastai'")  # a part of the page is no state
    assert opened.messages == []


def test_a_filter_and_a_sorting_survive_that_the_page_is_opened_anew(opened: Page) -> None:
    table, word = "batch-size-runs", "fastai"
    probe(opened, "openDetails()")
    opened.click("document.querySelector('input[data-filter]')")
    opened.write(word)
    head = f"document.getElementById({table!r}).tHead.rows[0].cells[1]"
    for _ in range(2):
        opened.click(f"{head}.querySelector('button')")
    what = [f"{head}.getAttribute('aria-sort')", "document.querySelector('input[data-filter]').value"]
    seen, rows = [opened.evaluate(one) for one in what], shown_rows(opened, table)
    assert seen == ["descending", word]
    assert 0 < len(rows) < 50
    opened.evaluate("window.before = true; location.reload()")  # what was there before would pass for what comes
    assert opened.until(f"!window.before && document.readyState === 'complete' && {what[0]} === 'descending'")
    assert [opened.evaluate(one) for one in what] == seen
    assert shown_rows(opened, table) == rows  # in this order, and not folded
    opened.click(f"{head}.querySelector('button')")
    assert opened.evaluate("decodeURIComponent(location.hash)") == (
        f"#batch-size-filter={word}&batch-size-runs-sort=1+ascending"
    )
    assert opened.messages == []


VALUE = re.compile(r"^-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?")


def values(page: Page, table: int, column: int) -> list[str]:
    found: list[str] = page.evaluate(
        f"[...document.querySelectorAll('table.sortable')[{table}].tBodies[0].rows]"
        f".map(row => row.cells[{column}].innerText.trim())"
    )
    return found


def as_numbers(texts: list[str]) -> list[float] | None:
    """The number that each cell begins with, cells without a value left out; nothing for a column of words."""
    said = [text.replace("\u2212", "-") for text in texts if text not in ("", "\u2013", "none")]
    found = [VALUE.match(text) for text in said]
    return [float(one.group().replace(",", "")) for one in found if one] if said and all(found) else None


def test_each_button_in_a_head_sorts_its_table_both_ways(opened: Page) -> None:
    probe(opened, "openDetails()")
    counts: list[int] = opened.evaluate(
        "[...document.querySelectorAll('table.sortable')].map(t => t.tHead.querySelectorAll('th').length)"
    )
    assert counts
    for table, columns in enumerate(counts):
        for column in range(columns):
            check_sorting(opened, table, column)


def check_sorting(page: Page, table: int, column: int) -> None:
    head = f"document.querySelectorAll('table.sortable')[{table}].tHead.querySelectorAll('th')[{column}]"
    before = values(page, table, column)
    seen: dict[str, list[str]] = {}
    for _ in range(2):
        old = page.evaluate(f"{head}.getAttribute('aria-sort')")
        page.click(f"{head}.querySelector('button')")
        assert page.until(f"{head}.getAttribute('aria-sort') !== {json.dumps(old)}")
        seen[page.evaluate(f"{head}.getAttribute('aria-sort')")] = after = values(page, table, column)
        assert sorted(after) == sorted(before)
        others = f"[...{head}.parentElement.children].filter(h => /cending$/.test(h.getAttribute('aria-sort') ?? ''))"
        assert page.evaluate(f"{others}.length") == 1
    assert set(seen) == {"ascending", "descending"}
    for order, cells in seen.items():
        if (numbers := as_numbers(cells)) is not None:
            assert numbers == sorted(numbers, reverse=order == "descending"), (table, column, order)


def shown_rows(page: Page, table: str) -> list[str]:
    rows = f"[...document.getElementById({table!r}).tBodies[0].rows]"
    found: list[str] = page.evaluate(f"{rows}.filter(row => row.checkVisibility()).map(row => row.innerText)")
    return found


def test_a_filter_leaves_the_rows_that_hold_its_words(opened: Page) -> None:
    probe(opened, "openDetails()")
    filters: list[dict[str, Any]] = opened.evaluate(
        "[...document.querySelectorAll('input[data-filter]')].map(i => i.getAttribute('aria-controls'))"
    )
    assert filters
    for number, table in enumerate(str(one) for one in filters):
        field = f"document.querySelectorAll('input[data-filter]')[{number}]"
        every = shown_rows(opened, table)
        word = every[0].split()[0]
        opened.click(field)
        opened.write(word.upper())
        assert opened.until(f"{field}.value === {word.upper()!r}")
        wanted = [row for row in every if word.lower() in row.lower()]
        assert 0 < len(wanted) < len(every)
        rows = f"[...document.getElementById({table!r}).tBodies[0].rows].filter(r => r.checkVisibility()).length"
        assert opened.until(f"{rows} === {len(wanted)}")
        assert shown_rows(opened, table) == wanted
        opened.evaluate(f"{field}.select()")
        opened.write("no run has this name")
        assert opened.until(f"{rows} === 0")


def test_the_controls_work_without_a_word_on_the_console(opened: Page) -> None:
    probe(opened, "openDetails()")
    controls = "[...document.querySelectorAll('main button, main input')]"
    count = opened.evaluate(f"{controls}.length")
    assert count
    for number in range(count):
        opened.evaluate(f"{controls}[{number}]?.click()")
    assert opened.messages == []
