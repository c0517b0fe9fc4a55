"""The client and the probes find what is wrong with a page that has every fault."""

from pathlib import Path

import pytest

from tests.browser.chromium import Page
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
