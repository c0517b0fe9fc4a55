"""What was prepared and is damaged: no start and no other run stops, and the next start makes it again."""

import pytest

from study.artifacts.plan import Plan
from study.artifacts.record import Record
from tests.workflow.conftest import OWN_MODEL, RECORDS, Checkout

pytestmark = pytest.mark.thorough

DAMAGES_DATA = """
if any(Path("results/tiny/records").glob("*.json")):
    for path in Path("results/data").glob("*/manifest.json"):
        if '"train_images": 16' in path.read_text():
            path.write_text("{")
"""
"""From the second run on, the manifest of the smaller one of two data sets is damaged."""


def outcomes(checkout: Checkout) -> list[tuple[Record, str]]:
    """The records in the order of the plan, and how messages name the manifest that each run read."""
    plan = Plan.read(checkout.root / "results/tiny/plan.json")
    found = checkout.measured()
    return [(found[run.file], f"{run.dataset}/manifest.json") for run in plan.runs]


def test_what_is_damaged_is_said_and_made_again_by_the_next_start(ready: Checkout) -> None:
    results = ready.root / "results"
    (manifest,), (weights,) = results.glob("data/*/manifest.json"), results.glob("tiny/weights/*.json")
    before = {path: path.read_bytes() for path in (manifest, weights)}
    manifest.write_bytes(b'{"source": "generated"}')
    weights.write_bytes(b"\xff\x00")
    said = ready.good(extra=RECORDS)
    for path in before:
        assert f"{path.relative_to(ready.root)}: it is damaged, and is made again\n" in said
    assert {path: path.read_bytes() for path in before} == before
    assert [record.outcome for record, *_ in outcomes(ready)] == ["ok", "ok"]


def test_empty_files_beside_the_project_with_names_of_pythons_own_modules_change_nothing(ready: Checkout) -> None:
    for name in ("random", "statistics", "secrets", "queue", "string"):
        (ready.root / f"{name}.py").touch()
    ready.good(extra=RECORDS)
    assert [record.outcome for record, *_ in outcomes(ready)] == ["ok", "ok"]


def test_a_manifest_that_is_damaged_between_two_runs_costs_those_that_read_it_and_no_other(checkout: Checkout) -> None:
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
    assert said.count("it is damaged, and is made again") == 1
    assert {record.outcome for record, *_ in outcomes(checkout)} == {"ok"}
