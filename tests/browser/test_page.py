"""How each page reads: on a desk and a phone, light and dark, and without its script."""

import re
from itertools import combinations

import numpy as np
import pytest

from tests.browser.chromium import Page
from tests.browser.conftest import FOLDERS, GATED_PAGES, LONG, PAGES, Show, probe

pytestmark = pytest.mark.thorough

PHONE = {"width": 375, "height": 700}


@pytest.mark.parametrize("name", GATED_PAGES)
@pytest.mark.parametrize("width", [1280, 768, 375])
def test_the_page_asks_for_nothing_does_not_scroll_sideways_and_has_no_small_text(
    page: Page, show: Show, name: str, width: int
) -> None:
    path = show(name, width)
    assert page.messages == []
    assert [url for url in page.requests if not url.startswith("data:")] == [path.as_uri()]
    found = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert found[0] <= found[1] == width, probe(page, "wide()")
    assert probe(page, "smallTexts(10)") == []


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (375, 667)])
def test_the_first_screen_of_several_studies_has_the_answer_of_each_and_what_becomes_of_each_claim(
    page: Page, show: Show, width: int, height: int
) -> None:
    show("example", width, height, unfold="")
    lines = page.evaluate(
        "[...document.querySelectorAll('.overview li')].map(e => [e.innerText, e.getBoundingClientRect().bottom])"
    )
    told, ends = zip(*lines, strict=True)
    assert len(told) == 3
    assert all(re.search("holds|contradicted|not decided", one) for one in told[:2])  # the switches have no claim
    assert max(ends) < height
    answers = "[...document.querySelectorAll('{} p.answer')].map(e => e.innerText)"
    assert page.evaluate(answers.format(".overview")) == page.evaluate(answers.format("article"))


def test_the_first_column_stays_where_a_table_scrolls_on_a_phone_and_accuracy_is_seen_beside_it(
    page: Page, show: Show
) -> None:
    show("example", **PHONE)
    boxes = probe(page, "scrolled()")
    assert [box for box in boxes if not box["stays"] or box["hides"] or box["accuracy"] is False] == []
    assert sum(box["accuracy"] is True for box in boxes) >= 3  # of every run of both studies, and of the ratios
    outside = "[...document.querySelectorAll('table')].filter(one => !one.closest('.scroll'))"
    assert page.evaluate(f"{outside}.filter(one => one.scrollWidth > innerWidth - 32).length") == 0
    assert page.evaluate(f"{outside}.every(one => ['levels', 'claim'].includes(one.className))")


@pytest.mark.parametrize("width", [1280, 768, 375])
def test_no_word_of_a_table_is_broken_and_on_a_desk_every_table_is_seen_whole(
    page: Page, show: Show, width: int
) -> None:
    show("example", width)
    assert probe(page, "broken()") == []
    cut = "[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth)"
    assert width < 1280 or page.evaluate(f"{cut}.map(box => box.getAttribute('aria-label'))") == []
    assert page.evaluate("document.querySelectorAll('.scroll').length") > 5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_two_parts_of_a_bar_have_no_colours_that_look_alike(page: Page, show: Show, scheme: str) -> None:
    show("example", scheme=scheme)
    legends: list[list[str]] = page.evaluate(
        "[...document.querySelectorAll('.k')].map(key =>"
        "[...key.querySelectorAll('i')].map(box => getComputedStyle(box).backgroundColor))"
    )
    assert max(map(len, legends)) == 10
    for legend in legends:
        colours = [np.array([int(one) for one in re.findall(r"\d+", fill)][:3]) for fill in legend]
        far = [float(np.linalg.norm(one - other)) for one, other in combinations(colours, 2)]
        assert min(far, default=99.0) > 25


def test_a_users_words_are_text_and_move_no_others(page: Page, show: Show) -> None:
    show("hostile")
    assert probe(page, "reordered()") == []
    text = page.evaluate("document.body.innerText")
    assert "\u202e" not in text + page.evaluate("document.title")
    assert all(word in text for word in (LONG, FOLDERS[0], "Title[U+202E] <script>alert(1)</script>"))
    assert page.evaluate("[...document.querySelectorAll('img, b')].filter(e => e.textContent === 'title').length") == 0
    assert page.evaluate("document.scripts.length") == 1


def test_the_text_of_charts_is_text(page: Page, show: Show) -> None:
    """A picture hides its letters from the search, from the reader's colours and from the tests of texts."""
    show("example")
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    charts = "[...document.querySelectorAll('figure svg:not(figure .key svg)')]"
    assert page.evaluate(f"{charts}.length") > 0
    assert page.evaluate(f"{charts}.filter(chart => !chart.querySelector('text')).length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
@pytest.mark.parametrize("name", PAGES)
def test_dark_is_dark_and_every_mark_and_text_of_a_chart_stands_out_from_its_ground(
    page: Page, show: Show, name: str, scheme: str, width: int
) -> None:
    """As WCAG has it: 4.5 to 1 for a text, or 3 to 1 for large letters. axe does not look into SVG."""
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


def test_a_link_to_what_is_folded_opens_it_with_and_without_the_script(page: Page, bare: Page, show: Show) -> None:
    bare.open(show("example", unfold=""))
    for one in (page, bare):
        notes = "document.getElementById('photographs-notes')"
        assert not one.evaluate(f"{notes}.checkVisibility()")
        one.click("document.querySelector('a[href=\"#photographs-notes\"]')")
        assert one.until(f"{notes}.checkVisibility()")
