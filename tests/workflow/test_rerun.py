"""An edit of a module makes those steps of the analysis again that need it, and what follows from them."""

import os
import re
import sys
from pathlib import Path

import grimp
import pytest

from study.artifacts.plan import read_plan
from study.base.imports import closure
from tests.conftest import ROOT
from tests.unit.artifacts.test_records import write_records
from tests.workflow.conftest import Checkout, copy_checkout

pytestmark = pytest.mark.thorough

STEPS = {
    "analyse": "study.analysis.step",
    "report": "study.analysis.report.step",
}
"""The rules of the analysis, in their order, with their modules."""
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "study").rglob("*")
    if path.is_file() and path.suffix not in (".pyc", ".typed")
)
MEASURED = ("study/training/", "study/data/")
"""What is in the keys of data and runs: an edit makes these again, under other keys."""
BESIDE = r"/(interface|ending|blog)(\.py|/)"
"""What serves other verbs, and a program, and no step."""
GRAPH = grimp.build_graph("study", exclude_type_checking_imports=True, cache_dir=None)


def needed(module: str) -> set[str]:
    """The modules that a module needs, by import-linter's graph, and the packages that hold them."""
    found = {module, *GRAPH.find_upstream_modules(module)}
    while more := {name.rpartition(".")[0] for name in found if "." in name} - found:
        # A package that only holds modules is imported, but its functions are not called: all but one import nothing.
        found |= more.union(*(GRAPH.find_upstream_modules(name) for name in more - {"study"}))
    return found


NEEDED = {step: needed(module) for step, module in STEPS.items()}


def first_step(file: str) -> str | None:
    """The first step that needs a file of the package, or None; the later ones follow from it."""
    if file.endswith(".py"):
        name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return next((step for step, modules in NEEDED.items() if name in modules), None)
    return "analyse" if file.endswith(".csv") else "report"  # else the page's fork servers


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


@pytest.mark.parametrize("step", [*STEPS, None])
def test_an_edit_of_any_file_makes_the_steps_again_that_need_it_and_no_other(
    step: str | None, finished: Checkout
) -> None:
    files = {file for file in FILES if first_step(file) == step and not file.startswith(MEASURED)}
    again = reasons(finished, *files)
    if step is None:
        assert list(again) == []
    else:
        assert list(again) == [*list(STEPS)[list(STEPS).index(step) :], "all"]
        assert again[step] == files


@pytest.mark.parametrize("file", FILES)
def test_every_module_of_the_analysis_belongs_to_a_step_and_none_of_the_other_wings(file: str) -> None:
    if file.startswith(
        ("study/host/", "study/training/", "study/data/", "study/verbs/", "study/cli.py", "study/schema.py")
    ):
        assert first_step(file) is None
    elif file.startswith("study/analysis/") and not re.search(BESIDE, file):
        assert first_step(file), "no step needs it"


@pytest.mark.parametrize("step", STEPS)
def test_a_steps_files_hold_every_module_that_its_import_loads(step: str, finished: Checkout) -> None:
    code = f"import sys, {STEPS[step]}; print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('study')))"
    done = finished.run([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr
    loaded = {Path(file) for file in done.stdout.split()}
    assert loaded <= set(closure(STEPS[step], finished.root))
