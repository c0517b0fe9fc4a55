"""axe-core finds no violation of WCAG 2.2 AA, on a desk in light colours and on a phone in dark ones."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.browser.chromium import Page
from tests.browser.conftest import GATED_PAGES, Show

pytestmark = pytest.mark.thorough

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
RUN = {
    "runOnly": {"type": "tag", "values": TAGS},
    "rules": {"target-size": {"enabled": True}},  # the rule of WCAG 2.2 that axe leaves off by itself
    "resultTypes": ["violations"],
}
ALIKE = [".scroll tbody tr:nth-child(n+4)"]
"""What is like what stands before it: the colours of all of it take axe two thirds of its time."""
LOOKED_AT = json.dumps({"exclude": [[part] for part in ALIKE]})
SHOWN = (
    "r => r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.length + ' of ' + v.nodes[0].html.slice(0, 200))"
)


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core: only the file is taken out of its package, which is never imported."""
    found = find_spec("axe_playwright_python")
    assert found is not None, "missing: the dev extra has it (make dev)"
    assert found.origin is not None
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (375, "dark")])
@pytest.mark.parametrize("name", GATED_PAGES)
def test_axe_finds_no_violation(page: Page, show: Show, axe: str, name: str, width: int, scheme: str) -> None:
    show(name, width, scheme=scheme, unfold="openTwoStudies()")
    page.evaluate(f"{axe}; 0")
    assert page.evaluate(f"axe.run({LOOKED_AT}, {json.dumps(RUN)}).then({SHOWN})") == []


def test_axe_finds_what_is_wrong(page: Page, axe: str) -> None:
    page.open("data:text/html,<html><title>t</title><p style='color:%23aaa;background:%23fff'>pale<button></button>")
    page.evaluate(f"{axe}; 0")
    found = page.evaluate(f"axe.run(document, {json.dumps(RUN)}).then({SHOWN})")
    assert {one.split(":")[0] for one in found} == {"button-name", "color-contrast", "html-has-lang"}
