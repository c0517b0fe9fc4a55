"""What the page's script adds, by a real mouse and real keys. Each test is one sentence of its contract."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import Browser, Page
from tests.browser.conftest import probe, probes

pytestmark = pytest.mark.thorough

DOT = "window.chosen"
TIP = "document.querySelector('#tip[role=tooltip]')"
TIP_SHOWN = (
    f"!!{TIP} && {TIP}.checkVisibility({{opacityProperty: true, visibilityProperty: true}}) && !!{TIP}.innerText.trim()"
)


def of_run(run: str) -> str:
    """The list of the elements of a run, in JavaScript."""
    return f"[...document.querySelectorAll('[data-run]')].filter(e => e.dataset.run === {run!r})"


def pinned(run: str) -> str:
    """Whether every element of a run is pinned, and no other is, in JavaScript."""
    every = f"{of_run(run)}.length > 0 && {of_run(run)}.every(e => e.classList.contains('pinned'))"
    return f"{every} && [...document.querySelectorAll('.pinned')].every(e => e.dataset.run === {run!r})"


@pytest.fixture
def opened(page: Page, example: Path) -> Page:
    page.open(example)
    return page


def chosen_run(page: Page) -> str:
    """Choose a dot that nothing covers, and return its run."""
    run: str | None = page.evaluate(f"({DOT} = {probes('dot()')})?.dataset.run")
    assert run, "no dot of a run"
    return run


def test_every_run_of_the_example_is_a_dot_that_the_keyboard_reaches(opened: Page, example: Path) -> None:
    runs = set(opened.evaluate("[...document.querySelectorAll('svg [data-run]')].map(e => e.dataset.run)"))
    measured = {
        f"{study}/{file.name.split('.')[0]}"
        for study in ("batch-size", "speedup")
        for file in (example.parent / study / "records").iterdir()
    }
    assert runs == measured
    dots = "[...document.querySelectorAll('svg [data-run]')]"
    assert opened.evaluate(f"{dots}.every(dot => dot.hasAttribute('tabindex'))")
    # Every dot is a stop of the Tab key, or one of its chart is and the arrows lead on.
    charts = f"[...new Set({dots}.filter({probes('shown')}).map(dot => dot.closest('svg')))]"
    for chart in range(opened.evaluate(f"{charts}.length")):
        opened.evaluate(f"{charts}[{chart}].querySelector('[data-run][tabindex=\"0\"]').focus()")
        others = opened.evaluate(f"{charts}[{chart}].querySelectorAll('[data-run]:not([tabindex=\"0\"])').length")
        for _ in range(others):
            before = opened.evaluate("document.activeElement.dataset.run")
            opened.press("ArrowRight")
            assert opened.evaluate("document.activeElement.dataset.run") not in (before, None)


def test_the_mouse_over_a_dot_shows_its_run(opened: Page) -> None:
    name = chosen_run(opened).partition("/")[2]
    assert not opened.evaluate(TIP_SHOWN)
    opened.hover(DOT)
    assert opened.until(TIP_SHOWN)
    assert name in opened.evaluate(f"{TIP}.innerText")
    box = opened.evaluate(f"(b => [b.left, b.top, b.right, b.bottom])({TIP}.getBoundingClientRect())")
    assert 0 <= box[0] <= box[2] <= 1280
    assert 0 <= box[1] <= box[3] <= 900
    opened.hover("document.querySelector('h1')")
    assert opened.until(f"!({TIP_SHOWN})")


def test_the_focus_on_a_dot_shows_its_run_and_escape_hides_it(opened: Page) -> None:
    name = chosen_run(opened).partition("/")[2]
    opened.evaluate(f"{DOT}.focus()")
    assert opened.until(TIP_SHOWN)
    assert name in opened.evaluate(f"{TIP}.innerText")
    opened.press("Escape")
    assert opened.until(f"!({TIP_SHOWN})")


def test_the_tip_stays_inside_the_window_of_a_phone(opened: Page) -> None:
    opened.viewport(375, 700)
    chosen_run(opened)
    opened.hover(DOT)
    assert opened.until(TIP_SHOWN)
    left, right = opened.evaluate(f"(b => [b.left, b.right])({TIP}.getBoundingClientRect())")
    assert 0 <= left <= right <= 375
    assert opened.evaluate("document.documentElement.scrollWidth") <= 375


def test_a_click_on_a_dot_marks_its_run_everywhere_and_in_the_address(opened: Page) -> None:
    run = chosen_run(opened)
    opened.click(DOT)
    assert opened.until(pinned(run))
    assert opened.evaluate(f"{of_run(run)}.some(e => e.closest('svg')) && {of_run(run)}.some(e => e.closest('tr'))")
    assert f"run={run}" in opened.evaluate("decodeURIComponent(location.hash)")


def test_enter_on_a_dot_does_what_a_click_does(opened: Page) -> None:
    run = chosen_run(opened)
    opened.evaluate(f"{DOT}.focus()")
    opened.press("Enter")
    assert opened.until(pinned(run))


def test_an_address_with_a_run_marks_it_when_the_file_is_opened(opened: Page, browser: Browser, example: Path) -> None:
    run = chosen_run(opened)
    opened.click(DOT)
    assert opened.until(pinned(run))
    with browser.page() as other:
        other.open(opened.evaluate("location.href"))
        assert other.until(pinned(run))
        assert other.messages == []
        other.open(f"{example.as_uri()}#run=none/such")
        assert other.messages == []


def test_the_run_that_is_chosen_links_to_its_row_and_to_its_record(opened: Page, example: Path) -> None:
    run = chosen_run(opened)
    opened.click(DOT)
    assert opened.until("!document.getElementById('pin').hidden")
    row, record = opened.evaluate("[...document.querySelectorAll('#pin a')].map(link => link.href)")
    (file,) = (example.parent / run.partition("/")[0] / "records").glob(f"{run.partition('/')[2]}.*")
    assert record == file.as_uri()
    assert f"run={run}" in opened.evaluate("decodeURIComponent(location.hash)")
    opened.click("document.querySelector('#pin a')")
    assert opened.until(f"document.getElementById({'run-' + run!r}).checkVisibility()")
    assert row.endswith(f"#run-{run}")
    assert opened.until(f"location.hash === {'#run=' + run!r}")  # a part of the page is no state, and drops none


def test_a_filter_a_sorting_and_what_is_hidden_survive_that_the_page_is_opened_anew(opened: Page) -> None:
    table, word = "batch-size-runs", "fastai"
    probe(opened, "openDetails()")
    opened.click("document.querySelector('input[data-filter]')")
    opened.write(word)
    head = f"document.getElementById({table!r}).tHead.rows[0].cells[1]"
    for _ in range(2):
        opened.click(f"{head}.querySelector('button')")
    button = "document.querySelectorAll('button[data-series=\"mean\"]')[1]"
    opened.click(button)
    what = [
        f"{button}?.getAttribute('aria-pressed')",
        f"{head}.getAttribute('aria-sort')",
        "document.querySelector('input[data-filter]').value",
        "[...document.querySelectorAll('svg [data-kind]')].map(mark => mark.checkVisibility())",
    ]
    seen, rows = [opened.evaluate(one) for one in what], shown_rows(opened, table)
    assert seen[:3] == ["false", "descending", word]
    assert 0 < len(rows) < 50
    opened.evaluate("window.before = true; location.reload()")  # what was there before would pass for what comes
    assert opened.until(f"!window.before && document.readyState === 'complete' && {what[0]} === 'false'")
    assert [opened.evaluate(one) for one in what[:3]] == seen[:3]
    assert shown_rows(opened, table) == rows  # in this order, and not folded
    probe(opened, "openDetails()")
    assert opened.evaluate(what[3]) == seen[3]
    for control in (button, "document.querySelectorAll('#batch-size-runs th button')[1]"):
        opened.click(control)
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


def test_a_button_of_the_legend_hides_its_series_and_shows_it_again(opened: Page) -> None:
    probe(opened, "openDetails()")
    count: int = opened.evaluate("document.querySelectorAll('button[data-series]').length")
    assert count
    dots = f"[...document.querySelectorAll('svg :is([data-run], .mark)')].filter({probes('shown')}).length"
    for number in range(count):
        button = f"document.querySelectorAll('button[data-series]')[{number}]"
        before = opened.evaluate(dots)
        assert opened.evaluate(f"{button}.getAttribute('aria-pressed')") == "true"
        opened.click(button)
        assert opened.until(f"{button}.getAttribute('aria-pressed') === 'false' && {dots} < {before}")
        opened.click(button)
        assert opened.until(f"{button}.getAttribute('aria-pressed') === 'true' && {dots} === {before}")


def test_the_controls_work_without_a_word_on_the_console(opened: Page) -> None:
    probe(opened, "openDetails()")
    controls = "[...document.querySelectorAll('main button, main input')]"
    count = opened.evaluate(f"{controls}.length")
    assert count
    for number in range(count):
        opened.evaluate(f"{controls}[{number}]?.click()")
    assert opened.messages == []
