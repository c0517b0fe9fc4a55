"""A browser, pages in it, and the reports that they show."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from study.analysis.report.step import report_now
from tests.browser.chromium import Browser, Page, installed, started
from tests.conftest import tiny_plan, write_photos
from tests.examples import STUDIES, with_analysis
from tests.unit.analysis.test_report import analysed, with_gpu

PROBES = Path(__file__).with_name("probes.js").read_text(encoding="utf-8").strip()
Show = Callable[..., Path]
PAGES = {"example": 75 + 20 + 96, "undecided": 3, "thirteen": 2 * 18, "hostile": 24}
"""The examples, a study in which nothing can be concluded, 13 studies, and two whose words are
hostile: each with the runs of its first two studies, which are the least number of its marks."""
GATED_PAGES = [pytest.param("example", marks=pytest.mark.gate), *list(PAGES)[1:]]
"""The same for a test that `make test` makes of the first page alone."""


def probe(page: Page, call: str) -> Any:
    """The value of a call to one of the functions in ``probes.js``."""
    return page.evaluate(f"{PROBES}.{call}")


@pytest.hookimpl(
    tryfirst=True
)  # before xdist reads the groups, also where this folder is named on the command line
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep all tests of this folder in one worker: they share a browser, and the example's page."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="session")
def program() -> str:
    return installed() or pytest.skip("no Chromium on this machine; .ci/run installs it")


@pytest.fixture(scope="session")
def browser(program: str) -> Iterator[Browser]:
    with started(program) as running:
        yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.page() as opened:
        yield opened


@pytest.fixture
def bare(browser: Browser) -> Iterator[Page]:
    """A second page, which executes no script of what it opens."""
    with browser.page() as opened:
        opened.without_scripts()
        yield opened


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of docs/example beside its records."""
    results = tmp_path_factory.mktemp("results") / "example"
    shutil.copytree(with_analysis(), results)
    report_now([*STUDIES], results, results / "report.html", print)
    return results / "report.html"


FACTORS = {"device": ["cpu", "cuda"], "training.batch_size": [2, 4, 8]}


@pytest.fixture(scope="session")
def undecided(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of one run a setting, which can conclude nothing."""
    results = tmp_path_factory.mktemp("undecided")
    analysed(tiny_plan(factors=FACTORS, replicates=1), results)
    return results / "report.html"


@pytest.fixture(scope="session")
def thirteen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirteen studies of 18 runs each."""
    results = tmp_path_factory.mktemp("thirteen")
    names = [f"study-{number}" for number in range(1, 14)]
    for name in names:
        plan = with_gpu(
            tiny_plan(
                factors=FACTORS, replicates=3, contrast="device", title=f"A study named {name}"
            )
        )
        analysed(plan.model_copy(update={"name": name}), results)
    report_now(names, results, results / "report.html", print)
    return results / "report.html"


LONG = "<b>title</b>" + "letters" * 41 + "!"
TURNED = "Title\u202e <script>alert(1)</script> \u05e2\u05d1\u05e8\u05d9\u05ea 3"
FOLDERS = ("<img src=x onerror=alert(1)>", "\u05ea\u05de\u05d5\u05e0\u05d5\u05ea\u202e")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two studies whose words are markup, of 300 letters, from right to left, and with a control
    that turns lines."""
    results, photos = tmp_path_factory.mktemp("hostile"), tmp_path_factory.mktemp("photos")
    paths = [
        str(write_photos(photos / name, {"<b>class": 5, "\u05d0\u05d1": 5})) for name in FOLDERS
    ]
    changes = {
        "dataset": {"source": "folder", "path": paths[0], "image_size": 32},
        "factors": {"dataset.path": paths, "training.batch_size": [2, 4]},
        "replicates": 3,
        "contrast": "dataset.path",
    }
    for name, title, asked in (("long", LONG, TURNED), ("turned", TURNED, LONG)):
        plan = tiny_plan(title=title, question=f"Is {asked} safe?", **changes).model_copy(
            update={"name": name}
        )
        analysed(plan, results, times={plan.runs[0].setting.short: 5.0})
    report_now(["long", "turned"], results, results / "report.html", print)
    return results / "report.html"


@pytest.fixture
def show(page: Page, request: pytest.FixtureRequest) -> Show:
    """Open one of ``PAGES`` in a window of a size and in a colour scheme, unfold it, and return its
    path."""

    def shown(
        name: str,
        width: int = 1280,
        height: int = 900,
        scheme: str = "light",
        unfold: str = "openDetails()",
    ) -> Path:
        path: Path = request.getfixturevalue(name)
        page.viewport(width, height)
        page.media(scheme)
        page.open(path)
        if unfold:
            probe(page, unfold)
        return path

    return shown
