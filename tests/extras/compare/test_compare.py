"""Results side by side: what a second start would change is in every verdict."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from study.analysis.stats.equivalence import POWER
from study.artifacts.layout import Results
from study.artifacts.machine import Machine
from study.artifacts.plan import Plan, write_plans
from study.artifacts.record import Record, sealed
from study.cli import main
from study_extras.compare.difference import UNKNOWN_SPREAD, Difference, errors_of
from study_extras.compare.more_starts import more_starts
from study_extras.compare.night import Gate, gate
from study_extras.compare.side import PHASES, STATES, Side
from study_extras.compare.statistics import Pair, compare, rank
from study_extras.compare.step import Compared, as_text, compare_folders
from study_extras.compare.words import reasons, settings_table, verdict_lines
from tests.chance import at_least, at_most
from tests.conftest import repeats, tiny_plan
from tests.examples import EXAMPLE
from tests.unit.artifacts.test_records import MACHINE, make_record

SETTINGS = ["16, cpu", "64, cpu"]


def side(
    name: str,
    rng: np.random.Generator,
    starts: int,
    factor: float = 1.0,
    spread: float = 0.02,
    noise: float = 0.02,
    runs: int = 3,
) -> Side:
    """The runs of a result whose starts differ by ``spread``, and whose runs by ``noise`` (standard deviations)."""
    columns: dict[str, list[Any]] = {"setting": [], "seconds": [], "start": []}
    for start in range(starts):
        state = rng.normal(0, spread)
        for place, setting in enumerate(SETTINGS):
            columns["setting"] += [setting] * runs
            columns["seconds"] += list(factor * (10.0 - place) * np.exp(state + rng.normal(0, noise, runs)))
            columns["start"] += [start] * runs
    frame = pd.DataFrame(columns | {"accuracy": 0.8, "valid_images": 200} | dict.fromkeys((*PHASES, *STATES), np.nan))
    return Side(name, frame)


def pair(seed: int, starts: tuple[int, int], factor: float, **how: Any) -> Pair:
    rng = np.random.default_rng(seed)
    return compare(
        side("before", rng, starts[0], **how), side("after", rng, starts[1], factor, **how), SETTINGS, margin=0.05
    )


def alarms(found: Pair) -> bool:
    return any(one.verdict in ("faster", "slower") for one in (found.overall, *found.settings))


@pytest.mark.parametrize("starts", [(2, 2), (2, 6)])
def test_equal_results_are_told_apart_in_at_most_one_of_twenty_comparisons(starts: tuple[int, int]) -> None:
    """The overall verdict, and the settings together, each have 5%. Starts differ far more than runs."""
    found = [pair(seed, starts, 1.0, spread=0.05) for seed in repeats(40, 160)]
    assert sum(one.overall.verdict in ("faster", "slower") for one in found) <= at_most(0.05, len(found))
    assert sum(map(alarms, found)) <= at_most(0.1, len(found))


def test_equal_results_with_a_broken_start_are_rarely_told_apart() -> None:
    """One start of one result was half as fast."""

    def broken(seed: int) -> Pair:
        rng = np.random.default_rng(seed)
        first, second = side("before", rng, 4), side("after", rng, 4)
        slow = second.runs.assign(seconds=second.runs["seconds"].where(second.runs["start"] != 2, lambda s: 2 * s))
        return compare(first, Side("after", slow), SETTINGS, margin=0.05)

    seeds = repeats(30, 100)
    assert sum(alarms(broken(seed)) for seed in seeds) <= at_most(0.03, len(seeds))


def measured(ratio: float, spread: float, starts: tuple[int, int]) -> Difference:
    """A difference whose spreads were measured."""
    errors = errors_of((spread, spread), starts, [count - 1.0 for count in starts])
    return Difference(float(np.log(ratio)), starts, (spread, spread), (False, False), errors)


def verdicts(ratio: float, starts: tuple[int, int], more: int) -> list[str]:
    """The verdicts of comparisons of results that have so many more starts."""
    both = starts[0] + more, starts[1] + more
    return [pair(seed, both, ratio, spread=0.03, noise=0.0, runs=1).overall.verdict for seed in repeats(40, 100)]


@pytest.mark.parametrize(
    ("ratio", "starts", "verdict"),
    [(1.0, (3, 3), "equivalent"), (1.02, (3, 5), "equivalent"), (1.06, (3, 3), "slower"), (1.05, (3, 6), "slower")],
)
def test_the_starts_that_are_asked_for_end_four_of_five_comparisons(
    ratio: float, starts: tuple[int, int], verdict: str
) -> None:
    """By the power of the test that is at stake: of equivalence, or of the difference."""
    asked = more_starts(measured(ratio, 0.03, starts), 0.05)
    assert asked.test == ("equivalence" if verdict == "equivalent" else "difference")
    assert asked.starts is not None
    found = verdicts(ratio, starts, asked.starts)
    assert found.count(verdict) >= at_least(POWER, len(found))


def test_half_of_the_starts_that_are_asked_for_are_not_enough() -> None:
    asked = more_starts(measured(1.0, 0.03, (3, 3)), 0.05)
    assert asked.starts is not None
    found = verdicts(1.0, (3, 3), asked.starts // 2)
    assert found.count("equivalent") < at_least(POWER, len(found))


def test_every_comparison_without_a_verdict_says_how_many_more_starts_it_needs() -> None:
    """Also where there are starts enough to show that equal results are equal: the ratio may lie near the margin."""
    found = [pair(seed, (count, 4), 1.03, spread=0.02) for seed in range(20) for count in (1, 2, 12)]
    each = [compared for one in found for compared in (one.overall, *one.settings)]
    assert {one.verdict for one in each} >= {"not_enough_starts", "slower"}
    for one in each:
        assert (one.more is None) == (one.verdict != "not_enough_starts")
        assert one.more is None or one.more.starts is None or one.more.starts >= 1
    asked = [one.more.starts for one in each if one.more and one.more.starts]
    assert len(asked) >= 0.9 * sum(one.more is not None for one in each)


def test_a_spread_that_a_hundred_starts_do_not_overcome_is_said_without_a_number() -> None:
    found = pair(3, (3, 3), 1.0, spread=0.5)
    assert found.overall.more and found.overall.more.starts is None
    assert verdict_lines(found)[2].startswith("More than 100 more starts of each would be needed to")
    assert "tied: over 100 more of each" in settings_table(found)[1]


def test_a_phase_and_a_clock_that_changed_are_where_the_difference_lies() -> None:
    """The second result takes a second longer in its backward pass, at four fifths of the clock."""
    rng = np.random.default_rng(1)
    known = dict.fromkeys(PHASES, 0.5) | dict.fromkeys(STATES, 2.0) | {"sm_clock_mhz": 1500.0}
    before = side("before", rng, 3, spread=0.001, noise=0.0)
    before = Side("before", before.runs.assign(**known))
    planted = {"backward_seconds": 1.5, "sm_clock_mhz": 1200.0}
    after = Side("after", before.runs.assign(seconds=before.runs["seconds"] + 1, **planted))
    found = Pair.model_validate_json(compare(before, after, SETTINGS, margin=0.05).model_dump_json())
    assert found.overall.phases == pytest.approx(dict.fromkeys(PHASES, 0.0) | {"backward_seconds": 1.0})
    assert found.overall.states == pytest.approx(dict.fromkeys(STATES, 1.0) | {"sm_clock_mhz": 0.8})
    told = (
        "reference workload of the device 1.00 times, reference workload of the host 1.00 times and clock of the GPU "
        "0.8 times"
    )
    assert reasons(found) == [
        "Where the difference lies, mean of a run: backward +1 s.",
        "The reference workload of the device: 1.00 times that of before.",
        "The reference workload of the host: 1.00 times that of before.",
        "The clock of the GPU: 0.8 times that of before.",
        "Where it lies at each setting that differs, with what the machine told of itself then:",
        *(f"  {one}:  backward +1 s, {told}" for one in SETTINGS),
    ]


def test_a_setting_that_alone_changed_is_told_with_its_phase_and_the_other_is_not() -> None:
    """At the first setting the second result waits a second longer for its data; the machine is the same."""
    rng = np.random.default_rng(1)
    before = side("before", rng, 3, spread=0.001, noise=0.0)
    before = Side("before", before.runs.assign(**dict.fromkeys(PHASES, 0.5)))
    waits = (before.runs["setting"] == SETTINGS[0]).astype(float)
    after = before.runs.assign(seconds=before.runs["seconds"] + waits, data_wait_seconds=0.5 + waits)
    found = compare(before, Side("after", after), SETTINGS, margin=0.05)
    assert [one.verdict for one in found.settings] == ["slower", "equivalent"]
    assert reasons(found)[-1] == f"  {SETTINGS[0]}:  waiting for data +1 s"


def test_equal_results_of_quiet_starts_are_equivalent() -> None:
    found = pair(3, (5, 5), 1.0, spread=0.005, noise=0.005)
    assert {one.verdict for one in (found.overall, *found.settings)} == {"equivalent"}


def test_one_start_alone_is_told_apart_only_by_more_than_starts_may_differ() -> None:
    """A spread is assumed, which the result says: runs of one start agree with each other whatever its state."""
    near, far = pair(1, (1, 1), 1.6, noise=0.001), pair(1, (1, 1), 20.0, noise=0.001)
    assert near.assumed == (True, True)
    assert near.spreads == pytest.approx((UNKNOWN_SPREAD, UNKNOWN_SPREAD), rel=0.001)
    assert near.overall.verdict == "not_enough_starts"
    assert far.overall.verdict == "slower"
    assert {one.verdict for one in far.settings} == {"slower"}


def test_a_start_that_lacks_a_setting_does_not_move_the_mean() -> None:
    rng = np.random.default_rng(5)
    first, second = side("before", rng, 4, spread=0.1, noise=0.0), side("after", rng, 4)
    lost = first.runs[(first.runs["start"] != 0) | (first.runs["setting"] != SETTINGS[0])]
    whole = compare(first, second, SETTINGS, 0.05).overall.ratio.value
    assert compare(Side("before", lost), second, SETTINGS, 0.05).overall.ratio.value == pytest.approx(whole)


def test_three_results_are_ranked_and_those_that_may_be_the_fastest_are_named() -> None:
    rng = np.random.default_rng(2)
    found = rank([side("slow", rng, 4, 1.5), side("one", rng, 4), side("two", rng, 4, 1.005)], SETTINGS)
    assert found.order[-1] == "slow"
    assert set(found.may_be_fastest) == {"one", "two"}
    assert found.times["slow"] == pytest.approx(1.5, rel=0.05)


STEADY = float(np.log(1.05) / (stats.t.ppf(0.975, 19) + stats.t.ppf(POWER, 19)) / np.sqrt(1 / 20 + 1))
"""The spread between twenty starts of a baseline with which a gate states that it finds 5%."""


def nights(factor: float) -> list[Gate]:
    """Nights, each against a baseline of its own."""
    found = []
    for seed in repeats(80, 200):
        rng = np.random.default_rng(seed)
        baseline = side("baseline", rng, 20, spread=STEADY, noise=0.0, runs=1)
        found.append(gate(baseline, side("night", rng, 1, factor, spread=STEADY, noise=0.0, runs=1)))
    assert None not in found
    return [one for one in found if one]


def test_nights_without_a_change_raise_an_alarm_in_at_most_one_of_twenty() -> None:
    found = nights(1.0)
    assert sum(one.slower for one in found) <= at_most(0.05, len(found))


def test_a_planted_slowdown_of_a_twentieth_is_found_by_the_gate_with_the_power_that_it_states() -> None:
    found = nights(1.05)
    stated = np.median([one.overall.found for one in found])
    assert stated == pytest.approx(1.05, abs=0.005)
    assert sum(one.overall.slower for one in found) >= at_least(POWER, len(found))


def test_a_baseline_of_two_starts_tells_no_limit() -> None:
    rng = np.random.default_rng(1)
    assert gate(side("baseline", rng, 2), side("night", rng, 1)) is None


def result(folder: Path, plan: Plan, change: Callable[[Record, int], Record] = lambda record, _: record) -> Path:
    """A results folder with a record for every run of the plan, in a start for each block."""
    files = Results(folder)
    write_plans([plan], folder)
    for number, run in enumerate(plan.runs):
        path = files.record(plan.name, run.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        record = change(make_record(plan, number, session=run.block), run.block)
        path.write_text(record.model_dump_json(indent=1), encoding="utf-8")
    return folder


def slower(factor: float, machine: Machine | None = None) -> Callable[[Record, int], Record]:
    """Records whose times are longer by a factor; those of a start share its state."""

    def change(record: Record, block: int) -> Record:
        assert record.measurement
        seconds = factor * (1 + 0.002 * block) * record.measurement.fit_seconds
        measured = record.measurement.model_copy(update={"fit_seconds": seconds})
        return record.model_copy(update={"measurement": measured, "machine": machine or record.machine})

    return change


FACTORS = {"device": ["cpu"], "training.batch_size": [4, 8]}


def test_a_planted_slowdown_is_found_in_two_folders_with_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tiny_plan(factors=FACTORS, replicates=4)
    newer = MACHINE.model_copy(update={"libraries": MACHINE.libraries | {"torch": "9.9"}})
    folders = [result(tmp_path / "old", plan, slower(1.0)), result(tmp_path / "new", plan, slower(1.05, newer))]
    written = ["--output", str(tmp_path / "found.json"), "--page", str(tmp_path / "found.html")]
    assert main(["compare", *map(str, folders), *written]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "tiny: training time"
    assert said[1] == "new takes 1.05 times as long as old (95%: 1.05 to 1.05); by itself in 2 of 2 settings."
    page = (tmp_path / "found.html").read_text(encoding="utf-8")
    assert re.sub("<[^>]*>", "", re.findall('<p class="answer">(.*)</p>', page)[0]).replace("\xa0", " ") == said[1]
    assert page.count('<g class="mark mean"') == 3  # on a desk, on a phone and in the legend
    assert [line.split() for line in said if line.strip().startswith("torch")] == [["torch", "2.0", "9.9"]]
    (found,) = (
        Compared.model_validate_json(json.dumps(one)) for one in json.loads((tmp_path / "found.json").read_text())
    )
    assert [one.setting for one in found.pairs[0].settings] == ["4", "8"]
    assert found.ranking is None


def by_block(*factors: float) -> Callable[[Record, int], Record]:
    """Records of a start whose times are those of its block, by these factors."""
    return lambda record, block: slower(factors[block - 1] / (1 + 0.002 * block))(record, block)


def test_a_comparison_without_a_verdict_tells_how_many_more_starts_each_setting_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tiny_plan(factors=FACTORS, replicates=3)
    old, new = by_block(1, 1.03, 1.06), by_block(1.01, 1.04, 1.07)
    folders = [result(tmp_path / "old", plan, old), result(tmp_path / "new", plan, new)]
    assert main(["compare", *map(str, folders), "--output", str(tmp_path / "found.json")]) == 0
    said = capsys.readouterr().out
    (found,) = json.loads((tmp_path / "found.json").read_text())
    asked = found["pairs"][0]["overall"]["more"]
    assert asked["test"] == "equivalence"
    assert f"\n{asked['starts']} more starts of each would show that they are equivalent within 5%, in four of " in said
    assert said.count("  tied: ") == 2
    assert all(one["more"]["starts"] > 0 for one in found["pairs"][0]["settings"])


@pytest.mark.parametrize(
    ("planned", "given", "told"),
    [
        (0.05, [], "The margin of 5% is the study's own, by the plan of old, which a start writes before its runs."),
        (
            0.1,
            [],
            "The margin of 5% is the study's own, by the plan of old, which a start writes before its runs; other "
            "plans have another: 10% (new).",
        ),
        (
            0.1,
            ["--margin", "0.02"],
            "The margin of 2% was given on the command line, after the data were there; planned: 5% (old) and 10% "
            "(new).",
        ),
    ],
)
def test_a_comparison_tells_whether_its_margin_was_stated_before_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], planned: float, given: list[str], told: str
) -> None:
    old = result(tmp_path / "old", tiny_plan(factors=FACTORS, replicates=2))
    new = result(tmp_path / "new", tiny_plan(factors=FACTORS, replicates=2, equivalence_margin=planned))
    assert main(["compare", str(old), str(new), *given, "--output", str(tmp_path / "found.json")]) == 0
    assert told in capsys.readouterr().out.splitlines()
    (found,) = json.loads((tmp_path / "found.json").read_text())
    assert found["margin"] == {
        "value": 0.02 if given else 0.05,
        "source": "command_line" if given else "plan",
        "planned": {"old": 0.05, "new": planned},
    }
    assert found["pairs"][0]["margin"] == found["margin"]["value"]


def of_devices(folder: Path) -> list[Path]:
    """The runs of the example on the CPU as one result, and those on the GPU as another."""
    folders = [folder / "a", folder / "b"]
    for one, other in zip(folders, ("cuda", "cpu"), strict=True):
        shutil.copytree(EXAMPLE / "photographs-speedup", one / "photographs-speedup")
        for path in (one / "photographs-speedup/records").rglob(f"*-{other}-*.json"):
            path.unlink()
    return folders


def test_a_cpu_and_a_gpu_are_compared_by_the_example(tmp_path: Path) -> None:
    (found,) = compare_folders(of_devices(tmp_path), [], None)
    (both,) = found.pairs
    assert (both.overall.verdict, both.assumed) == ("faster", (False, False))
    assert {one.setting: one.verdict for one in both.settings} == {
        "data loader": "faster",
        "decoded beforehand": "faster",
    }
    assert found.differs["device"][1] == "NVIDIA H100 80GB HBM3"


def test_a_package_that_one_result_alone_noted_is_no_difference(tmp_path: Path) -> None:
    folders = of_devices(tmp_path)
    for path in (folders[1] / "photographs-speedup/records").glob("*.json"):
        record = Record.model_validate_json(path.read_text())
        assert record.machine
        noted = {**record.machine.libraries, "torch": "9.9.9", "spacy": "3.8"}
        path.write_text(
            sealed(
                record.model_copy(update={"machine": record.machine.model_copy(update={"libraries": noted})})
            ).model_dump_json()
        )
    (found,) = compare_folders(folders, [], None)
    differs = found.differs
    assert differs["torch"][1] == "9.9.9"
    assert "spacy" not in differs


def test_other_work_is_refused_with_the_key_that_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = result(tmp_path / "one", tiny_plan(factors=FACTORS))
    other = result(tmp_path / "two", tiny_plan(factors=FACTORS, training={"epochs": 2, "freeze_epochs": 0}))
    assert main(["compare", str(one), str(other)]) == 1
    told = capsys.readouterr().err
    assert told.startswith("error: tiny: the work is not the same: ")
    assert "training.epochs is 1 in one and 2 in two" in told


def test_settings_of_one_result_alone_are_left_out_and_named(tmp_path: Path) -> None:
    one = result(tmp_path / "one", tiny_plan(factors=FACTORS, replicates=2))
    more = FACTORS | {"training.batch_size": [4, 16]}
    other = result(tmp_path / "two", tiny_plan(factors=more, replicates=2))
    (found,) = compare_folders([one, other], [], None)
    assert [setting.setting for setting in found.pairs[0].settings] == ["4"]
    assert found.left_out == {"one": ["8"], "two": ["16"]}
    assert "Only in one, and not compared: 8." in as_text([found])


def test_three_folders_have_an_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tiny_plan(factors=FACTORS, replicates=3)
    folders = [result(tmp_path / name, plan, slower(factor)) for name, factor in [("a", 1.0), ("b", 0.5), ("c", 2.0)]]
    assert main(["compare", *map(str, folders)]) == 0
    said = capsys.readouterr().out
    assert "May be the fastest (95%): b." in said
    assert "b is 2.0 times as fast as a" in said
    assert "c takes 2.0 times as long as a" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["here"], "compare: give two results folders or more"),
        (["here", "gone"], "gone: not a results folder: no such folder"),
        (["here", "empty"], "empty: not a results folder: it holds no <study>/plan.json"),
        (["here", "here"], "compare: here is given twice"),
        (["here", "copy", "--study", "other"], "--study: here holds no study 'other'; allowed: tiny"),
        (["here", "none"], "tiny: none has no run that counts"),
    ],
)
def test_folders_that_cannot_be_compared_are_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    result(Path("here"), tiny_plan(factors=FACTORS))
    shutil.copytree("here", "copy")
    shutil.copytree("here", "none")
    shutil.rmtree("none/tiny/records")
    Path("none/tiny/records").mkdir()
    Path("empty").mkdir()
    assert main(["compare", *arguments]) == 1
    assert capsys.readouterr().err == f"error: {words}\n"


def gated(*arguments: object) -> int:
    """The exit code of the gate."""
    try:
        return main(["gate", *map(str, arguments)])
    except SystemExit as ended:
        assert isinstance(ended.code, int)
        return ended.code


def test_the_gate_ends_with_its_own_code_for_a_slowdown_and_writes_what_ci_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tiny_plan(factors=FACTORS, replicates=4)
    old, new = result(tmp_path / "old", plan, slower(1.0)), result(tmp_path / "new", plan, slower(1.05))
    junit = tmp_path / "junit.xml"
    assert gated(old, old / ".." / "old2", "--junit", junit) == 1
    capsys.readouterr()
    assert gated(old, new, "--junit", junit) == 3
    assert capsys.readouterr().out.startswith("SLOWER: tiny: 1.05 times the baseline; the limit is 1.0")
    suite = ElementTree.parse(junit).getroot()
    assert suite.attrib["failures"] == "1"
    assert [one.attrib["type"] for one in suite.findall("testcase/failure")] == ["slower"]
    shutil.copytree(old, tmp_path / "same")
    assert gated(old, tmp_path / "same") == 0
    assert capsys.readouterr().out.startswith("ok: tiny: 1.00 times the baseline")


def test_a_setting_that_failed_tonight_is_named_and_does_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def failed(record: Record, block: int) -> Record:
        lost = {"outcome": "failed", "measurement": None, "machine": None, "message": "planted"}
        good = slower(1.0)(record, block)
        return good.model_copy(update=lost) if record.setting.levels["training.batch_size"] == 8 else good

    plan, junit = tiny_plan(factors=FACTORS, replicates=4), tmp_path / "junit.xml"
    old, new = result(tmp_path / "old", plan, slower(1.0)), result(tmp_path / "new", plan, failed)
    assert gated(old, new, "--junit", junit) == 3
    said = capsys.readouterr().out
    assert said.startswith("INCOMPLETE: tiny: 1.00 times the baseline")
    assert said.endswith("; without a run that counts: 8\n")
    suite = ElementTree.parse(junit).getroot()
    assert suite.attrib["failures"] == "1"
    (failure,) = suite.findall("testcase/failure")
    assert failure.attrib == {"type": "incomplete", "message": said.strip()}
    assert gated(new, old) == 0  # a setting that is new tonight has nothing to be compared with


def test_a_study_that_is_missing_tonight_does_not_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tiny_plan(factors=FACTORS, replicates=3)
    old, new = result(tmp_path / "old", plan, slower(1.0)), result(tmp_path / "new", plan, slower(1.0))
    result(old, plan.model_copy(update={"name": "other"}), slower(1.0))
    assert gated(old, new) == 1
    assert capsys.readouterr().err == f"error: --study: {new} holds no study 'other'; allowed: tiny\n"
    assert gated(old, new, "--study", "tiny") == 0


def test_the_history_has_a_row_for_each_start_and_no_empty_cell(tmp_path: Path) -> None:
    """Apache Otava refuses a table with an empty cell; one start of the baseline lacks a setting."""

    def later(record: Record, block: int) -> Record:
        return slower(1.05)(record, block).model_copy(update={"started": record.started.replace("01-01", "02-01")})

    plan = tiny_plan(factors=FACTORS, replicates=4)
    old, new = result(tmp_path / "old", plan, slower(1.0)), result(tmp_path / "new", plan, later)
    lost = next(run for run in plan.runs if (run.block, run.setting.levels["training.batch_size"]) == (2, 8))
    Results(old).record("tiny", lost.file).unlink()
    assert gated(old, new, "--history", tmp_path / "history") == 3
    (table,) = (tmp_path / "history").iterdir()
    assert table.name == "tiny.csv"
    rows = pd.read_csv(table)
    assert list(rows) == ["time", "commit", "4", "8"]
    assert list(rows["time"].str[:10]) == 4 * ["2026-01-01"] + 4 * ["2026-02-01"]
    assert list(rows["time"]) == sorted(set(rows["time"]))
    planted = [factor * (1 + 0.002 * block) for factor in (1.0, 1.05) for block in (1, 2, 3, 4)]
    for setting in ("4", "8"):
        assert list(rows[setting]) == pytest.approx(planted)


def test_a_baseline_of_one_start_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tiny_plan(factors=FACTORS, replicates=1)
    old, new = result(tmp_path / "old", plan), result(tmp_path / "new", plan)
    assert main(["gate", str(old), str(new)]) == 1
    assert capsys.readouterr().err == ("error: tiny: old has 1 start(s): the limit is the spread of 3 or more\n")
