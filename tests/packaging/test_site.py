"""The documentation site: built without a warning, and without a request to any network."""

import re
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.conftest import ROOT

PYTHON = ROOT / ".docs" / "bin" / "python"
REMOTE = re.compile(r"\s*(https?:)?//", re.IGNORECASE)

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.timeout(120),
    pytest.mark.xdist_group("site"),
    pytest.mark.skipif(not PYTHON.exists(), reason="`make docs` installs what builds the site"),
]


class Loads(HTMLParser):
    """The addresses that a page loads by itself; those of links that a reader follows are left
    out."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = ("src", "srcset", "poster", "data") + (
            ("href",) if tag in ("link", "use", "image") else ()
        )
        self.addresses += [value for name, value in attrs if name in names and value]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as ``make docs`` builds it, in a folder of the test."""
    folder = tmp_path_factory.mktemp("site")
    options = [
        "--fail-on-warning",
        "--keep-going",
        "--nitpicky",
        "--quiet",
        "-d",
        str(folder / "doctrees"),
    ]
    command = [str(PYTHON), "-m", "sphinx", *options, str(ROOT / "docs"), str(folder / "html")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


def texts(site: Path, suffix: str) -> Iterator[tuple[Path, str]]:
    """Every file of the site with this suffix, with its text."""
    return ((path, path.read_text(encoding="utf-8")) for path in site.rglob(f"*{suffix}"))


def test_no_page_loads_anything_from_a_network(site: Path) -> None:
    pages = list(texts(site, ".html"))
    assert len(pages) > 10
    for path, page in pages:
        # the example's report, which a test of its own holds to the same
        if "_downloads" not in path.parts:
            addresses = Loads(page).addresses
            assert addresses
            assert not [address for address in addresses if REMOTE.match(address)], path
    for path, style in texts(site, ".css"):
        assert not re.search(r"(@import|url\()\s*['\"]?\s*(https?:)?//", style, re.IGNORECASE), path
