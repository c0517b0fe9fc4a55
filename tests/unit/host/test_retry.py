"""Records that are moved aside are made again by the next start, and nothing is deleted."""

from pathlib import Path

import pytest
from filelock import FileLock

from study.artifacts.block import blocks_of
from study.artifacts.layout import Results
from study.artifacts.plan import write_plans
from study.artifacts.record import sealed
from study.base.files import write_whole
from study.cli import main
from study.host.steps.block import measure_block
from tests.conftest import tiny_plan
from tests.unit.artifacts.test_records import WEIGHTS, make_record, write_records

FELL_BACK = WEIGHTS.model_copy(update={"requested": "imagenet", "reason": "no network"})


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Results with a failed, an unavailable and two complete records of the study ``tiny``, one on
    random weights."""
    plan, files = tiny_plan(replicates=2), Results(tmp_path)
    write_records(plan, files.records("tiny"), ["failed", "unavailable", "ok", "ok"])
    path = files.record("tiny", plan.runs[3].file)
    fell_back = make_record(plan, 3).model_copy(update={"weights": FELL_BACK})
    write_whole(path, fell_back.model_dump_json())
    for name, decision in {"fell-back": FELL_BACK, "asked-for": WEIGHTS}.items():
        write_whole(files.weights("tiny", name), decision.model_dump_json())
    return files


@pytest.mark.parametrize(
    ("options", "records", "decisions"),
    [
        ([], [0, 1], []),
        (["--outcome", "failed"], [0], []),
        (["--outcome", "failed", "--outcome", "ok"], [0, 2, 3], []),
        (["--weights"], [3], ["fell-back.json"]),
    ],
)
def test_the_chosen_records_move_aside_and_the_others_stay(
    results: Results,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    records: list[int],
    decisions: list[str],
) -> None:
    names = [run.file for run in tiny_plan(replicates=2).runs]
    before = {path.name: path.read_bytes() for path in results.root.rglob("*.json")}
    assert main(["retry", "tiny", "--results", str(results.root), *options]) == 0
    moved = {path.name for path in results.root.rglob("superseded/*.json")}
    assert moved == {names[number] for number in records} | set(decisions)
    assert {path.name: path.read_bytes() for path in results.root.rglob("*.json")} == before
    said = capsys.readouterr().out.splitlines()
    assert {line.removeprefix("moved to superseded: ") for line in said[:-1]} == moved
    assert said[-1] == f"{len(moved)} file(s) moved; the next start makes them again"
    assert results.lock.stat().st_mode & 0o777 == 0o600, "who can open a lock can hold it"


def test_no_record_moves_while_a_start_is_at_work(
    results: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    with FileLock(results.lock):
        assert main(["retry", "tiny", "--results", str(results.root)]) == 1
    assert "another start of the pipeline is at work in this folder" in capsys.readouterr().err
    assert not list(results.root.rglob("superseded"))


def test_records_that_do_not_fit_are_never_measured_over(
    results: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tiny_plan(replicates=2)
    write_plans([plan], results.root)
    copied, edited, damaged, whole = (results.record("tiny", run.file) for run in plan.runs)
    copied.write_bytes(whole.read_bytes())
    sealed_text = sealed(make_record(plan, 1)).model_dump_json(indent=1)
    edited.write_text(sealed_text.replace('"fit_seconds": 1.0', '"fit_seconds": 0.1'))
    damaged.write_text("{")
    before = {path.name: path.read_bytes() for path in results.records("tiny").glob("*.json")}
    for block in blocks_of(plan, results):
        measure_block("tiny", block.name, results.root, print)
    assert capsys.readouterr().out.count("its records are there and are kept") == 2
    kept = {path.name: path.read_bytes() for path in results.records("tiny").glob("*.json")}
    assert kept == before
    assert main(["retry", "tiny", "--results", str(results.root), "--outcome", "failed"]) == 0
    moved = {path.name: path.read_bytes() for path in results.root.rglob("superseded/*.json")}
    assert moved == {path.name: before[path.name] for path in (copied, edited, damaged)}
    assert whole.read_bytes() == before[whole.name]
