"""An edit of the analysis makes it again, and an edit of anything else does not."""

import os
import re
import sys
from pathlib import Path

import pytest

from study.artifacts.plan import read_plan
from tests.conftest import ROOT
from tests.unit.artifacts.test_records import write_records
from tests.workflow.conftest import Checkout, copy_checkout

pytestmark = pytest.mark.thorough

STEPS = {
    "analyse": "study.analysis.step",
    "report": "study.analysis.report.step",
}
"""The rules of the analysis, in their order, with their modules."""
PARTS = ("study/analysis/", "study/artifacts/", "study/base/", "study/config/")
"""The folders with what the analysis is made of."""
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "study").rglob("*")
    if path.is_file() and path.suffix not in (".pyc", ".typed")
)
MEASURED = ("study/training/", "study/data/")
"""What is in the keys of data and runs: an edit makes these again, under other keys."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout with planted records and all that follows from them."""
    checkout = copy_checkout(tmp_path_factory.mktemp("rerun"))
    checkout.good(extra=["--dry-run"])  # writes the plan
    write_records(read_plan(checkout.root / "results/tiny/plan.json"), checkout.root / "results/tiny/records")
    checkout.good()
    return checkout


def reasons(checkout: Checkout, *edited: str) -> dict[str, set[str]]:
    """What a dry run would make again after an edit of some files: each rule with the edited inputs that it names.

    The files are changed and not only touched: Snakemake also compares the checksums of small inputs.
    """
    before = {checkout.root / path: (checkout.root / path).stat() for path in edited}
    for path in before:
        path.write_bytes(path.read_bytes() + b"\n")
    said = checkout.good(extra=["--dry-run", "--quiet", "host"])
    for path, status in before.items():
        path.write_bytes(path.read_bytes()[:-1])
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    found: dict[str, set[str]] = {}
    for block in re.split(r"\n(?=(?:local)?rule )", said)[1:]:
        rule = re.match(r"(?:local)?rule (\w+):", block)
        assert rule
        updated = re.search(r"reason: Updated input files: ([^;\n]*)", block)
        files = updated.group(1).split(", ") if updated else []
        found[rule.group(1)] = {file.removeprefix(f"{checkout.root}/") for file in files}
    return found


def test_an_edit_of_the_analysis_makes_every_step_again(finished: Checkout) -> None:
    files = {file for file in FILES if file.startswith(PARTS)}
    again = reasons(finished, *files)
    assert list(again) == [*STEPS, "all"]
    assert again["analyse"] == files


def test_an_edit_of_anything_else_makes_none_again(finished: Checkout) -> None:
    assert not reasons(finished, *(file for file in FILES if not file.startswith((*PARTS, *MEASURED))))


@pytest.mark.parametrize("step", STEPS)
def test_the_analysis_loads_no_module_of_anything_else(step: str, finished: Checkout) -> None:
    code = f"import sys, {STEPS[step]}; print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('study')))"
    done = finished.run([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr
    loaded = {Path(file).relative_to(finished.root).as_posix() for file in done.stdout.split()}
    assert {file for file in loaded if not file.startswith(PARTS)} <= {"study/__init__.py"}
