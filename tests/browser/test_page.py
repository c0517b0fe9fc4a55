"""How each page reads: on a desk and a phone, light and dark, and without its script."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.browser.chromium import Page
from tests.browser.conftest import FOLDERS, GATED_PAGES, LONG, PAGES, Show, probe

pytestmark = pytest.mark.thorough

PHONE = {"width": 375, "height": 700}


@pytest.mark.parametrize("name", GATED_PAGES)
@pytest.mark.parametrize("width", [1280, 768, 375])
def test_the_page_asks_for_nothing_and_does_not_scroll_sideways(
    page: Page, show: Show, name: str, width: int
) -> None:
    path = show(name, width)
    assert page.messages == []
    assert [url for url in page.requests if not url.startswith("data:")] == [path.as_uri()]
    found = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert found[0] <= found[1] == width, probe(page, "wide()")
    assert probe(page, "smallTexts(10)") == []


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (375, 667)])
def test_the_first_screen_has_the_answer_and_the_claims_of_each_study(
    page: Page, show: Show, width: int, height: int
) -> None:
    show("example", width, height, unfold="")
    lines = page.evaluate(
        "[...document.querySelectorAll('.overview li')].map(e => [e.innerText, "
        "e.getBoundingClientRect().bottom])"
    )
    told, ends = zip(*lines, strict=True)
    assert len(told) == 3
    # the switches have no claim
    assert all(
        re.search("(same|less|more|not) here|cannot tell|another job", one) for one in told[:2]
    )
    assert max(ends) < height
    answers = "[...document.querySelectorAll('{} p.answer')].map(e => e.innerText)"
    assert page.evaluate(answers.format(".overview")) == page.evaluate(answers.format("article"))


def test_the_first_column_stays_where_a_table_scrolls_on_a_phone(page: Page, show: Show) -> None:
    show("example", **PHONE)
    boxes = probe(page, "scrolled()")
    assert [
        box for box in boxes if not box["stays"] or box["hides"] or box["accuracy"] is False
    ] == []
    # of every run of both studies, and of the ratios
    assert sum(box["accuracy"] is True for box in boxes) >= 3
    outside = "[...document.querySelectorAll('table')].filter(one => !one.closest('.scroll'))"
    assert page.evaluate(f"{outside}.filter(one => one.scrollWidth > innerWidth - 32).length") == 0
    assert page.evaluate(
        f"{outside}.every(one => ['levels', 'claim', 'parts'].includes(one.className))"
    )


@pytest.mark.parametrize("width", [1280, 768, 375])
def test_no_word_of_a_table_is_broken_and_a_desk_shows_every_table_whole(
    page: Page, show: Show, width: int
) -> None:
    show("example", width)
    assert probe(page, "broken()") == []
    cut = (
        "[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth)"
    )
    assert width < 1280 or page.evaluate(f"{cut}.map(box => box.getAttribute('aria-label'))") == []
    assert page.evaluate("document.querySelectorAll('.scroll').length") > 5


def test_a_users_words_are_text_and_move_no_others(page: Page, show: Show) -> None:
    show("hostile")
    assert probe(page, "reordered()") == []
    text = page.evaluate("document.body.innerText")
    assert "\u202e" not in text + page.evaluate("document.title")
    assert all(
        word in text for word in (LONG, FOLDERS[0], "Title[U+202E] <script>alert(1)</script>")
    )
    assert (
        page.evaluate(
            "[...document.querySelectorAll('img, b')].filter(e => e.textContent === 'title').length"
        )
        == 0
    )
    assert page.evaluate("document.scripts.length") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("name", PAGES)
def test_dark_is_dark_and_every_mark_stands_out_from_its_ground(
    page: Page, show: Show, name: str, scheme: str, width: int
) -> None:
    """As WCAG has it: 4.5 to 1 for a text, or 3 to 1 for large letters. axe does not look into
    SVG."""
    show(name, width, scheme=scheme, unfold="openTwoStudies()")
    brightness = probe(page, "brightness()")
    assert brightness < 0.1 if scheme == "dark" else brightness > 0.8
    for call, least in (("poorMarks(3)", PAGES[name]), ("poorTexts()", 1)):
        found = probe(page, call)
        assert found["poor"] == []
        assert found["checked"] >= least


@pytest.mark.parametrize("name", PAGES)
def test_the_page_reads_without_its_script(page: Page, bare: Page, show: Show, name: str) -> None:
    """Every heading, sentence and cell that a reader sees with the script is there without it."""
    bare.open(show(name, unfold=""))
    folded, static = (probe(one, "texts()") for one in (page, bare))
    assert set(folded) <= set(static)
    for one in (page, bare):
        probe(one, "openDetails()")
    scripted, static = (probe(one, "texts()") for one in (page, bare))
    assert set(scripted) <= set(static)
    assert len(static) > 20
    rows = "document.querySelectorAll('tbody tr').length"
    assert bare.evaluate(rows) == page.evaluate(rows)


def test_a_link_to_what_is_folded_opens_it_with_and_without_the_script(
    page: Page, bare: Page, show: Show
) -> None:
    bare.open(show("example", unfold=""))
    for one in (page, bare):
        notes = "document.getElementById('photographs-notes')"
        assert not one.evaluate(f"{notes}.checkVisibility()")
        one.click("document.querySelector('a[href=\"#photographs-notes\"]')")
        assert one.until(f"{notes}.checkVisibility()")


TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
# the rule of WCAG 2.2 that axe leaves off by itself
RUN = {
    "runOnly": {"type": "tag", "values": TAGS},
    "rules": {"target-size": {"enabled": True}},
    "resultTypes": ["violations"],
}
ALIKE = [".scroll tbody tr:nth-child(n+4)"]
"""What is like what stands before it: the colours of all of it take axe two thirds of its time."""
LOOKED_AT = json.dumps({"exclude": [[part] for part in ALIKE]})
SHOWN = (
    "r => r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.length + ' of ' + "
    "v.nodes[0].html.slice(0, 200))"
)


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core: only the file is taken out of its package, which is never
    imported."""
    found = find_spec("axe_playwright_python")
    assert found is not None, "missing: the dev extra has it (make dev)"
    assert found.origin is not None
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (375, "dark")])
@pytest.mark.parametrize("name", GATED_PAGES)
def test_axe_finds_no_violation(
    page: Page, show: Show, axe: str, name: str, width: int, scheme: str
) -> None:
    show(name, width, scheme=scheme, unfold="openTwoStudies()")
    page.evaluate(f"{axe}; 0")
    assert page.evaluate(f"axe.run({LOOKED_AT}, {json.dumps(RUN)}).then({SHOWN})") == []
