"""Where the whole time of a run goes: the parts are those that were recorded, and they add up to it."""

import re

import pandas as pd
import pytest

from study.analysis.report.life import life_chart, life_sentence, with_gaps
from study.analysis.table.rows import table
from study.artifacts.plan import Plan
from study.artifacts.record import Record
from study.artifacts.samples import Timeline
from tests.conftest import tiny_plan
from tests.unit.analysis.planted import setting
from tests.unit.artifacts.test_records import make_record

TIMELINE = Timeline(
    start_seconds=0.5, inputs_seconds=0.25, device_start_seconds=0.125, instruments_seconds=1.0, training_seconds=4.5
)
"""With 4 s of schedule, 0.3 s to build and 1 s at the end, 7.175 s in all."""


def records(plan: Plan, timeline: Timeline | None = TIMELINE) -> dict[str, Record]:
    """A run every ten seconds, each of which takes 7.175 s."""
    return {
        run.name: make_record(plan, number, fit_seconds=4.0).model_copy(
            update={
                "timeline": timeline,
                "process_seconds": 7.175,
                "started": f"2026-01-01T00:00:{10 * number:02d}+00:00",
            }
        )
        for number, run in enumerate(plan.runs)
    }


@pytest.fixture(scope="module")
def plan() -> Plan:
    return tiny_plan(factors={"device": ["cpu"], "training.batch_size": [4, 8]}, replicates=2)


def test_the_parts_of_a_runs_life_add_up_from_one_run_to_the_next(plan: Plan) -> None:
    frame = with_gaps(table(plan, records(plan)))
    assert frame["between_seconds"].tolist() == pytest.approx([10 - 7.175] * 4)
    chart = life_chart([(setting(device="cpu"), frame)])
    assert chart
    boxes = re.findall(r'class="mark piece (\w+)"[^>]*><path d="M([\d.]+) [^L]*L([\d.]+) ', chart.wide)
    wide = {name: (float(right) - float(left) + 1) * 10 / 736 for name, left, right in boxes}
    assert "10.0 s" in chart.wide
    wanted = {"start": 0.5, "instruments": 1.0, "build": 0.3, "end": 1.0 + 2.83}
    assert {name: wide[name] for name in wanted} == pytest.approx(wanted, abs=0.02)


def test_the_share_that_trained_is_said_and_pauses_between_starts_do_not_count(plan: Plan) -> None:
    frame = table(plan, records(plan))
    assert life_sentence(frame) == "The runs took 40 s in all. 40% of that was training with its validation."
    hours = ["2026-01-01T00:00:00", "2026-01-01T00:00:10", "2026-01-01T09:00:00", "2026-01-01T09:00:10"]
    later = frame.assign(session=[1, 1, 2, 2], started=[f"{hour}+00:00" for hour in hours])
    assert life_sentence(later) == life_sentence(frame)
    failed = frame.assign(fit_seconds=[*frame["fit_seconds"][:3], float("nan")])
    assert life_sentence(failed) == "The runs took 40 s in all. 30% of that was training with its validation."
    assert life_sentence(frame.assign(fit_seconds=float("nan"))) == "The runs took 40 s in all."


def test_records_from_before_the_parts_were_recorded_have_no_such_chart_but_a_share(plan: Plan) -> None:
    frame = table(plan, records(plan, timeline=None))
    assert life_chart([(setting(device="cpu"), with_gaps(frame))]) is None
    assert "40% of that was training" in life_sentence(frame)
    assert life_sentence(frame.assign(process_seconds=float("nan"))) == ""
    assert life_sentence(pd.DataFrame(columns=frame.columns)) == ""


def test_a_record_whose_start_is_no_time_costs_its_own_pause_alone(plan: Plan) -> None:
    frame = table(plan, records(plan))
    odd = frame.assign(started=["2026-01-01T00:60:00+00:00", *frame["started"][1:]])
    assert with_gaps(odd)["between_seconds"].isna().tolist() == [True, False, False, False]
