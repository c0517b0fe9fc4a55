"""What the page's charts and cards say of the numbers that they show."""

import numpy as np
import pytest

from study.analysis.charts.svg import linear
from study.analysis.stats.findings import Unsuccessful, WideSpread
from study.analysis.wording.cards import limit_card
from study.analysis.wording.consequences import ranked


@pytest.mark.parametrize("width", [120, 160, 320, 640])
def test_an_axis_has_two_numbers_at_least_and_room_for_each(width: int) -> None:
    for highest in np.geomspace(0.01, 9000, 200):
        ticks = linear([highest], 0, width).ticks()
        assert 2 <= len(ticks) <= 1 + width / 25
        assert ticks[0] == 0


def test_a_part_that_takes_no_time_is_not_named_as_one_that_takes_some() -> None:
    card = limit_card("batch size 256", {"computing": 0.953, "validation": 0.045, "the rest": 0.002})
    assert card.text == "Batch size 256: computing 95%, validation 4%."


def test_runs_that_the_machine_cannot_make_are_no_failure_and_come_after_what_touches_the_answer() -> None:
    absent = Unsuccessful(outcome="unavailable", message="no GPU", runs=["bs4-cuda-r1"])
    failed = Unsuccessful(outcome="failed", message="planted", runs=["bs4-cpu-r1"])
    spread = WideSpread(limit=0.1, spreads={"4": 0.2})
    assert [one.what[0].partition(":")[0] for one in ranked([absent, spread, failed])][::2] == ["Failed", "Unavailable"]
    assert ranked([absent])[0].effect == "Nothing is said about these settings."
