"""The client and the probes find what is wrong with a page that has every fault."""

from pathlib import Path

import psutil
import pytest

from tests.browser.chromium import BrowserError, Page, started
from tests.browser.conftest import probe

pytestmark = pytest.mark.thorough

FAULTY = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Faulty</title>
<meta http-equiv="Content-Security-Policy" content="img-src 'none'"><style>body { background: #fff; margin: 0 }</style>
<div style="width: 900px">wide</div><p style="font-size: 9px">small</p><img alt="refused" src="refused.png">
<svg width="100" height="100" viewBox="0 0 400 400"><rect width="400" height="400" fill="#ddd"/>
<text y="100" font-size="20">scaled</text><text y="200" font-size="80" fill="#999">pale</text>
<circle class="mark" id="pale" cx="50" cy="300" r="40" fill="#aaa"/>
<circle class="mark" id="hollow" cx="150" cy="300" r="40" fill="none" stroke="#111" stroke-width="8"/>
<line class="mark" x1="220" x2="390" y1="300" y2="300" stroke="#ccc" stroke-width="8"/></svg>
<script>console.warn("said", 1); fetch("http://study.invalid/asked").catch(() => 0); undefined.thrown</script></html>"""


def test_what_a_page_says_and_asks_for_is_heard_and_its_faults_are_found(page: Page, tmp_path: Path) -> None:
    (tmp_path / "faulty.html").write_text(FAULTY, encoding="utf-8")
    page.viewport(375)
    page.open(tmp_path / "faulty.html")
    said = str(page.messages)
    # What the policy of the page forbids is a message, not a request.
    assert all(word in said for word in ("'said'", "reading 'thrown'", "refused.png"))
    assert "http://study.invalid/asked" in page.requests
    assert page.evaluate("document.documentElement.scrollWidth") == 900
    assert any("wide" in found for found in probe(page, "wide()"))
    assert [found.split(": ")[1] for found in probe(page, "smallTexts(10)")] == ["small", "scaled"]
    marks = probe(page, "poorMarks(3)")
    assert marks["checked"] == 3
    pale, line = marks["poor"]  # the hollow dot has a dark outline
    assert ("of pale" in pale, "<line" in line) == (True, True)
    texts = probe(page, "poorTexts()")
    assert texts["checked"] == 2
    assert [found.split(": ")[-1] for found in texts["poor"]] == ["pale"]


def test_a_number_that_is_drawn_before_the_words_that_it_follows_is_found(page: Page) -> None:
    lines = "<p>plain 1, \u05d0\u05d1 2 s</p><p>turned \u202eall of it</p><p>in place: <bdi>\u05d0\u05d1</bdi> 2</p>"
    page.open(f"data:text/html;charset=utf-8,{lines}")
    found = probe(page, "reordered()")
    assert [line.split(": ")[1].split()[0] for line in found] == ["plain", "turned"]


def test_the_colour_scheme_and_the_medium_reach_the_page(page: Page) -> None:
    page.open("data:text/html,<style>:root{color-scheme:light dark} @media print{p{display:none}}</style><p>text")
    light = probe(page, "brightness()")
    page.media("dark")
    assert probe(page, "brightness()") < 0.1 < 0.9 < light
    assert "text" in probe(page, "texts()")
    page.media("dark", "print")
    assert probe(page, "texts()") == []


def test_scripts_can_be_switched_off(page: Page) -> None:
    page.without_scripts()
    page.open("data:text/html,<body><script>document.body.textContent = 'scripted'</script><p>static")
    assert probe(page, "texts()") == ["static"]


def test_a_click_is_a_real_event_and_what_is_written_goes_where_the_focus_is(page: Page) -> None:
    page.open("data:text/html,<input onclick='this.title = event.isTrusted'>")
    page.click("document.querySelector('input')")
    page.write("text")
    assert page.evaluate("[document.querySelector('input').title, document.querySelector('input').value]") == [
        "true", "text",
    ]  # fmt: skip


def test_what_javascript_throws_is_an_error_of_the_test(page: Page) -> None:
    with pytest.raises(BrowserError, match="planted"):
        page.evaluate("(() => { throw new Error('planted') })()")
    with pytest.raises(BrowserError, match=r"Nothing\.here"):
        page.command("Nothing.here")


def test_the_browser_ends_with_its_context_even_after_a_failure(program: str) -> None:
    here = psutil.Process()
    before = set(here.children(recursive=True))
    with pytest.raises(ZeroDivisionError), started(program) as browser, browser.page():
        running = set(here.children(recursive=True)) - before
        raise ZeroDivisionError
    assert len(running) > 1
    _, left = psutil.wait_procs(running, timeout=20)
    assert not [one for one in left if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
