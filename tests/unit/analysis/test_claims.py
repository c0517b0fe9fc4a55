"""The published claims beside the figures that were printed with them."""

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from study.analysis.published.claims import as_text, chosen, examine
from study.analysis.published.claims.printed import Claim
from study.analysis.published.table import read_published
from study.base.files import ROOT
from study.cli import main
from tests.conftest import tiny_plan
from tests.unit.analysis.test_report import Page, analysed

NO_NOISE = "With one run per setting there is no estimate of the noise"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return read_published()


@pytest.fixture(scope="module")
def claims(frame: pd.DataFrame) -> list[Claim]:
    return examine(frame)


def one(claims: list[Claim], study: str, words: str = "times as fast") -> Claim:
    (claim,) = [claim for claim in claims if claim.study == study and words in claim.published]
    return claim


def time(frame: pd.DataFrame, study: str, **where: object) -> float:
    """The one training time that is so published."""
    rows = frame[(frame["study"] == study) & (frame["metric"] == "fit_time")]
    for key, value in where.items():
        rows = rows[rows[key] == value]
    (found,) = rows["value"]
    return float(found)


def with_value(frame: pd.DataFrame, value: float, **where: object) -> pd.DataFrame:
    """The published figures with one of them changed."""
    mask = pd.Series(True, index=frame.index)
    for key, wanted in where.items():
        mask &= frame[key] == wanted
    assert mask.sum() == 1
    return frame.assign(value=frame["value"].mask(mask, value))


def test_every_published_claim_is_examined(frame: pd.DataFrame, claims: list[Claim]) -> None:
    """A new row that claims something, in whatever metric, needs an examination."""
    derived = frame["metric"].str.contains("speedup|relative|optimum|faster|ratio", case=False)
    derived |= (frame["table"] == "claim") | frame["unit"].eq("ratio")
    examined = {line for claim in claims for line in (*claim.lines, *(used.line for used in claim.used))}
    assert {int(index) + 2 for index in frame.index[derived]} <= examined
    claimed = frame.index[frame["metric"].isin(["speedup", "relative_performance"])]
    assert sorted(line for claim in claims for line in claim.lines) == [int(index) + 2 for index in claimed]
    assert [claim.published.split()[3] for claim in claims if claim.published.startswith("The GPU")] == [
        f"{value:g}" for value in frame.loc[frame["metric"] == "speedup", "value"]
    ]


def test_a_line_names_the_row_of_the_file(claims: list[Claim]) -> None:
    lines = (ROOT / "study" / "analysis" / "published" / "published.csv").read_text(encoding="utf-8").splitlines()
    for claim in claims:
        assert all("speedup" in lines[line - 1] or "relative" in lines[line - 1] for line in claim.lines)
        assert all(used.value.removesuffix(" s") in lines[used.line - 1] for used in claim.used)


def test_the_blogs_ratio_divides_by_the_fastest_of_five(frame: pd.DataFrame, claims: list[Claim]) -> None:
    claim = one(claims, "batch-size")
    assert claim.verdict.startswith("9.972 is one CPU run over the fastest of 5 GPU runs")
    assert "over their median it is 6.819." in claim.verdict
    rows = frame[(frame["study"] == "batch-size") & (frame["table"] == "table") & (frame["metric"] == "fit_time")]
    cpu = time(frame, "batch-size", table="claim")
    assert cpu / rows["value"].min() == pytest.approx(9.972, abs=5e-4)
    assert cpu / rows["value"].median() == pytest.approx(6.819, abs=5e-4)
    assert NO_NOISE in claim.verdict
    assert "another run of the same setting gives 6.951" in claim.verdict


def test_two_runs_of_one_setting_leave_the_blogs_ratio_open(claims: list[Claim]) -> None:
    """With one degree of freedom t is 12.7: log 8.33 more or less 12.7 x 0.313."""
    (sentence,) = [words for words in one(claims, "batch-size").given if "run again" in words]
    assert "the ratio is 8.33;" in sentence.replace("\n", " ")
    assert "says nothing: 2 runs are too few" in sentence


def test_the_labs_printed_totals_contradict_its_ratio(frame: pd.DataFrame, claims: list[Claim]) -> None:
    claim = one(claims, "lab-device")
    cpu = time(frame, "lab-device", device="cpu", epochs="5")
    assert cpu / time(frame, "lab-device", device="cuda") == pytest.approx(1.934, abs=5e-4)
    assert "The printed times of 5 epochs give 1.934 (rounded as the claim is: 1.93), not 1.84." in claim.verdict
    assert NO_NOISE in claim.verdict
    assert any("1.899 to 1.976; no epoch gives the claimed ratio" in words for words in claim.given)


def test_the_time_of_another_document_is_not_divided(frame: pd.DataFrame) -> None:
    """The second lab's CPU ran something that it does not name; whichever comes first in the file."""
    for rows in (frame, frame.iloc[::-1]):
        claim = one(examine(rows), "lab-device")
        assert [used.value for used in claim.used] == ["125.142935 s", "64.715595 s"]


def test_times_of_other_numbers_of_epochs_are_not_divided(frame: pd.DataFrame) -> None:
    shorter = frame["epochs"].mask((frame["study"] == "lab-device") & (frame["device"] == "cuda"), "3")
    assert "it cannot be checked" in one(examine(frame.assign(epochs=shorter)), "lab-device").verdict


def test_the_ten_epochs_of_the_log_give_a_smaller_ratio_than_claimed(frame: pd.DataFrame, claims: list[Claim]) -> None:
    claim = one(claims, "cifar10-cnn")
    ratio = time(frame, "cifar10-cnn", device="cpu") / time(frame, "cifar10-cnn", device="cuda")
    assert ratio == pytest.approx(2.146, abs=5e-4)
    assert "The printed times of 10 epochs give 2.146 (rounded as the claim is: 2.1), not 2.2." in claim.verdict
    assert "The log prints 10 epochs of each run." in claim.given
    assert any("2 epochs" in words for words in claim.given)
    assert NO_NOISE in claim.verdict


def test_mnists_ratio_is_one_of_five_and_larger_on_the_smaller_gpu(frame: pd.DataFrame, claims: list[Claim]) -> None:
    claim = one(claims, "mnist-strategies")
    cpu = time(frame, "mnist-strategies", device="cpu")
    mirrored = {
        name: time(frame, "mnist-strategies", hardware=name, strategy="mirrored") for name in ("A100", "Tesla T4")
    }
    assert cpu / mirrored["A100"] == pytest.approx(14.04, abs=5e-3)
    assert cpu / mirrored["Tesla T4"] == pytest.approx(16.35, abs=5e-3)
    assert "14.04 is one CPU run over one of 5 GPU runs (A100, batch size 1000, mirrored)" in claim.verdict
    assert "The same setting on Tesla T4 gives 16.35." in claim.verdict
    assert NO_NOISE in claim.verdict
    assert len(claim.used) == 6


def test_the_blogs_two_runs_differ_by_more_than_its_optimum_is_deep(claims: list[Claim]) -> None:
    given = " ".join(one(claims, "batch-size", "optimum").given)
    assert "The two runs differ by 0.25 to 3.12 s a point" in given
    assert "at 4 of 5 batch sizes by more than the 2.26 s" in given
    assert "In the table 64 is the fastest, 7.18 s: 2.26 s below 16 and 4.17 s below 256" in given
    assert "In the figure 64 is the fastest, 10.3 s: 2.24 s below 16 and 4.04 s below 256" in given
    assert "0.47 s below 128, the next fastest" in given


def test_the_blogs_optimum_is_not_established_by_either_run_or_both(claims: list[Claim]) -> None:
    claim = one(claims, "batch-size", "optimum")
    given = " ".join(claim.given)
    assert "Of the table and the figure alone: Without enough replicates" in given
    assert "Together, each run a block (p = 0.0655): No law fits better than a constant" in given
    assert "16, 32, 64, 128 and 256 may be the fastest" in given
    assert claim.verdict.startswith("Not established: 64 is the fastest in 2 of 2 runs")
    assert NO_NOISE in claim.verdict


def test_an_optimum_that_both_runs_show_alike_is_supported(frame: pd.DataFrame) -> None:
    """A planted U without noise but for a thousandth: the verdict is not the same whatever the figures say."""
    planted = {16: 2.01, 32: 1.51, 64: 1.01, 128: 1.51, 256: 2.01}
    for table, factor in (("table", 1.0), ("figure", 1.3)):
        for size, seconds in planted.items():
            wobble = 1.002 if (size, table) == (32, "figure") else 1.0
            where = {"study": "batch-size", "table": table, "metric": "fit_time", "batch_size": size}
            frame = with_value(frame, round(seconds * factor * wobble, 4), **where)
    claim = one(examine(frame), "batch-size", "optimum")
    assert (
        claim.verdict == "Supported: 64 is the fastest in 2 of 2 runs, and no other of the 5 may be the fastest (95%)."
    )
    assert claim.given[0].startswith("The printed times do not give 76% at 16, 68.4% at 32")


def test_a_ratio_that_the_printed_times_give_is_said_to_be_given(frame: pd.DataFrame) -> None:
    changed = with_value(frame, 1.93, study="lab-device", metric="speedup")
    assert one(examine(changed), "lab-device").verdict.startswith("The printed times give it: 1.934.")


def test_a_claim_without_times_beside_it_cannot_be_checked(frame: pd.DataFrame) -> None:
    bare = frame[frame["metric"] != "fit_time"]
    for claim in examine(bare):
        assert "it cannot be checked" in claim.verdict
        assert not claim.used


def test_no_sentence_is_one_of_the_documents(claims: list[Claim]) -> None:
    """Facts carry over, sentences do not; names of hardware and figures are facts."""
    seeds = ROOT.parent / "shared" / "seeds"
    if not seeds.is_dir():
        pytest.skip("the documents are not here")
    theirs = " ".join(_words(path.read_text(encoding="utf-8")) for path in sorted(seeds.glob("*.txt")))
    for claim in claims:
        words = _words(" ".join([claim.published, claim.verdict, *claim.given])).split()
        runs = [" ".join(words[start : start + 6]) for start in range(len(words) - 5)]
        assert [run for run in runs if f" {run} " in f" {theirs} "] == []


def _words(text: str) -> str:
    return " ".join(re.findall(r"[a-z]+", text.lower()))


def test_the_command_prints_what_the_report_shows(
    tmp_path: Path, claims: list[Claim], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["claims"]) == 0
    said = capsys.readouterr().out
    assert said.strip() == as_text(claims)
    analysed(tiny_plan(replicates=2), tmp_path)
    page = " ".join(Page(tmp_path / "report.html").text.split())
    for claim in claims:
        assert claim.verdict in said
        for words in (claim.published, claim.verdict, *claim.given):
            assert words in page


def test_the_command_shows_one_study_or_names_those_that_it_knows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "--study", "lab-device"]) == 0
    said = capsys.readouterr().out
    assert "1.934" in said
    assert "cifar10-cnn" not in said
    assert main(["claims", "--study", "lab"]) == 1
    assert "allowed: cifar10-cnn, mnist-strategies, lab-device, batch-size" in capsys.readouterr().err


@pytest.mark.parametrize(("published", "opened"), [("batch-size", 2), (None, 0)])
def test_the_claims_of_the_selected_studies_stand_open_and_the_others_folded(
    published: str | None, opened: int, tmp_path: Path, claims: list[Claim]
) -> None:
    analysed(tiny_plan(replicates=2, published=published), tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    section = text[text.index('id="claims-re-examined"') :]
    assert text.count("Claims re-examined") == 1
    summary = f"{len(claims) - opened} published claims about which no study on this page says anything"
    before, _, after = section.partition(summary)
    assert before.count("<h3>") == opened
    assert after.count("<h3>") == len(claims) - opened
    assert all((claim.verdict in before) == (claim.study == published) for claim in claims)


def test_it_needs_no_torch() -> None:
    program = "import sys; from study.cli import main; main(['claims']); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_only_claims_of_the_study_that_is_asked_for_are_chosen(claims: list[Claim]) -> None:
    assert chosen(claims, None) == claims
    assert {claim.study for claim in chosen(claims, "batch-size")} == {"batch-size"}
