"""Whoever is killed at whatever moment: no record is lost or changed, nothing is left, and the next start goes on."""

import random
import subprocess
import time
from pathlib import Path

import pytest

from tests.workflow import soak as attack
from tests.workflow.conftest import Checkout
from tests.workflow.soak import Soak, soak

pytestmark = pytest.mark.thorough

PUBLISHES = """
import time
from pathlib import Path
records = Path("results/tiny/records")
records.mkdir(parents=True)
(records / "a.json").write_text("{}")
time.sleep(1000)
"""


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


class Planted(Checkout):
    """A checkout whose start publishes a record, and which deletes it once the soak has had time to see it."""

    watcher: Soak

    @property
    def record(self) -> Path:
        """The record."""
        return self.root / "results/tiny/records/a.json"

    def command(self, *_: object, **__: object) -> list[str]:
        """What is started in the background."""
        return ["python3", "-c", PUBLISHES]

    def delete(self, *_: object) -> None:
        """Delete the record, by 20 seconds at most after it was published."""
        end = time.monotonic() + 20
        while b"{}" not in self.watcher.seen and time.monotonic() < end:
            time.sleep(0.01)
        self.record.unlink()

    def snakemake(self, *_: object, **__: object) -> "subprocess.CompletedProcess[str]":
        """A start that comes to its end."""
        self.record.parent.mkdir(parents=True)
        self.record.write_text("{}")
        self.delete()
        return subprocess.CompletedProcess([], 0, "", "")


class Sure(random.Random):
    """Dice that let each round wait until a record is published."""

    def random(self) -> float:
        """Return what is low enough for that, and for no other study."""
        return 0.2


@pytest.mark.parametrize("moment", ["round", "end"])
def test_a_soak_counts_a_record_that_was_published_and_deleted_in_one_start(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = Planted(tmp_path)
    checkout.watcher = attacked = Soak(checkout, Sure(1))
    monkeypatch.setattr(Soak, "strike", checkout.delete)
    getattr(attacked, moment)()
    assert attacked.troubles["records lost or changed"] == 1
