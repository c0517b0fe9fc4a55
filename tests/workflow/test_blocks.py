"""Whole blocks, undisturbed runs and the length of a study in the pipeline as a user runs it."""

import os

import pandas as pd
import pytest

from study.artifacts.record import sealed
from study.artifacts.record_store import read_record
from study.config.study import Evidence
from tests.waiting import wait_for
from tests.workflow.conftest import OWN_MODEL, RECORDS, Checkout, copy_checkout, neighbours

pytestmark = pytest.mark.thorough

HOLD = (
    'while Path("held").exists() and '
    'len(list(Path("results/tiny/records").glob("*.json"))) >= 3: time.sleep(0.1)'
)
"""The model stands still once three records are there: in the middle of the second block of two."""
OWN_PARAMETERS = 2 * (3 * 32 * 32 + 1)
"""Of the user's own model, for two classes."""
TWO, THREE = "overrides={replicates: 2}", "overrides={replicates: 3}"
NEIGHBOUR = """
import random, sys, time
dice = random.Random(int(sys.argv[1]))
while True:
    busy, end = dice.random() < 0.5, time.monotonic() + 0.2
    while time.monotonic() < end:
        if not busy: time.sleep(0.05)
"""
"""On every core it takes that core at random for half of the time."""


@pytest.fixture(scope="class")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """One copy for the tests of a class."""
    checkout = copy_checkout(tmp_path_factory.mktemp("blocks") / "a copy")
    checkout.plant(HOLD)
    checkout.study("tiny", model=OWN_MODEL, replicates=1)
    return checkout


def timings(checkout: Checkout) -> pd.DataFrame:
    return pd.read_csv(checkout.root / "results/tiny/timings.csv")


@pytest.mark.xdist_group("whole blocks")
class TestABlockIsMadeWholeOrNotBegun:
    @pytest.mark.gate
    def test_a_budget_leaves_the_blocks_that_it_cannot_end_and_the_report_is_made(
        self, shared: Checkout
    ) -> None:
        """The earlier runs are said to have taken a day each."""
        shared.good(extra=RECORDS)
        assert {
            one.measurement and one.measurement.parameters for one in shared.measured().values()
        } == {OWN_PARAMETERS}
        for path in (shared.root / "results/tiny/records").glob("*.json"):
            record = read_record(path).model_copy(update={"process_seconds": 86400.0})
            path.write_text(sealed(record).model_dump_json(indent=1), encoding="utf-8")
        before = shared.records()
        said = shared.good(THREE, "time_budget_minutes=60")
        left = "of tiny is left for the next start"
        assert f"block 2 of 3 {left} (2 runs): it would take about 48.0 h" in said
        assert f"block 3 of 3 {left}, too" in said
        assert shared.records() == before
        assert "2 of 6 planned runs are there" in shared.page()
        assert timings(shared)["message"].tolist().count("not run yet") == 4

    @pytest.mark.gate
    def test_a_kill_in_the_middle_of_a_block_sets_it_aside_and_the_next_start_makes_it_whole(
        self, shared: Checkout
    ) -> None:
        before = shared.records()
        (shared.root / "held").touch()
        with shared.started(TWO) as process:
            wait_for(lambda: len(shared.records()) == 3 and shared.jobs(), 300)
            process.kill()
            process.wait()
            wait_for(lambda: not shared.jobs(), 20)  # nothing measures on unseen
        (shared.root / "held").unlink()
        (lost,) = shared.records().keys() - before.keys()
        kept = shared.records()[lost]
        said = shared.good(TWO, "warm_up_run=true")
        assert "block 2 of 2 of tiny was broken off: 1 record excluded and kept aside" in said
        assert before.items() <= shared.records().items()
        assert sorted(record.session for record in shared.measured().values()) == [1, 1, 3, 3]
        assert (shared.root / "results/tiny/records/broken" / lost).read_bytes() == kept
        table = timings(shared)
        assert table["excluded"].fillna("").tolist() == [*[""] * 4, "broken block"]
        assert table["warmed_up"].tolist() == [False, False, True, True, False]


def test_runs_beside_a_noisy_neighbour_are_marked_and_some_measured_anew(ready: Checkout) -> None:
    ready.variables["STUDY_INSTRUMENTS"] = "on"
    ready.study("tiny", evidence=Evidence().model_dump(), replicates=4)
    with neighbours(NEIGHBOUR, os.cpu_count() or 1):
        said = ready.good()
    again = [*(ready.root / "results/tiny/records/disturbed").glob("*.json")]
    assert 0 < len(again) == said.count("kept aside, and measured once more") < 4
    assert len([*(ready.root / "results/tiny/telemetry/disturbed").glob("*.parquet")]) == len(again)
    assert "at most a quarter of a start goes on waiting" in said
    table = timings(ready)
    assert table["excluded"].tolist().count("disturbed") == len(again)
    assert all("others_cpu_percent" in marks for marks in table["disturbed"][8:])
    assert f"; {len(again)} measured again" in ready.page()


def test_a_ladder_is_chosen_once_and_the_page_says_that_it_was(ready: Checkout) -> None:
    ready.study("tiny", ladder={"minutes": 1e-3, "rungs": [{"replicates": 1}]}, replicates=2)
    assert "its length is not chosen yet" in ready.good(extra=["--dry-run"])
    assert "tiny: replicates: 1, about" in ready.good()
    assert "shortened for this machine by its ladder" in ready.page()
    length = ready.root / "results/tiny/length.json"
    chosen = length.read_bytes()
    assert "its length" not in ready.good()
    assert (len(ready.records()), length.read_bytes()) == (2, chosen)
