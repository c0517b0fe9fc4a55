"""The committed example: its records are still read, what is shown follows from them, and the pages quote it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from study.analysis.analysis import Analysis, read_analysis
from study.analysis.answers.group import Level
from study.analysis.caveats.runs import ExcludedRuns
from study.analysis.caveats.work import UnequalCircumstances
from study.analysis.rows import graph_warm_up_sentence, level_rows, shares_of
from study.analysis.stats.mixed_model import Array
from study.analysis.stats.usable import counted
from study.analysis.table import files as table_files
from study.analysis.table.exclusions import FIRST
from study.analysis.words import listed, number, short
from study.artifacts.checked import read_records
from study.artifacts.plan import Plan
from study.artifacts.samples import PHASES
from study.base.files import ROOT
from study.cli import main
from tests.examples import results_of
from tests.timings import table
from tests.unit.analysis.found import only
from tests.unit.analysis.planted import analysis_of

pytestmark = pytest.mark.xdist_group("the example")
EXAMPLE = results_of("example-h200")
FOLDER = EXAMPLE / "batch-size"


def words_of(page: Path) -> str:
    """The words of a page, however its lines are broken."""
    return " ".join(page.read_text(encoding="utf-8").split())


def recorded(study: Path) -> tuple[Plan, pd.DataFrame]:
    """A study's plan, and the table of its records."""
    plan = Plan.read(study / "plan.json")
    return plan, table_files.read_table(plan, study / "records", study / "telemetry")[0]


@pytest.fixture(scope="module")
def plan() -> Plan:
    return Plan.read(FOLDER / "plan.json")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return recorded(FOLDER)[1]


@pytest.fixture(scope="module")
def page() -> str:
    """The example's own page."""
    return words_of(ROOT / "docs" / "example-h200" / "README.md")


def within_rounding(item: object) -> Any:
    """``item``, whose numbers equal any that differ by rounding alone: last digits depend on the machine's BLAS."""
    if isinstance(item, dict):
        return {key: within_rounding(value) for key, value in item.items()}
    return pytest.approx(item, rel=1e-9, abs=0) if isinstance(item, float) else item


def levels(analysis: Analysis) -> Iterator[tuple[str, Level]]:
    for group in analysis.groups:
        for level in group.levels:
            yield f"{group.label}, {level.label}", level


def test_the_table_and_the_analysis_follow_from_the_records(plan: Plan, frame: pd.DataFrame) -> None:
    kept = table_files.read_timings(FOLDER / "timings.csv", plan)
    same = ["run", "fit_seconds", "session", "excluded"]
    pd.testing.assert_frame_equal(frame[same], kept[same])
    found, written = (
        {name: level.time.model_dump() for name, level in levels(analysis) if level.time}
        for analysis in (analysis_of(plan.study, kept), read_analysis(FOLDER / "fit.json"))
    )
    assert len(found) == 10
    assert found == within_rounding(written)


def test_the_page_says_that_the_two_loops_had_unequal_threads(plan: Plan, frame: pd.DataFrame, page: str) -> None:
    (found,) = only(UnequalCircumstances, analysis_of(plan.study, frame).warnings)
    assert (found.what, found.factor) == ("threads", "training.loop")
    assert f"The plain loop had {found.counts['torch']} CPU thread and stock fastai {found.counts['fastai']}" in page


def test_the_page_says_which_settings_did_not_learn(plan: Plan, frame: pd.DataFrame, page: str) -> None:
    groups = analysis_of(plan.study, frame).groups
    assert [list(group.unfair) for group in groups] == [["128", "256"], ["128", "256"]]
    reached = {failed: [] for failed in (True, False)}  # type: dict[bool, list[float]]
    for group in groups:
        for level in group.levels:
            reached[level.label in group.unfair].append(level.accuracy or 0.0)
    failed, learned = (f"{min(values):.0%} to {max(values):.0%}" for values in reached.values())
    assert f"128 and 256 reach {failed} on two classes, the smaller batch sizes {learned}." in page


def test_the_page_quotes_where_the_time_goes(plan: Plan, frame: pd.DataFrame, page: str) -> None:
    """With the shares of the report's card and charts."""
    analysis = analysis_of(plan.study, frame)
    groups = level_rows(plan.study, frame, analysis.groups)
    fastai, rows = groups[0]
    shares = shares_of(rows, plan.study.total)
    assert fastai.label == "GPU, fastai"

    def share(size: int, *parts: str) -> str:
        return f"{sum(shares[str(size)][f'{part}_seconds'] for part in parts):.0%}"

    assert f"take {share(64, 'forward', 'backward', 'optimizer')} of stock fastai's time" in page
    assert f"still for data for {share(64, 'data_wait')}" in page
    assert f"takes another {share(64, 'valid')}" in page
    assert f"together are {share(256, 'data_wait', 'valid')}" in page


def test_the_page_quotes_the_first_runs_of_fresh_machines(plan: Plan, frame: pd.DataFrame, page: str) -> None:
    ok = frame[frame["outcome"] == "ok"]
    median = ok.groupby(["training.loop", "training.batch_size"])["blog_seconds"].transform("median")
    far = sorted(f"{ratio:.1f}" for ratio in ok["blog_seconds"] / median if ratio >= 1.5)
    assert f"Two of the {len(ok)} runs took {' and '.join(far)} times as long" in page
    (found,) = only(ExcludedRuns, analysis_of(plan.study, frame).warnings)
    assert {run.reason for run in found.runs} == {FIRST}
    slow = [run for run in found.runs if run.mean_seconds and run.seconds > 1.5 * run.mean_seconds]
    warm_up, keys = "warm_up_extra_seconds", ["training.loop", "training.batch_size"]
    typical = counted(frame).groupby(keys)[warm_up].median()
    rows = frame.set_index("run").loc[[run.run for run in slow]]
    own = listed([f"{seconds:.3g} s" for seconds in rows[warm_up]])
    usual = listed([f"{typical[tuple(row)]:.3g} s" for row in rows[keys].itertuples(index=False)])
    assert f"warm-up took them {own} in place of {usual}" in page


def test_the_page_quotes_the_speedup_with_its_times(page: str) -> None:
    analysis = read_analysis(EXAMPLE / "speedup" / "fit.json")
    plan = Plan.read(EXAMPLE / "speedup" / "plan.json")
    records = read_records(plan, EXAMPLE / "speedup" / "records").included
    found = analysis_of(plan.study, table(plan, records)).ratios
    assert len(found) == 2
    for ratio, written in zip(found, analysis.ratios, strict=True):
        assert ratio.model_dump() == within_rounding(written.model_dump())
    workers, device = analysis.ratios
    assert [ratio.at.levels for ratio in analysis.ratios] == [{"loader.kind": "workers"}, {"loader.kind": "device"}]
    for ratio in (workers, device):
        assert ratio.ratio.low is not None
        assert ratio.ratio.high is not None
        said = (
            f"{number(ratio.ratio.value)} times that on the GPU ({number(ratio.slower_seconds)} s over "
            f"{number(ratio.faster_seconds)} s, 95%: {number(ratio.ratio.low)} to {number(ratio.ratio.high)})"
        )
        assert said.replace(" that on the GPU", "" if ratio is device else " that on the GPU") in page
    runs = {name: level.runs for name, level in levels(analysis)}
    kinds = ("data loader", "decoded beforehand")
    assert [min(runs[f"CPU, {kind}"], runs[f"GPU, {kind}"]) for kind in kinds] == [3, 3]


def test_the_assignment_quotes_the_example_and_the_blog() -> None:
    page, folder = words_of(ROOT / "docs" / "assignment.md"), results_of("example")
    found, speedup = (read_analysis(folder / f"photographs{name}" / "fit.json") for name in ("", "-speedup"))
    assert found.claims[0].measured.partition(": ")[2] in page
    assert speedup.claims[0].measured in page
    assert f"{short(speedup.ratios[1].ratio.value)} times without" in page
    fast, slow = (one.time for one in found.groups[0].levels if one.time and one.label in ("32", "128"))
    for time in (fast, slow):
        assert f"{number(time.value)} s ({' to '.join(map(number, time.bounds or ()))})" in page
    assert f"The ratio within blocks, {slow.value / fast.value:.2f}, does not" in page
    runs = counted(recorded(folder / "photographs")[1]).set_index("training.loop").loc["fastai"]
    seconds = runs.pivot(index="block", columns="training.batch_size", values="blog_seconds")
    for size in (16, 32):
        assert f"| batch size {size} | {' | '.join(f'{one:.2f}' for one in seconds[size])} |" in page
    logs = np.log(seconds[16] / seconds[32])
    assert f"d = {logs.mean():.3f} and s = {logs.std():.3f}, so 9 to 10 blocks" in page
    assert 9 < 8 * (logs.std() / logs.mean()) ** 2 + 2 < 10
    assert found.screen.next and "training.epochs" in str(found.screen.next.command)

    published = pd.read_csv(ROOT / "replications" / "gpu_blog" / "published.csv")
    times = published[(published["metric"] == "fit_time") & (published["device"] == "cuda")]
    for run, of_it in times.groupby("table"):
        told = [f"{seconds:.2f}" for seconds in of_it["value"]]
        assert f"| {run} | {' | '.join(told)} |" in page
        sizes = of_it["training.batch_size"]
        assert all(f"{size:g},{one},{run}" in page for size, one in zip(sizes, told, strict=True))


def test_phases_and_epochs_add_up_within_two_percent(frame: pd.DataFrame) -> None:
    ok = frame[frame["outcome"] == "ok"]
    pieces = ok[[f"{phase}_seconds" for phase in PHASES]].sum(axis=1) + ok["valid_seconds"]
    assert np.allclose(pieces + ok["other_seconds"], ok["fit_seconds"])
    # "Other" holds the loader's ends, which are named; what has no name at all is under 2%.
    assert ((ok["other_seconds"] - ok["loader_end_seconds"]).abs() < 0.02 * ok["fit_seconds"]).all()


def test_a_warm_up_that_old_records_count_as_transforms_is_said_until_they_have_a_part_for_it() -> None:
    study = results_of("example-switches") / "switches-gpu"
    told = table_files.read_timings(study / "timings.csv", Plan.read(study / "plan.json"))
    assert "it is in the transforms on the device" in graph_warm_up_sentence(told)
    assert graph_warm_up_sentence(told.assign(graph_warm_up_seconds=1.5)) == ""
    assert graph_warm_up_sentence(told.assign(**{"training.cuda_graph": "no cuda graph"})) == ""


PHOTOGRAPHS = results_of("example") / "photographs"


def test_the_page_quotes_the_times_of_three_ways_to_train() -> None:
    plan, frame = recorded(PHOTOGRAPHS)
    found = analysis_of(plan.study, frame)
    page = words_of(ROOT / "docs" / "example" / "README.md")
    for group in found.groups:
        times = {one.label: one.time for one in group.levels if one.time and one.label in group.indistinguishable}
        best = min(times, key=lambda label: times[label].value)
        time, others = times[best], [label for label in times if label != best]
        assert time.bounds
        low, high = map(number, time.bounds)
        assert f"| {best} | {number(time.value)} ({low} to {high}) | {listed(others)} |" in page


def test_the_page_quotes_the_answer_its_claims_and_what_limits_it() -> None:
    found, page = read_analysis(PHOTOGRAPHS / "fit.json"), words_of(ROOT / "docs" / "example" / "README.md")
    answer = re.search(r"\*\*([\d.]+) times as fast\*\* as stock fastai \(.*: (.*)\)", found.answer)
    assert answer
    assert f"{answer[1]} times ({answer[2]}) as fast as stock fastai" in page
    for change in found.screen.changes:
        (ratio,) = re.findall(r"([\d.]+ times)", change.becomes)
        assert ratio in page
    fastest, shares = found.claims
    times, interval = re.findall(r"([\d.]+) times as long \(95%: (.*)\)", fastest.measured)[0]
    assert f"{times} ({interval})" in page
    assert f"they reach {shares.measured.partition(';')[0]} of its speed" in page
    assert found.screen.limit
    stock = found.screen.limit.bars[-1].seconds
    for phase, form in (
        ("validation", "validation takes {} s"),
        ("waiting for data", "for data {} s"),
        ("computing", "optimizer take {} s"),
    ):
        assert form.format(short(stock[phase])) in page
    apart = [
        max(means) / min(means)
        for means in ([level.time.value for level in group.levels if level.time] for group in found.groups)
    ]
    assert f"at most {short(max(apart))} times apart" in page


def test_the_page_quotes_the_container_beside_the_host(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *(str(ROOT / "docs" / "example" / f"{name}.zip") for name in ("host", "docker"))]) == 0
    told = re.search(r"([\d.]+ times) as long \((.*)\)", capsys.readouterr().out)
    assert told
    assert f"{told[1]} ({told[2]}) as long" in words_of(ROOT / "docs" / "example" / "README.md")


POINTS_OF_ALL = 0.02
"""Equivalence bound of a difference of mean accuracies over the five batch sizes."""


def accuracies() -> dict[tuple[str, int], Array]:
    """The accuracies (n,) of the runs on photographs, one or more for each seed, by way and batch size."""
    frame = recorded(PHOTOGRAPHS)[1]
    frame = frame[frame["outcome"] == "ok"]
    ways = frame["training.loop"] + " " + frame["training.optimizer_implementation"]
    return {
        (way, size): frame["accuracy"][(ways == way) & (frame["training.batch_size"] == size)].to_numpy(float)
        for way in ways.unique()
        for size in (16, 32, 64, 96, 128)
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [("torch fused", "torch auto"), ("torch fused", "fastai auto"), ("torch auto", "fastai auto")],
)
def test_the_three_ways_to_train_reach_one_mean_accuracy(one: str, other: str) -> None:
    """Two one-sided tests at 5% (Schuirmann 1987): the 90% interval lies within the bound. The degrees of freedom are
    the fewest that the variances' weights allow, those of one cell."""
    found = accuracies()
    sizes = [size for way, size in found if way == one]
    pairs = [(found[one, size], found[other, size]) for size in sizes]
    difference = np.mean([first.mean() - second.mean() for first, second in pairs])
    error = np.sqrt(sum(side.var(ddof=1) / len(side) for pair in pairs for side in pair)) / len(pairs)
    reach = stats.t.ppf(0.95, 3) * error
    assert len(sizes) == 5
    assert abs(difference) + reach < POINTS_OF_ALL


def test_the_page_quotes_what_the_switches_buy() -> None:
    plan, frame = recorded(results_of("example-switches") / "switches-gpu")
    found = analysis_of(plan.study, frame)
    (switches,) = found.switches
    page = words_of(ROOT / "docs" / "example-switches" / "README.md")
    assert switches.combination
    best = switches.combination.times_as_fast
    assert best.low is not None
    assert best.high is not None
    assert f"{number(best.value)} times (95%: {number(best.low)} to {number(best.high)}) as fast" in page
    gains = {effect.level: effect.times_as_fast for effect in switches.effects}
    for level, form in (
        ("device", "is {} times ({} to {}) as fast"),
        ("fused", "fused optimizer buys {} times ({} to {})"),
        ("channels_last", "channels last {} times ({} to {})"),
        ("cuda graph", "({}, {} to {})"),
        ("bf16", "{} times ({} to {}) the speed"),
    ):
        gain = gains[level]
        assert form.format(*(number(value) for value in (gain.value, gain.low, gain.high) if value is not None)) in page
