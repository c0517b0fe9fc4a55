"""The published claims, re-examined on the figures that were printed with them."""

import re
import subprocess
import sys
from collections.abc import Callable
from statistics import median

import pytest

from study.artifacts.published import Figure, Published, all_published
from study.base.files import ROOT
from study.cli import main
from study_extras.claims.examine import as_text, examine
from study_extras.claims.printed import Examined

NO_NOISE = "With one run per setting there is no estimate of the noise"


PUBLISHED = {one.name: one for one in all_published()}
CLAIMS = [claim for one in PUBLISHED.values() for claim in examine(one)]


def one(published: Published | str, words: str = "times as fast") -> Examined:
    """The one claim with these words among the figures of a replication."""
    found = examine(PUBLISHED[published] if isinstance(published, str) else published)
    (claim,) = [claim for claim in found if words in claim.claim.published]
    return claim


def times(document: str, table: str | None = None, **where: object) -> list[float]:
    """The training times that are so published."""
    return [
        figure.value
        for figure in PUBLISHED[document].figures
        if figure.metric == "fit_time" and table in (None, figure.table)
        and all({"device": figure.at.get("device"), "hardware": figure.hardware, "epochs": figure.epochs,
                 "strategy": figure.at.get("training.strategy")}[key] == value for key, value in where.items())
    ]  # fmt: skip


def changed(document: str, change: Callable[[Figure], dict[str, object]]) -> Published:
    """The figures of a replication with what ``change`` returns for each."""
    published = PUBLISHED[document]
    figures = [figure.model_copy(update=change(figure)) for figure in published.figures]
    assert figures != published.figures
    return published.model_copy(update={"figures": figures})


def test_every_published_claim_is_examined() -> None:
    """A new row that claims something, in whatever metric, needs an examination."""
    for published in PUBLISHED.values():
        claims = examine(published)
        examined = {line for claim in claims for line in (*claim.claim.lines, *(used.line for used in claim.used))}
        derived = [
            figure
            for figure in published.figures
            if re.search("speedup|relative|optimum|faster|ratio", figure.metric)
            or "claim" in figure.table or figure.unit == "ratio"
        ]  # fmt: skip
        assert {figure.line for figure in derived} <= examined
        claimed = [figure.line for figure in derived if figure.metric in ("speedup", "relative_performance")]
        assert sorted(line for claim in claims for line in claim.claim.lines) == claimed


def test_a_line_names_the_row_of_the_file() -> None:
    for claim in CLAIMS:
        file = ROOT / "replications" / claim.claim.document / "published.csv"
        lines = file.read_text(encoding="utf-8").splitlines()
        assert all("speedup" in lines[line - 1] or "relative" in lines[line - 1] for line in claim.claim.lines)
        assert all(used.value.removesuffix(" s") in lines[used.line - 1] for used in claim.used)


def test_the_blogs_ratio_divides_by_the_fastest_of_five() -> None:
    claim = one("gpu_blog")
    assert claim.verdict.startswith("9.972 is one CPU run over the fastest of 5 GPU runs")
    assert "over their median it is 6.819." in claim.verdict
    (cpu,), gpus = times("gpu_blog", "claim"), times("gpu_blog", "table")
    assert cpu / min(gpus) == pytest.approx(9.972, abs=5e-4)
    assert cpu / median(gpus) == pytest.approx(6.819, abs=5e-4)
    assert NO_NOISE in claim.verdict
    assert "another run of the same setting gives 6.951" in claim.verdict


def test_two_runs_of_one_setting_leave_the_blogs_ratio_open() -> None:
    """With one degree of freedom t is 12.7: log 8.33 more or less 12.7 x 0.313."""
    (sentence,) = [words for words in one("gpu_blog").given if "run again" in words]
    assert "the ratio is 8.33;" in sentence.replace("\n", " ")
    assert "says nothing: 2 runs are too few" in sentence


def test_the_labs_printed_totals_contradict_its_ratio() -> None:
    claim = one("gpu_lab")
    (cpu,), gpu = times("gpu_lab", "part 1", device="cpu", epochs="5"), times("gpu_lab", "part 1", device="cuda")
    assert cpu / gpu[0] == pytest.approx(1.934, abs=5e-4)
    assert "The printed times of 5 epochs give 1.934 (rounded as the claim is: 1.93), not 1.84." in claim.verdict
    assert NO_NOISE in claim.verdict
    assert any("1.899 to 1.976; no epoch gives the claimed ratio" in words for words in claim.given)


def test_the_time_of_another_document_is_not_divided() -> None:
    """The second lab's CPU ran something that it does not name; whichever comes first in the file."""
    lab = PUBLISHED["gpu_lab"]
    for figures in (lab.figures, lab.figures[::-1]):
        claim = one(lab.model_copy(update={"figures": figures}))
        assert [used.value for used in claim.used] == ["125.142935 s", "64.715595 s"]


def test_times_of_other_numbers_of_epochs_are_not_divided() -> None:
    shorter = changed("gpu_lab", lambda figure: {"epochs": "3"} if figure.at.get("device") == "cuda" else {})
    assert "it cannot be checked" in one(shorter).verdict


def test_the_ten_epochs_of_the_log_give_a_smaller_ratio_than_claimed() -> None:
    claim = one("cifar10_project")
    (cpu,), (gpu,) = (times("cifar10_project", device=device) for device in ("cpu", "cuda"))
    assert cpu / gpu == pytest.approx(2.146, abs=5e-4)
    assert "The printed times of 10 epochs give 2.146 (rounded as the claim is: 2.1), not 2.2." in claim.verdict
    assert "The log prints 10 epochs of each run." in claim.given
    assert any("2 epochs" in words for words in claim.given)
    assert NO_NOISE in claim.verdict


def test_mnists_ratio_is_one_of_five_and_larger_on_the_smaller_gpu() -> None:
    claim = one("mnist_report")
    (cpu,) = times("mnist_report", device="cpu")
    for hardware, ratio in (("A100", 14.04), ("Tesla T4", 16.35)):
        (gpu,) = times("mnist_report", hardware=hardware, strategy="ddp")
        assert cpu / gpu == pytest.approx(ratio, abs=5e-3)
    assert "14.04 is one CPU run over one of 5 GPU runs (A100, batch size 1000, ddp, fastai)" in claim.verdict
    assert "The same setting on Tesla T4 gives 16.35." in claim.verdict
    assert NO_NOISE in claim.verdict
    assert len(claim.used) == 6


def test_the_blogs_two_runs_differ_by_more_than_its_optimum_is_deep() -> None:
    given = " ".join(one("gpu_blog", "optimum").given)
    assert "The two runs differ by 0.25 to 3.12 s a point" in given
    assert "at 4 of 5 batch sizes by more than the 2.26 s" in given
    assert "In the table 64 is the fastest, 7.18 s: 2.26 s below 16 and 4.17 s below 256" in given
    assert "In the figure 64 is the fastest, 10.3 s: 2.24 s below 16 and 4.04 s below 256" in given
    assert "0.47 s below 128, the next fastest" in given


def test_the_blogs_optimum_is_not_established_by_either_run_or_both() -> None:
    claim = one("gpu_blog", "optimum")
    given = " ".join(claim.given)
    assert "Of the table and the figure alone: No law beats a constant, and without replicates" in given
    assert "Together, each run a block (p = 0.0655): No law beats a constant" in given
    assert "16, 32, 64, 128 and 256 may be the fastest" in given
    assert claim.verdict.startswith("Not established: 64 is the fastest in 2 of 2 runs")
    assert NO_NOISE in claim.verdict


def test_an_optimum_that_both_runs_show_alike_is_supported() -> None:
    """A planted U without noise but for a thousandth: the verdict is not the same whatever the figures say."""
    planted = {16: 2.01, 32: 1.51, 64: 1.01, 128: 1.51, 256: 2.01}

    def plant(figure: Figure) -> dict[str, object]:
        size = figure.at.get("training.batch_size")
        if figure.metric != "fit_time" or size not in planted:
            return {}
        wobble = 1.002 if (size, figure.table) == (32, "figure") else 1.0
        return {"value": round(planted[int(size)] * {"table": 1.0, "figure": 1.3}[figure.table] * wobble, 4)}

    claim = one(changed("gpu_blog", plant), "optimum")
    assert (
        claim.verdict == "Supported: 64 is the fastest in 2 of 2 runs, and no other of the 5 may be the fastest (95%)."
    )
    assert claim.given[0].startswith("The printed times do not give 76% at 16, 68.4% at 32")


def test_a_ratio_that_the_printed_times_give_is_said_to_be_given() -> None:
    given = changed("gpu_lab", lambda figure: {"value": 1.93} if figure.metric == "speedup" else {})
    assert one(given).verdict.startswith("The printed times give it: 1.934.")


def test_a_claim_without_times_beside_it_cannot_be_checked() -> None:
    for published in PUBLISHED.values():
        rest = [figure for figure in published.figures if figure.metric != "fit_time"]
        for claim in examine(published.model_copy(update={"figures": rest})):
            assert "it cannot be checked" in claim.verdict
            assert not claim.used


def test_no_sentence_is_one_of_the_documents() -> None:
    """Facts carry over, sentences do not; names of hardware and figures are facts."""
    seeds = ROOT.parent / "shared" / "seeds"
    if not seeds.is_dir():
        pytest.skip("the documents are not here")
    theirs = " ".join(_words(path.read_text(encoding="utf-8")) for path in sorted(seeds.glob("*.txt")))
    for claim in CLAIMS:
        words = _words(" ".join([claim.claim.published, claim.verdict, *claim.given])).split()
        runs = [" ".join(words[start : start + 6]) for start in range(len(words) - 5)]
        assert [run for run in runs if f" {run} " in f" {theirs} "] == []


def _words(text: str) -> str:
    return " ".join(re.findall(r"[a-z]+", text.lower()))


def test_the_command_prints_every_claim(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims"]) == 0
    said = capsys.readouterr().out
    assert said.strip() == as_text(CLAIMS)
    for claim in CLAIMS:
        assert all(words in said for words in (claim.claim.published, claim.verdict, *claim.given))


def test_the_command_shows_one_document_or_names_those_that_it_knows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "gpu_lab"]) == 0
    said = capsys.readouterr().out
    assert "1.934" in said
    assert "cifar10_project" not in said
    assert main(["claims", "lab"]) == 1
    assert "allowed: cifar10_project, gpu_blog, gpu_lab, mnist_report" in capsys.readouterr().err


def test_it_needs_no_torch() -> None:
    program = "import sys; from study.cli import main; main(['claims']); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
