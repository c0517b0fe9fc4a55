"""Whoever is killed at whatever moment: no record is lost or changed, nothing is left, and the next start goes on."""

import random
import subprocess
from pathlib import Path

import pytest

from tests.waiting import wait_for
from tests.workflow import soak as attack
from tests.workflow.conftest import Checkout
from tests.workflow.soak import Soak, soak

pytestmark = pytest.mark.thorough


@pytest.mark.timeout(1800)
def test_twenty_kills_at_any_moment_lose_nothing_and_leave_nothing(ready: Checkout) -> None:
    troubles = soak(ready, rounds=20, seed=20261122).troubles
    assert not +troubles, dict(troubles)


def test_a_small_disk_and_a_read_only_one_cost_nothing(checkout: Checkout) -> None:
    (checkout.root / "results").mkdir()
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(checkout.root / "results")]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here: that needs root, and a capability")
    subprocess.run(["umount", mount[-1]], check=True)
    attacked = attack.attack_on(checkout, random.Random(1))
    attacked.disk(300)
    assert not +attacked.troubles, dict(attacked.troubles)


def test_a_soak_counts_a_record_that_was_published_and_deleted_in_one_start(tmp_path: Path) -> None:
    attacked, record = Soak(Checkout(tmp_path), random.Random(1)), tmp_path / "results/tiny/records/a.json"
    record.parent.mkdir(parents=True)
    with attacked.watched():
        record.write_text("{}")
        wait_for(lambda: attacked.seen)
        record.unlink()
    attacked.look()
    assert attacked.troubles["records lost or changed"] == 1
