"""An edit of the analysis makes it again, and an edit of anything else does not."""

import sys

import pytest

from study.artifacts.plan import Plan
from tests.conftest import ROOT
from tests.unit.artifacts.test_records import write_records
from tests.workflow.conftest import Checkout, copy_checkout

pytestmark = pytest.mark.thorough

PARTS = ("study/analysis/", "study/artifacts/", "study/base/", "study/config/")
"""The folders with what the analysis is made of."""
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "study").rglob("*")
    if path.is_file() and path.suffix not in (".pyc", ".typed")
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout with planted records and all that follows from them."""
    checkout = copy_checkout(tmp_path_factory.mktemp("rerun"))
    checkout.good(extra=["--dry-run"])  # writes the plan
    write_records(Plan.read(checkout.root / "results/tiny/plan.json"), checkout.root / "results/tiny/records")
    checkout.good()
    return checkout


def made_of(checkout: Checkout, *edited: str) -> str:
    """What the analysis is made of after an edit of some files, which is taken back."""
    before = {checkout.root / path: (checkout.root / path).read_bytes() for path in edited}
    for path, text in before.items():
        path.write_bytes(text + b"\n")
    code = "from study.artifacts.block import made_of; from study.artifacts.layout import Results"
    done = checkout.run([sys.executable, "-c", f"{code}; print(made_of('tiny', Results()))"])
    for path, text in before.items():
        path.write_bytes(text)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_edit_of_the_analysis_makes_it_again_and_one_of_anything_else_does_not(finished: Checkout) -> None:
    kept = (finished.root / "results/tiny/made_of").read_text()
    assert made_of(finished).strip() == kept
    assert made_of(finished, *(file for file in FILES if not file.startswith(PARTS))).strip() == kept
    folders = {file.rpartition("/")[0] for file in FILES if file.startswith(PARTS)}
    for folder in sorted(folders):
        last = max(file for file in FILES if file.rpartition("/")[0] == folder)
        assert made_of(finished, last).strip() != kept, last
    last = "study/analysis/report/templates/report.css"
    before = (finished.root / last).read_bytes()
    (finished.root / last).write_bytes(before + b"\n")
    assert "nothing is left to do" not in finished.good()
    (finished.root / last).write_bytes(before)
    finished.good()
    assert "nothing is left to do" in finished.good()
