"""Whoever is killed at whatever moment: no record is lost or changed, nothing is left, and the next start goes on."""

import pytest

from tests.workflow.conftest import Checkout
from tests.workflow.soak import soak


@pytest.mark.timeout(1800)
def test_twenty_kills_at_any_moment_lose_nothing_and_leave_nothing(ready: Checkout) -> None:
    troubles = soak(ready, rounds=20, seed=20261122).troubles
    assert not +troubles, dict(troubles)
