"""Results side by side: what a second start would change is in every verdict."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from study.artifacts.bundle import unpack
from study.artifacts.record import Record, sealed
from study.cli import main
from study_compare.side import PHASES, STATES, Side
from study_compare.statistics import Pair, compare
from study_compare.step import Compared, as_text, compare_folders
from study_compare.words import reasons
from tests.conftest import ROOT, repeats, tiny_plan
from tests.results import of_devices, result, slower
from tests.timings import at_most
from tests.unit.artifacts.test_records import MACHINE

SETTINGS = ["16, cpu", "64, cpu"]


def side(
    name: str, rng: np.random.Generator, starts: int, spread: float = 0.02, noise: float = 0.02
) -> Side:
    """The runs of a result whose starts differ by ``spread``, and whose runs by ``noise`` (standard
    deviations)."""
    runs = 3
    columns: dict[str, list[Any]] = {"setting": [], "seconds": [], "start": []}
    for start in range(starts):
        state = rng.normal(0, spread)
        for place, setting in enumerate(SETTINGS):
            columns["setting"] += [setting] * runs
            seconds = (10.0 - place) * np.exp(state + rng.normal(0, noise, runs))
            columns["seconds"] += list(seconds)
            columns["start"] += [start] * runs
    unknown = dict.fromkeys((*PHASES, *STATES), np.nan)
    return Side(name, pd.DataFrame(columns | {"accuracy": 0.8, "valid_images": 200} | unknown))


def alarms(found: Pair) -> bool:
    return any(one.verdict in ("faster", "slower") for one in (found.overall, *found.settings))


def test_equal_results_with_a_broken_start_are_rarely_told_apart() -> None:
    """One start of one result was half as fast."""

    def broken(seed: int) -> Pair:
        rng = np.random.default_rng(seed)
        first, second = side("before", rng, 4), side("after", rng, 4)
        seconds = second.runs["seconds"].where(second.runs["start"] != 2, lambda s: 2 * s)
        slow = Side("after", second.runs.assign(seconds=seconds))
        return compare(first, slow, SETTINGS, margin=0.05)

    seeds = repeats(30, 100)
    assert sum(alarms(broken(seed)) for seed in seeds) <= at_most(0.03, len(seeds))


def test_a_phase_and_a_clock_that_changed_are_where_the_difference_lies() -> None:
    """The second result takes a second longer in its backward pass, at four fifths of the clock."""
    rng = np.random.default_rng(1)
    known = dict.fromkeys(PHASES, 0.5) | dict.fromkeys(STATES, 2.0) | {"sm_clock_mhz": 1500.0}
    before = side("before", rng, 3, spread=0.001, noise=0.0)
    before = Side("before", before.runs.assign(**known))
    planted = {"backward_seconds": 1.5, "sm_clock_mhz": 1200.0}
    after = Side("after", before.runs.assign(seconds=before.runs["seconds"] + 1, **planted))
    found = compare(before, after, SETTINGS, margin=0.05)
    found = Pair.model_validate_json(found.model_dump_json())
    longer = dict.fromkeys(PHASES, 0.0) | {"backward_seconds": 1.0}
    assert found.overall.phases == pytest.approx(longer)
    assert found.overall.states == pytest.approx(dict.fromkeys(STATES, 1.0) | {"sm_clock_mhz": 0.8})
    told = (
        "reference workload of the device 1.00 times, reference workload of the host 1.00 times "
        "and clock of the GPU 0.8 times"
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
    """At the first setting the second result waits a second longer for its data; the machine is the
    same."""
    rng = np.random.default_rng(1)
    before = side("before", rng, 3, spread=0.001, noise=0.0)
    before = Side("before", before.runs.assign(**dict.fromkeys(PHASES, 0.5)))
    waits = (before.runs["setting"] == SETTINGS[0]).astype(float)
    seconds = before.runs["seconds"] + waits
    after = before.runs.assign(seconds=seconds, data_wait_seconds=0.5 + waits)
    found = compare(before, Side("after", after), SETTINGS, margin=0.05)
    assert [one.verdict for one in found.settings] == ["slower", "equivalent"]
    assert reasons(found)[-1] == f"  {SETTINGS[0]}:  waiting for data +1 s"


def test_a_start_that_lacks_a_setting_does_not_move_the_mean() -> None:
    rng = np.random.default_rng(5)
    first, second = side("before", rng, 4, spread=0.1, noise=0.0), side("after", rng, 4)
    lost = first.runs[(first.runs["start"] != 0) | (first.runs["setting"] != SETTINGS[0])]
    whole, found = (
        compare(one, second, SETTINGS, 0.05).overall.ratio.value
        for one in (first, Side("before", lost))
    )
    assert found == pytest.approx(whole)


def failed(record: Record, block: int) -> Record:
    """Records that measured nothing at batch size 8."""
    lost = {"outcome": "failed", "measurement": None, "machine": None, "message": "planted"}
    good = slower(1.0)(record, block)
    return good.model_copy(update=lost if record.settings.training.batch_size == 8 else {})


def forgot(record: Record, block: int) -> Record:
    """Records of networks that were trained in half of the time, and learned nothing."""
    good = slower(0.5)(record, block)
    assert good.measurement
    epochs = [one.model_copy(update={"accuracy": 0.0}) for one in good.measurement.epochs]
    measured = good.measurement.model_copy(update={"epochs": epochs})
    return good.model_copy(update={"measurement": measured})


FACTORS = {"device": ["cpu"], "training.batch_size": [4, 8]}


def test_a_planted_slowdown_is_found_in_two_folders_with_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tiny_plan(factors=FACTORS, replicates=4)
    newer = MACHINE.model_copy(update={"libraries": MACHINE.libraries | {"torch": "9.9"}})
    folders = [
        result(tmp_path / "old", plan, slower(1.0)),
        result(tmp_path / "new", plan, slower(1.05, newer)),
    ]
    assert main(["compare", *map(str, folders), "--output", str(tmp_path / "found.json")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "tiny: training time"
    told = "new takes 1.05 times as long as old (95%: 1.05 to 1.05); by itself in 2 of 2 settings."
    assert said[1] == told
    assert [line for line in map(str.split, said) if line[:1] == ["torch"]] == [
        ["torch", "2.0", "9.9"]
    ]
    (one,) = json.loads((tmp_path / "found.json").read_text())
    found = Compared.model_validate_json(json.dumps(one))
    assert [one.setting for one in found.pairs[0].settings] == ["4", "8"]
    assert found.ranking is None


PLANNED = (
    "The margin of 5% is the study's own, by the plan of old, which a start writes before its runs"
)


@pytest.mark.parametrize(
    ("planned", "given", "told"),
    [
        (0.05, [], f"{PLANNED}."),
        (0.1, [], f"{PLANNED}; other plans have another: 10% (new)."),
        (
            0.1,
            ["--margin", "0.02"],
            "The margin of 2% was given on the command line, after the data were there; planned: "
            "5% (old) and 10% (new).",
        ),
    ],
)
def test_a_comparison_tells_whether_its_margin_was_stated_before_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], planned: float, given: list[str], told: str
) -> None:
    folders = [
        result(tmp_path / name, tiny_plan(factors=FACTORS, replicates=2, equivalence_margin=margin))
        for name, margin in (("old", 0.05), ("new", planned))
    ]
    output = ["--output", str(tmp_path / "found.json")]
    assert main(["compare", *map(str, folders), *given, *output]) == 0
    assert told in capsys.readouterr().out.splitlines()
    (found,) = json.loads((tmp_path / "found.json").read_text())
    assert found["margin"] == {
        "value": 0.02 if given else 0.05,
        "source": "command_line" if given else "plan",
        "planned": {"old": 0.05, "new": planned},
    }
    assert found["pairs"][0]["margin"] == found["margin"]["value"]


def test_a_cpu_and_a_gpu_are_compared_by_the_example(tmp_path: Path) -> None:
    (found,) = compare_folders(of_devices(tmp_path), [], None)
    (both,) = found.pairs
    assert (both.overall.verdict, both.assumed) == ("faster", (False, False))
    verdicts = {one.setting: one.verdict for one in both.settings}
    assert verdicts == dict.fromkeys(("data loader", "decoded beforehand"), "faster")
    assert found.differs["device"][1] == "NVIDIA H100 80GB HBM3"


def test_a_package_that_one_result_alone_noted_is_no_difference(tmp_path: Path) -> None:
    folders = of_devices(tmp_path)
    for path in (folders[1] / "photographs-speedup/records").glob("*.json"):
        record = Record.of_text(path.read_text())
        assert record.machine
        noted = {**record.machine.libraries, "torch": "9.9.9", "spacy": "3.8"}
        machine = record.machine.model_copy(update={"libraries": noted})
        path.write_text(sealed(record.model_copy(update={"machine": machine})).model_dump_json())
    (found,) = compare_folders(folders, [], None)
    assert found.differs["torch"][1] == "9.9.9"
    assert "spacy" not in found.differs


def test_other_work_is_refused_with_the_key_that_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = result(tmp_path / "one", tiny_plan(factors=FACTORS))
    longer = tiny_plan(factors=FACTORS, training={"epochs": 2, "freeze_epochs": 0})
    other = result(tmp_path / "two", longer)
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
    folders = [
        result(tmp_path / name, plan, slower(factor))
        for name, factor in [("a", 1.0), ("b", 0.5), ("c", 2.0)]
    ]
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
        (["here", "copy", "--study", "x"], "--study: here holds no study 'x'; allowed: tiny"),
        (["here", "none"], "tiny: none has no run that counts"),
    ],
)
def test_folders_that_cannot_be_compared_are_one_line(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    result(Path("here"), tiny_plan(factors=FACTORS))
    shutil.copytree("here", "copy")
    shutil.copytree("here", "none")
    shutil.rmtree("none/tiny/records")
    Path("none/tiny/records").mkdir()
    Path("empty").mkdir()
    assert main(["compare", *arguments]) == 1
    assert capsys.readouterr().err == f"error: {words}\n"


def test_bundles_are_compared_as_their_folders_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        shutil.copy(ROOT / "docs" / "example" / "host.zip", tmp_path / name / "results.zip")
        unpack(tmp_path / name / "results.zip", tmp_path / name / "folder")
    assert main(["compare", *(str(tmp_path / name / "folder") for name in ("one", "two"))]) == 0
    of_folders = capsys.readouterr().out
    assert of_folders.splitlines()[1].startswith("two/folder and one/folder are tied")
    assert (
        main(["compare", *(str(tmp_path / name / "results.zip") for name in ("one", "two"))]) == 0
    )
    assert capsys.readouterr().out.replace("results.zip", "folder") == of_folders
    assert main(["compare", str(tmp_path / "one/folder"), str(tmp_path / "two/results.zip")]) == 0
    assert "results.zip" in capsys.readouterr().out
    assert not list(scratch.iterdir())


def checked(*arguments: object) -> int:
    """The exit code of a comparison that forbids a slowdown of more than 5%."""
    try:
        return main(["compare", *map(str, arguments), "--fail-if-slower", "5%"])
    except SystemExit as ended:
        assert isinstance(ended.code, int)
        return ended.code


LONGER = "not passed: tiny: new takes 1.10 times as long {}, and 1.05 is the limit\n"
AT = ("at 4", "at 8")


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (slower(1.0), 0, ""),
        (slower(1.04), 0, ""),  # slower, and by less than the limit
        (slower(1.1), 3, "".join(LONGER.format(where) for where in ("over all settings", *AT))),
        (failed, 3, "not passed: tiny: some result has no run that counts at 8\n"),
        (forgot, 3, "".join(f"not passed: tiny: new learns less {where}\n" for where in AT)),
    ],
)
def test_what_is_slower_or_missing_or_learns_less_does_not_pass(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Record, int], Record],
    code: int,
    said: str,
) -> None:
    plan = tiny_plan(factors=FACTORS, replicates=4)
    old, new = result(tmp_path / "old", plan, slower(1.0)), result(tmp_path / "new", plan, change)
    assert checked(old, new) == code
    assert capsys.readouterr().err == said


def test_a_slowdown_passes_that_the_starts_of_the_baseline_differ_by(tmp_path: Path) -> None:
    """The slowdown is of a tenth, beyond the limit of 5%, and the baseline's own starts differ by a
    third."""
    plan = tiny_plan(factors=FACTORS, replicates=4)

    def by_start(record: Record, block: int) -> Record:
        return slower(1 + 0.1 * block)(record, block)

    restless = result(tmp_path / "old", plan, by_start)
    new = result(tmp_path / "new", plan, slower(1.1 * 1.25))
    assert checked(restless, new) == 0


def test_a_study_that_is_missing_does_not_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tiny_plan(factors=FACTORS, replicates=3)
    old, new = (result(tmp_path / name, plan, slower(1.0)) for name in ("old", "new"))
    result(old, plan.model_copy(update={"name": "other"}), slower(1.0))
    assert checked(old, new) == 1
    told = f"error: --study: {new} holds no study 'other'; allowed: tiny\n"
    assert capsys.readouterr().err == told
    assert checked(old, new, "--study", "tiny") == 0


@pytest.mark.parametrize("value", ["5 %%", "", "%", "0", "-5%", "500%", "nan", "much"])
def test_a_limit_that_is_no_share_is_one_line(
    capsys: pytest.CaptureFixture[str], value: str
) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "a", "b", f"--fail-if-slower={value}"])
    told = (
        f"error: argument --fail-if-slower: {value!r} is not allowed: a share above 0 and "
        "up to 1, such as 0.05 or 5%"
    )
    assert capsys.readouterr().err == f"{told}; see study compare --help\n"
