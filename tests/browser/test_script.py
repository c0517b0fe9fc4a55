"""What the page's script adds, by a real mouse. Each test is one sentence of its contract."""

from pathlib import Path

import pytest

from tests.browser.chromium import Page
from tests.browser.conftest import PROBES
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


def test_a_click_on_a_dot_opens_its_row(opened: Page) -> None:
    row = opened.evaluate(f"(window.chosen = {PROBES}.dot())?.getAttribute('href').slice(1)")
    assert not opened.evaluate(f"document.getElementById({row!r}).checkVisibility()")
    opened.click("window.chosen")
    assert opened.until(f"document.getElementById({row!r}).checkVisibility()")
    assert opened.messages == []
