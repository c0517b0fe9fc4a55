"""Runs of many processes through the pipeline: their records, and what is left when one of them
dies."""

import pytest

from tests.waiting import at_work, wait_for
from tests.workflow.conftest import OWN_MODEL, Checkout

pytestmark = pytest.mark.thorough

PLANTED = """
if os.environ["RANK"] == "1" and self.steps == 3:
    if len(images) == 4:
        os.kill(os.getpid(), 9)
    elif os.environ["LOCAL_WORLD_SIZE"] == "2":
        psutil.Process(os.getppid()).parent().kill()
"""
"""Rank 1 dies in its third step where both train on 8 images; else, on one node, the process of the
run dies."""


def test_whoever_of_many_processes_dies_the_run_is_a_recorded_failure_and_nothing_is_left(
    checkout: Checkout,
) -> None:
    """Rank 1 of two is killed on one node and on two; then the process of the run itself, above the
    launcher of the ranks. A run of two nodes to which nothing happens comes to its end."""
    checkout.study(
        "tiny",
        dataset={"source": "generated", "images": 40, "image_size": 32},
        model=OWN_MODEL,
        training={"freeze_epochs": 0, "epochs": 2},
        loader={"kind": "workers", "workers": 1},
        limits={"timeout_seconds": 300},  # a run that hangs fails here, and its record says so
        factors={"training.strategy": ["ddp", "ddp_two_nodes"], "training.batch_size": [4, 8]},
        curve=None,
    )
    checkout.plant(PLANTED)
    checkout.forked = False
    checkout.good()
    records = checkout.measured().values()
    ends = {
        (record.settings.training.strategy, record.settings.training.batch_size): (
            record.outcome,
            record.message,
        )
        for record in records
    }
    assert ends == {
        ("ddp", 4): ("failed", "the process was ended by SIGKILL"),
        ("ddp", 8): ("failed", "rank 1 of 2 was ended by SIGKILL"),
        ("ddp_two_nodes", 4): ("ok", None),
        ("ddp_two_nodes", 8): ("failed", "rank 1 of 2 was ended by SIGKILL"),
    }
    measured = next(record.measurement for record in records if record.measurement)
    assert (measured.global_batch_size, measured.replica_batch_size) == (4, 2)
    assert [epoch.images for epoch in measured.epochs] == [32, 32]
    assert [replica.images for replica in measured.replicas] == [32, 32]
    assert "rank 1 of 2 was ended by SIGKILL" in checkout.page()
    # a loader's worker looks for its parent every five seconds
    wait_for(lambda: not at_work(checkout.root), 30)
