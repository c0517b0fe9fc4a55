"""The reports beside the pipeline's own: at any time from what is there, and Snakemake's."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from study.artifacts.plan import Plan
from study.artifacts.record import Record
from tests.workflow.conftest import NO_NETWORK, OWN_MODEL, RECORDS, Checkout, copy_checkout

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The tiny study and another one, measured and reported on."""
    made = copy_checkout(tmp_path_factory.mktemp("finished") / 'a "copy" of 研究\'s')
    made.study("other", title="Other <b>")
    made.good("studies=[tiny,other]")
    return made


def planted(shown: str, before: str) -> Any:
    """The value that a page of Snakemake's gives to a variable of its script."""
    place = shown.rindex(before) + len(before)
    return json.JSONDecoder().raw_decode(shown, place)[0]


@pytest.mark.xdist_group("reports")
class TestReportsOfAFinishedStudy:
    def test_snakemakes_own_report_has_captions_and_needs_no_network(
        self, finished: Checkout, tmp_path: Path
    ) -> None:
        before = {
            path: path.stat().st_mtime_ns
            for path in (finished.root / "results").rglob("*")
            if path.is_file()
        }
        finished.variables = NO_NETWORK
        finished.good("studies=[tiny,other]", extra=["--report", str(tmp_path / "out.zip")])
        finished.variables = {}
        with zipfile.ZipFile(tmp_path / "out.zip") as archive:
            shown = archive.read("out/report.html").decode()
            held = {
                name.rsplit("/", 1)[1]: archive.read(name)
                for name in archive.namelist()
                if "/data/raw/" in name
            }
        results, categories = (
            planted(shown, f"var {name} = ") for name in ("results", "categories")
        )
        assert set(categories) == {"report", "tiny", "other"}
        assert held["report.html"] == finished.page().encode()
        whole = results["results/report.html"]
        assert whole["labels"] == {"study": "tiny, other", "figure": "the whole page"}
        assert "The report on tiny, other" in whole["caption"]
        for study in ("tiny", "other"):
            folder = finished.root / "results" / study / "figures"
            listed = json.loads((folder / "index.json").read_text(encoding="utf-8"))
            assert listed
            for figure in listed:
                one = results[f"results/{study}/figures/{figure['name']}.svg"]
                assert one["labels"] == {"study": study, "figure": figure["name"]}
                assert study in one["caption"]
                assert f"{figure['name']}.svg" in held
        assert not re.search(r"""<(script|link|img)[^>]*(src|href)=["']https?:""", shown)
        after = {
            path: path.stat().st_mtime_ns
            for path in (finished.root / "results").rglob("*")
            if path.is_file()
        }
        assert after == before  # nothing was made for it

    def test_a_page_of_some_studies_is_made_whole_by_the_next_start(
        self, finished: Checkout
    ) -> None:
        whole, records = finished.page(), finished.records()
        done = finished.python("study", "report", "tiny")
        assert done.returncode == 0, done.stderr
        assert "2 of 2 planned runs are there." in done.stderr
        assert 'id="other"' not in finished.page()
        finished.good("studies=[tiny,other]")
        assert finished.page() == whole
        assert finished.records() == records
        assert "nothing is left to do" in finished.good("studies=[tiny,other]")


DAMAGES_DATA = """
if any(Path("results/tiny/records").glob("*.json")):
    for path in Path("results/data").glob("*/manifest.json"):
        if '"train_images": 16' in path.read_text():
            path.write_text("{")
"""
"""From the second run on, the manifest of the smaller one of two data sets is damaged."""


def outcomes(checkout: Checkout) -> list[tuple[Record, str]]:
    """The records in the order of the plan, and how messages name the manifest that each run
    read."""
    plan = Plan.read(checkout.root / "results/tiny/plan.json")
    found = checkout.measured()
    return [(found[run.file], f"{run.dataset}/manifest.json") for run in plan.runs]


def test_what_is_damaged_is_said_and_made_again_by_the_next_start(ready: Checkout) -> None:
    results = ready.root / "results"
    (manifest,), (weights,) = (
        results.glob("data/*/manifest.json"),
        results.glob("tiny/weights/*.json"),
    )
    before = {path: path.read_bytes() for path in (manifest, weights)}
    manifest.write_bytes(b'{"source": "generated"}')
    weights.write_bytes(b"\xff\x00")
    said = ready.good(extra=RECORDS)
    for path in before:
        assert f"{path.relative_to(ready.root)}: it cannot be used, and is made again\n" in said
    assert {path: path.read_bytes() for path in before} == before
    assert [record.outcome for record, *_ in outcomes(ready)] == ["ok", "ok"]


def test_a_manifest_that_is_damaged_between_two_runs_costs_those_that_read_it_and_no_other(
    checkout: Checkout,
) -> None:
    checkout.plant(DAMAGES_DATA)
    factors = {"device": ["cpu"], "dataset.images": [20, 40]}
    checkout.study("tiny", model=OWN_MODEL, factors=factors, replicates=2, curve=None)
    checkout.good()
    for place, (record, manifest) in enumerate(outcomes(checkout)):
        if place > 1 and record.settings.dataset.images == 20:
            assert record.outcome == "failed"
            assert str(record.message).startswith(f"{manifest}: not a valid manifest: ")
        else:
            assert (record.outcome, record.message) == ("ok", None)
    checkout.plant("pass")
    assert "1 file(s) moved" in checkout.python("study", "retry", "tiny").stdout
    said = checkout.good()
    assert said.count("it cannot be used, and is made again") == 1
    assert {record.outcome for record, *_ in outcomes(checkout)} == {"ok"}
