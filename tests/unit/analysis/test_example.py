"""The committed example: its records are still read, what is shown follows from them, and the pages
quote it."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from study.analysis.analysis import Analysis, read_analysis
from study.analysis.stats.mixed_model import Array
from study.analysis.stats.usable import counted
from study.analysis.table import tables
from study.analysis.words import listed, number, short
from study.artifacts.plan import Plan
from study.base.files import ROOT
from study.cli import main
from study.config.times import PHASES
from tests.examples import EXAMPLE, with_analysis

pytestmark = pytest.mark.xdist_group("the example")


def words_of(page: Path) -> str:
    """The words of a page, however its lines are broken."""
    return " ".join(page.read_text(encoding="utf-8").split())


def recorded(study: str) -> pd.DataFrame:
    """The table of a study's records."""
    return tables.read_timings(
        with_analysis(study) / study / "timings.csv", Plan.read(EXAMPLE / study / "plan.json")
    )


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return recorded("photographs")


@pytest.fixture(scope="module")
def page() -> str:
    """The example's own page."""
    return words_of(ROOT / "docs" / "example" / "README.md")


def written(study: str) -> Analysis:
    """The analysis of the study, from its records."""
    return read_analysis(with_analysis(study) / study / "fit.json")


def test_the_page_quotes_the_speedup_with_its_times(page: str) -> None:
    found = written("photographs-speedup").ratios
    assert [ratio.at.levels["loader.kind"] for ratio in found] == ["workers", "device"]
    for ratio in found:
        assert ratio.together.bounds
        times, low, high = map(short, (ratio.together.value, *ratio.together.bounds))
        assert f"{times} times ({low} to {high}) as fast" in page
        assert f"({number(ratio.slower_seconds)} s over {number(ratio.faster_seconds)} s)" in page


def test_the_assignment_quotes_the_example_and_the_blog() -> None:
    page = words_of(ROOT / "docs" / "assignment.md")
    found, speedup = written("photographs"), written("photographs-speedup")
    assert found.claims[0].measured.partition(": ")[2] in page
    assert speedup.claims[0].measured in page
    assert f"{short(speedup.ratios[1].ratio.value)} times without" in page
    assert found.groups[1].indistinguishable == ["32"]
    fast, slow = (
        one.time for one in found.groups[1].levels if one.time and one.label in ("32", "64")
    )
    for time in (fast, slow):
        assert f"{number(time.value)} s ({' to '.join(map(number, time.bounds or ()))})" in page
    assert f"The ratio within blocks, {slow.value / fast.value:.2f}, does not" in page
    runs = counted(recorded("photographs")).set_index("training.loop").loc["fastai"]
    seconds = runs.pivot(index="block", columns="training.batch_size", values="blog_seconds")
    for size in (16, 32):
        assert (
            f"| batch size {size} | {' | '.join(f'{one:.2f}' for one in seconds[size][:3])} |"
            in page
        )
    logs = np.log(seconds[16] / seconds[32])[:3]
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


def test_the_page_quotes_the_times_of_three_ways_to_train(page: str) -> None:
    found = written("photographs")
    for group in found.groups:
        times = {
            one.label: one.time
            for one in group.levels
            if one.time and one.label in group.indistinguishable
        }
        best = min(times, key=lambda label: times[label].value)
        time, others = times[best], [label for label in times if label != best]
        assert time.bounds
        low, high = map(number, time.bounds)
        tied = f" {listed(others)}" if others else ""
        assert f"| {best} | {number(time.value)} ({low} to {high}) |{tied} |" in page


def test_the_page_quotes_the_answer_its_claims_and_what_limits_it(page: str) -> None:
    found = written("photographs")
    answer = re.search(r"\*\*([\d.]+) times as fast\*\* as stock fastai \(.*: (.*)\)", found.answer)
    assert answer
    assert f"{answer[1]} times ({answer[2]}) as fast as stock fastai" in page
    for change in found.screen.changes:
        (ratio,) = re.findall(r"([\d.]+ times)", change.becomes)
        assert ratio in page
    fastest, shares = found.claims
    times, interval = re.findall(r"([\d.]+) times as long \(95%: (.*)\)", fastest.measured)[0]
    assert f"{times} ({interval})" in page
    reached = re.match(r"\d+% to \d+%", shares.measured)
    assert reached
    assert f"they reach {reached[0]} of its speed" in page
    assert found.screen.limit
    stock = found.screen.limit.ends[-1][1]
    for phase, form in (
        ("starting the workers", "these starts take {} s"),
        ("validation", "validation takes {} s"),
        ("waiting for data", "for data {} s"),
        ("computing", "optimizer take {} s"),
    ):
        assert form.format(short(stock[phase])) in page
    apart = [
        max(means) / min(means)
        for means in (
            [level.time.value for level in group.levels if level.time] for group in found.groups
        )
    ]
    assert f"at most {short(max(apart))} times apart" in page


@pytest.mark.parametrize(
    "names", [("host", "docker"), ("gpu-host", "gpu-podman"), ("results", "other")]
)
def test_the_page_quotes_what_it_compares(
    names: list[str], page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["compare", *(str(ROOT / "docs" / "example" / f"{name}.zip") for name in names)]) == 0
    )
    printed = capsys.readouterr().out
    told = re.search(r"([\d.]+ times) as long \((.*)\)", printed)
    assert told
    workload = re.search(r"workload of the device: ([\d.]+ times)", printed)
    assert workload
    assert names[0] != "host" or f"its reference workload took {workload[1]} as long" in page
    assert f"{told[1]} ({told[2]}) as long" in page


POINTS_OF_ALL = 0.02
"""Equivalence bound of a difference of mean accuracies over the five batch sizes."""


def accuracies() -> dict[tuple[str, int], Array]:
    """The accuracies (n,) of the runs on photographs, one or more for each seed, by way and batch
    size."""
    frame = recorded("photographs")
    frame = frame[frame["outcome"] == "ok"]
    ways = frame["training.loop"] + " " + frame["training.optimizer_implementation"]
    return {
        (way, size): frame["accuracy"][
            (ways == way) & (frame["training.batch_size"] == size)
        ].to_numpy(float)
        for way in ways.unique()
        for size in (16, 32, 64, 96, 128)
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [("torch fused", "torch auto"), ("torch fused", "fastai auto"), ("torch auto", "fastai auto")],
)
def test_the_three_ways_to_train_reach_one_mean_accuracy(one: str, other: str) -> None:
    """Two one-sided tests at 5% (Schuirmann 1987): the 90% interval lies within the bound. The
    degrees of freedom are the fewest that the variances' weights allow, those of one cell."""
    found = accuracies()
    sizes = [size for way, size in found if way == one]
    pairs = [(found[one, size], found[other, size]) for size in sizes]
    difference = np.mean([first.mean() - second.mean() for first, second in pairs])
    error = np.sqrt(sum(side.var(ddof=1) / len(side) for pair in pairs for side in pair)) / len(
        pairs
    )
    reach = stats.t.ppf(0.95, 2) * error
    assert len(sizes) == 5
    assert abs(difference) + reach < POINTS_OF_ALL


def test_the_page_quotes_what_the_switches_buy(page: str) -> None:
    found = written("photographs-switches")
    (switches,) = found.switches
    assert switches.combination
    assert switches.combination.best.label == "fused optimizer + decoded beforehand"
    gains = {effect.level: effect.times_as_fast for effect in switches.effects}
    for gain, form, rounded in (
        (gains["device"], "is {} times ({} to {}) as fast", short),
        (
            switches.combination.times_as_fast,
            "decoding with a fused optimizer, {} times ({} to {})",
            short,
        ),
        (gains["fused"], "The fused optimizer gives {} times ({} to {})", number),
        (gains["cuda graph"], "CUDA graphs {} ({} to {})", number),
        (gains["bf16"], "bf16 {} ({} to {})", number),
        (gains["channels_last"], "channels last {} ({} to {})", number),
    ):
        told = [rounded(value) for value in (gain.value, gain.low, gain.high) if value is not None]
        assert form.format(*told) in page
    assert found.screen.limit
    plain = found.screen.limit.ends[-1][1]
    assert (
        f"Of the plain loop's {short(sum(plain.values()))} s computing takes "
        f"{short(plain['computing'])} s" in page
    )
