"""To look at a workflow changes nothing, whatever is there; and a dry run names the jobs of the start."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from study.artifacts.bundle import unpack
from tests.conftest import ROOT
from tests.waiting import wait_for
from tests.workflow.conftest import OWN_MODEL, RECORDS, Checkout, copy_checkout, with_inputs

pytestmark = pytest.mark.thorough

GATE = "--list-rules; --dag; --summary; --unlock; --dry-run --config studies=[quickstart]"
"""Flags that look, which each gate tries."""
REST = """\
--list-target-rules; --list-conda-envs; --list-untracked; --list-changes code; --list-changes input;
--list-changes params; --list-input-changes; --list-params-changes; --detailed-summary; --rulegraph; --filegraph;
--d3dag; --lint; --print-compilation; --archive OUT.tar.gz; --dry-run --forceall; --dry-run -R measure;
--dry-run --until measure; --dry-run --touch; --dry-run --workflow-profile none; --dry-run --verbose;
--delete-all-output --dry-run; --delete-temp-output; --cleanup-shadow; --cleanup-metadata results/plan.json;
--dry-run --quiet; --dry-run -p; --generate-unit-tests OUT; --containerize; --report OUT.html"""
"""Each other flag of Snakemake's that reads the rules and makes no job."""
STATS = re.compile(r"^Job stats:\n.*\n-+.*\n((?:.+\n)+?)total", re.MULTILINE)


def look(checkout: Checkout, flags: str) -> "subprocess.CompletedProcess[str]":
    """What a command says that only looks; what it makes of its own goes beside the checkout."""
    out = str(checkout.root.parent / "looked")
    words = [word.replace("OUT", out) for word in flags.split()]
    config = ["studies=[tiny]", "container=none", "warm_up_run=false", "quiet_wait_seconds=0"]
    given = [] if "--config" in words else ["--config", *config]
    return checkout.run([checkout.interpreter, "-m", "study", "start", "--", *words, *given])


def tree(checkout: Checkout) -> dict[str, tuple[int, bytes]]:
    """Each file of the results, with its time and its content."""
    results = checkout.root / "results"
    files = [path for path in results.rglob("*") if path.is_file()] if results.exists() else []
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def jobs(said: str) -> dict[str, str]:
    """How many jobs of each rule Snakemake counts."""
    found = STATS.findall(said)
    return dict(line.split() for line in found[-1].splitlines()) if found else {}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, prepared: Path) -> Checkout:
    """The tiny study, measured, with its page."""
    made = with_inputs(copy_checkout(tmp_path_factory.mktemp("looked") / "a copy"), prepared)
    made.good()
    return made


@pytest.fixture
def copied(finished: Checkout, tmp_path: Path) -> Checkout:
    """A copy of it, which a test may edit."""
    shutil.copytree(finished.root, tmp_path / "copy", symlinks=True)
    return Checkout(tmp_path / "copy")


@pytest.fixture
def half(copied: Checkout) -> Checkout:
    """A copy in which a record is gone, and the title is another one."""
    first(copied, "tiny/records/*.json").unlink()
    copied.study("tiny", title="Edited")
    return copied


@pytest.fixture
def unpacked(checkout: Checkout) -> Checkout:
    """A bundle of another study and another machine, unpacked, with its page."""
    unpack(ROOT / "docs" / "example" / "host.zip", checkout.root / "results")
    (checkout.root / "results" / "report.html").write_text("the page", encoding="utf-8")
    return checkout


EACH_FLAG = pytest.mark.parametrize(
    "flags", [pytest.param(GATE, marks=pytest.mark.gate), REST], ids=["gate", "rest"]
)


@pytest.mark.parametrize("state", ["finished", "half", "unpacked", "checkout"])
@EACH_FLAG
def test_to_look_writes_removes_and_touches_no_file(
    state: str, flags: str, request: pytest.FixtureRequest
) -> None:
    one: Checkout = request.getfixturevalue(state)
    before = tree(one)
    for words in flags.split(";"):
        done = look(one, words)
        without_conda = re.search("conda.* not (found|available)", done.stderr)
        refused = "error: --" in done.stderr or without_conda
        assert done.returncode == 0 or refused or state != "finished", words
        assert tree(one) == before, words


@EACH_FLAG
def test_a_start_that_is_at_work_can_be_looked_at(ready: Checkout, flags: str) -> None:
    ready.plant('while not Path("released").exists(): time.sleep(0.1)')
    ready.study("tiny", model=OWN_MODEL)
    with ready.started():
        wait_for(lambda: [*(ready.root / "results/logs/tiny").glob("bs*.log")], 300)
        before = {path: told for path, told in tree(ready).items() if "scratch" not in path}
        for words in flags.split(";"):
            assert "another start" not in look(ready, words).stderr, words
        after = tree(ready)
    assert {path: after.get(path) for path in before} == before


def edit(path: Path, line: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{line}\n")


def first(checkout: Checkout, pattern: str) -> Path:
    return next((checkout.root / "results").glob(pattern))


TEMPLATES = "study/analysis/report/templates"
EDITS: dict[str, Callable[[Checkout], object]] = {
    "title": lambda one: one.study("tiny", title="Edited"),
    "style": lambda one: edit(one.root / TEMPLATES / "report.css", "/* edited */"),
    "key": lambda one: one.study("tiny", replicates=2),
    "record": lambda one: first(one, "tiny/records/*.json").unlink(),
    "table": lambda one: (one.root / "results/tiny/timings.csv").unlink(),
    "code": lambda one: edit(one.root / "study/analysis/words.py", "# edited"),
    "figures": lambda one: shutil.rmtree(one.root / "results/tiny/figures"),
    "page": lambda one: (one.root / "results/report.html").unlink(),
    "index": lambda one: first(one, "tiny/blocks/*.json").unlink(),
    "damaged index": lambda one: first(one, "tiny/blocks/*.json").write_text("{"),
    "edited record": lambda one: edit(first(one, "tiny/records/*.json"), ""),
    "damaged manifest": lambda one: first(one, "data/*/manifest.json").write_text("{"),
    "plan": lambda one: (one.root / "results/tiny/plan.json").unlink(),
    "the lock of the key": lambda one: edit(one.root / "requirements.lock", "# edited"),
}


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[pytest.mark.gate] if place < 5 else [])
        for place, kind in enumerate(EDITS)
    ],
)
def test_after_each_edit_a_dry_run_names_the_jobs_of_the_start_and_the_next_nothing(
    kind: str, copied: Checkout
) -> None:
    EDITS[kind](copied)
    foretold = jobs(copied.good(extra=["--dry-run"]))
    said = copied.good()
    log = max((copied.root / ".snakemake/log").iterdir()).read_text(encoding="utf-8")
    assert foretold == ({} if "nothing is left to do" in said else jobs(log))
    assert bool(foretold) == (kind not in ("damaged manifest", "the lock of the key"))
    assert "Nothing to be done" in copied.good(extra=["--dry-run"])


def test_a_page_stays_where_it_cannot_be_made_anew(copied: Checkout) -> None:
    page, fit = copied.page(), (copied.root / "results/tiny/fit.json").read_bytes()
    edit(copied.root / "study/analysis/step.py", "raise RuntimeError('planted')")
    assert copied.snakemake().returncode == 1
    assert (copied.page(), (copied.root / "results/tiny/fit.json").read_bytes()) == (page, fit)
    log = (copied.root / "results/logs/tiny/analyse.log").read_text(encoding="utf-8")
    assert "RuntimeError: planted" in log


def test_an_edited_title_reaches_the_page_of_an_unpacked_bundle(
    copied: Checkout,
) -> None:
    """No metadata of Snakemake's are there, and no time of a file tells."""
    shutil.rmtree(copied.root / ".snakemake")
    assert "nothing is left to do" in copied.good()
    copied.study("tiny", title="An edited title")
    copied.good()
    assert "An edited title" in copied.page()


def test_a_block_that_a_budget_left_is_measured_by_the_next_start(
    copied: Checkout,
) -> None:
    two = "overrides={replicates: 2}"
    copied.good(two, "time_budget_minutes=0", extra=RECORDS)
    (mark,) = [
        path
        for path in (copied.root / "results/tiny/blocks").iterdir()
        if "left_by" in json.loads(path.read_text())
    ]
    assert jobs(copied.good(two, extra=["--dry-run"]))["measure"] == "1"
    copied.good(two)
    assert len(copied.records()) == 4
    assert "left_by" not in json.loads(mark.read_text())


def test_a_device_named_in_vain_fails_the_start_after_the_page(ready: Checkout) -> None:
    for _ in range(2):
        done = ready.snakemake("devices=[cpu, cuda]", "overrides={replicates: 1}")
        assert done.returncode == 1
        assert "error: devices: cuda is named, and measures nothing here: " in done.stderr
        assert len(ready.records()) == 2
        assert ready.page()
