"""The reports beside the pipeline's own: at any time from what is there, and Snakemake's."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.workflow.conftest import NO_NETWORK, Checkout, copy_checkout

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
    def test_snakemakes_own_report_needs_no_network_and_has_captions_and_labels(
        self, finished: Checkout, tmp_path: Path
    ) -> None:
        before = {path: path.stat().st_mtime_ns for path in (finished.root / "results").rglob("*") if path.is_file()}
        finished.variables = NO_NETWORK
        finished.good("studies=[tiny,other]", extra=["--report", str(tmp_path / "out.zip")])
        finished.variables = {}
        with zipfile.ZipFile(tmp_path / "out.zip") as archive:
            shown = archive.read("out/report.html").decode()
            held = {name.rsplit("/", 1)[1]: archive.read(name) for name in archive.namelist() if "/data/raw/" in name}
        results, categories = (planted(shown, f"var {name} = ") for name in ("results", "categories"))
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
        after = {path: path.stat().st_mtime_ns for path in (finished.root / "results").rglob("*") if path.is_file()}
        assert after == before  # nothing was made for it

    def test_a_page_of_some_studies_is_made_whole_by_the_next_start(self, finished: Checkout) -> None:
        whole, records = finished.page(), finished.records()
        done = finished.python("study", "report", "tiny")
        assert done.returncode == 0, done.stderr
        assert "2 of 2 planned runs are there." in done.stderr
        assert 'id="other"' not in finished.page()
        finished.good("studies=[tiny,other]")
        assert finished.page() == whole
        assert finished.records() == records
        assert "nothing is left to do" in finished.good("studies=[tiny,other]")
