"""Records and samples that do not fit are refused with the key and the reason; the others are
read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from study.artifacts.checked import read_records, read_samples
from study.artifacts.plan import Plan
from study.artifacts.record import Record, checksum, sealed
from study.artifacts.telemetry import COLUMNS, write_parquet
from study.base import strict
from study.base.errors import StudyError, shown
from study.base.files import file_sha256
from study.base.strict import drop_gone
from tests.conftest import tiny_plan
from tests.unit.artifacts.test_records import make_record

Values = dict[str, Any]


@pytest.fixture
def plan() -> Plan:
    return tiny_plan()


@pytest.fixture
def folder(plan: Plan, tmp_path: Path) -> Path:
    """The sealed records of both runs."""
    for number, run in enumerate(plan.runs):
        (tmp_path / run.file).write_text(
            sealed(make_record(plan, number)).model_dump_json(indent=1)
        )
    return tmp_path


def edit(path: Path, change: Callable[[Values], object], keep_checksum: bool = False) -> None:
    """Change the values in a record; by default it is then one of an earlier version, without a
    checksum."""
    values = json.loads(path.read_text())
    change(values)
    if not keep_checksum:
        del values["record_sha256"]
    path.write_text(json.dumps(values))


def set_to(key: str, value: object) -> Callable[[Values], None]:
    """The change of one value by its dotted key."""

    def change(values: Values) -> None:
        *sections, leaf = key.split(".")
        target: Any = values
        for section in sections:
            target = target[int(section) if isinstance(target, list) else section]
        target[leaf] = value

    return change


def test_a_key_that_went_is_dropped_at_any_depth_and_the_checksum_is_that_of_the_file(
    plan: Plan, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = plan.runs[0]
    path = folder / run.file
    for key in ("ceilings", "measurement.flops"):
        edit(path, set_to(key, {"product": 1.0}), keep_checksum=True)
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"record_sha256": checksum(content)}))
    assert "measurement.flops: unknown key" in read_records(plan, folder).refused[run.name]
    monkeypatch.setattr(strict, "GONE", ("ceilings", "measurement.flops"))
    assert read_records(plan, folder).included[run.name].outcome == "ok"
    kept = drop_gone({"flops": 1, "runs": [{"measurement": {"flops": 2}}]})
    assert kept == {"flops": 1, "runs": [{"measurement": {}}]}


def test_what_was_measured_as_inference_is_refused_and_a_training_that_could_have_been_is_read() -> (
    None
):
    plan = tiny_plan()
    values = json.loads(plan.model_dump_json())
    for section in (values["study"], *(run["settings"] for run in values["runs"])):
        section |= {"task": "training", "inference": {"batches": 1}}
    assert Plan.of_text(json.dumps(values)) == plan
    values["study"]["task"] = "inference"
    with pytest.raises(StudyError, match=r"study\.task: 'inference' is not allowed: .* command"):
        Plan.of_text(json.dumps(values))


@pytest.mark.parametrize("spread", [True, False])
def test_a_plan_that_ran_the_loader_alone_is_refused_in_a_line(spread: bool) -> None:
    values = json.loads(tiny_plan().model_dump_json())
    (values["runs"][0]["settings"] if spread else values["study"])["loader"]["kind"] = "alone"
    told = r"loader\.kind: 'alone' is not allowed: the loader alone is a command now, .* again"
    with pytest.raises(StudyError, match=told):
        Plan.of_text(json.dumps(values))


def test_a_plan_of_blocks_until_an_interval_was_narrow_is_read_with_the_most_of_them() -> None:
    plan = tiny_plan(replicates=6)
    values = json.loads(plan.model_dump_json())
    values["study"]["replicates"] = {"until": 0.05, "most": 6}
    assert Plan.of_text(json.dumps(values)) == plan


def test_a_record_fits_in_any_layout_with_and_without_a_checksum(plan: Plan, folder: Path) -> None:
    for number, run in enumerate(plan.runs):
        edit(folder / run.file, lambda values: None, keep_checksum=number == 0)
    found = read_records(plan, folder)
    assert (list(found.included), found.refused) == ([run.name for run in plan.runs], {})


def test_a_copied_record_of_another_run_is_refused(plan: Plan, folder: Path) -> None:
    first, second = plan.runs
    (folder / first.file).write_bytes((folder / second.file).read_bytes())
    found = read_records(plan, folder)
    assert list(found.included) == [second.name]
    assert found.refused == {
        first.name: f"run: {second.name!r} is not allowed: the plan has {first.name!r}"
    }


NO_CLASS = {"source": "generated", "generated": True, "sha256": "0", "classes": []} | dict.fromkeys(
    ("train_images", "valid_images", "left_out"), 4
)


WITHOUT_AFTER = {"first_use_seconds": 1, "before": [1], "after": []}


def refusal(key: str, value: object, rest: str = "") -> tuple[str, object, str]:
    """A value of a record, and how the line of its refusal begins."""
    return key, value, f"{key}: {shown(value)} is not allowed{rest}"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        *(refusal("measurement.fit_seconds", bad) for bad in (float("nan"), 0.0, 1e308)),
        refusal("measurement.steps", []),
        refusal("measurement.steps.1.epoch", 99, ": the last is 1"),
        refusal("measurement.epochs", []),
        refusal("measurement.parameters", 10**400),
        refusal("measurement", None, " with the outcome ok"),
        refusal("process_seconds", float("nan")),
        ("reference_workload", WITHOUT_AFTER, "reference_workload.before: 1"),
        refusal("schema_version", 1, ": another version of this software wrote the file"),
        ("colour", "red", "colour: unknown key"),
        refusal("study", "other", ": the plan has 'tiny'"),
        refusal("key", "00000000", ": the plan has"),
        refusal("block", 2, ": the plan has 1"),
        refusal("position", 10**30),
        ("disturbed", ["nokey"], "disturbed: 'nokey' is not allowed"),
        ("data", NO_CLASS, "data.classes: [] is not allowed"),
        refusal("machine.cpu_threads", -1),
        refusal("setting.levels.device", "cuda", ": the plan has 'cpu'"),
        refusal("settings.training.epochs", 9, ": the plan has 1"),
    ],
)
def test_a_value_that_is_wrong_is_named_with_its_key(
    plan: Plan, folder: Path, key: str, value: object, words: str
) -> None:
    run, other = plan.runs
    edit(folder / run.file, set_to(key, value))
    found = read_records(plan, folder)
    assert list(found.included) == [other.name]
    assert found.refused[run.name].startswith(words)
    assert len(found.refused[run.name]) < 250


@pytest.mark.parametrize(
    ("key", "value"), [("measurement.fit_seconds", 0.1), ("started", "2027"), ("session", 7)]
)
def test_an_edit_of_a_sealed_record_is_shown(
    plan: Plan, folder: Path, key: str, value: object
) -> None:
    edit(folder / plan.runs[0].file, set_to(key, value), keep_checksum=True)
    refused = read_records(plan, folder).refused[plan.runs[0].name]
    assert refused.startswith("record_sha256: it is not the checksum of the other keys")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"[]", b"null", b'{"study": "\\ud800"}']
)
def test_a_damaged_file_is_refused_and_stays_as_it_is(
    plan: Plan, folder: Path, content: bytes
) -> None:
    path = folder / plan.runs[0].file
    path.write_bytes(content)
    found = read_records(plan, folder)
    assert list(found.included) == [plan.runs[1].name]
    assert list(found.refused) == [plan.runs[0].name]
    assert path.read_bytes() == content


def test_damage_among_the_records_excluded_is_named_by_its_file(plan: Plan, folder: Path) -> None:
    name = plan.runs[0].file.replace(".json", ".2.json")
    (folder / "broken").mkdir()
    (folder / "broken" / plan.runs[1].file).write_bytes((folder / plan.runs[1].file).read_bytes())
    (folder / "broken" / name).write_text("{")
    found = read_records(plan, folder)
    assert [(one.folder, one.run.name) for one in found.aside] == [("broken", plan.runs[1].name)]
    assert list(found.refused_aside) == [f"broken/{name}"]
    assert found.refused == {}


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """A file of samples."""
    path = tmp_path / "telemetry" / "a.parquet"
    write_parquet(pd.DataFrame({name: [1.0, 2.0] for name in COLUMNS}), path)
    return path


def of(plan: Plan, path: Path) -> Record:
    """A record with this file of samples."""
    return make_record(plan).model_copy(update={"telemetry_sha256": file_sha256(path)})


def test_the_samples_of_a_record_are_those_with_its_checksum(plan: Plan, samples: Path) -> None:
    record, none = of(plan, samples), make_record(plan)
    found = read_samples(record, samples)
    assert found is not None and list(found.columns) == list(COLUMNS)
    assert read_samples(none, samples.with_name("no.parquet")) is None
    with pytest.raises(StudyError, match=r"telemetry_sha256: the record names no samples"):
        read_samples(none, samples)
    with pytest.raises(StudyError, match=r"telemetry_sha256: .* the file is not there"):
        read_samples(record, samples.with_name("no.parquet"))
    write_parquet(pd.DataFrame({name: [1.0, 3.0] for name in COLUMNS}), samples)  # another run's
    with pytest.raises(StudyError, match="the file has another checksum than the record names"):
        read_samples(record, samples)


@pytest.mark.parametrize("damage", ["empty", "truncated", "columns", "infinite"])
def test_damaged_samples_are_refused_whatever_their_checksum(
    plan: Plan, samples: Path, damage: str
) -> None:
    frame, whole = pd.DataFrame({name: [1.0] for name in COLUMNS}), samples.read_bytes()
    cut = {"empty": b"", "truncated": whole[: len(whole) // 2]}
    changed = {"columns": frame[["seconds"]], "infinite": frame * float("inf")}
    if damage in cut:
        samples.write_bytes(cut[damage])
    else:
        changed[damage].to_parquet(samples)
    with pytest.raises(StudyError, match="they cannot be read"):
        read_samples(of(plan, samples), samples)
