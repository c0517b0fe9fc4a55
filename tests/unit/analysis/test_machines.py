"""Runs of several machines and of several versions of the software: what is a caveat, and what a
factor means; and the table of what the records say."""

from typing import Any

import numpy as np
import pandas as pd

from study.analysis.caveats.conditions import Starts
from study.analysis.screen.provenance import facts_of, job_of
from study.config.study import Study
from tests.conftest import study_values, tiny_plan
from tests.timings import as_timings, ruled, table
from tests.unit.analysis.planted import analysis_of, only
from tests.unit.artifacts.test_records import MACHINE, make_record

BATCH = "training.batch_size"


def timings(nodes: int, extra: float = 1.0, blocks: int = 6) -> pd.DataFrame:
    """Two equal settings in blocks, each block on one of the machines; the last machine is slower
    by ``extra``."""
    noise = np.random.default_rng(1)
    return as_timings(
        {
            "block": block + 1,
            BATCH: level,
            "node": f"{block % nodes:08x}",
            "fit_seconds": (10 * extra if block % nodes == nodes - 1 else 10)
            * np.exp(noise.normal(0, 0.01)),
        }
        for block in range(blocks)
        for level in (4, 8)
    )


def study(**factors: Any) -> Study:
    return Study.model_validate(
        study_values(factors={BATCH: [4, 8]} | factors, curve=None, replicates=6)
    )


def test_a_start_on_each_of_several_machines_is_a_start_of_its_own() -> None:
    frame = ruled(study(), timings(3))
    assert frame["session"].nunique() == 3
    assert (frame.groupby("node")["session"].nunique() == 1).all()
    one = ruled(study(), timings(1))
    assert one["session"].tolist() == [1] * 12


def test_a_slow_machine_is_named_and_makes_no_difference_between_settings() -> None:
    found = analysis_of(study(), ruled(study(), timings(2, extra=1.5)))
    assert only(Starts, found.warnings) == [Starts(starts=2, machines=2)]
    (group,) = found.groups
    assert sorted(group.indistinguishable) == ["4", "8"]


def test_software_that_differs_between_runs_is_named_with_both_versions_and_numbers_with_their_range() -> (
    None
):
    plan = tiny_plan(factors={"training.batch_size": [2, 4]}, replicates=1)
    records = {run.name: make_record(plan, place) for place, run in enumerate(plan.runs)}
    for name, version in zip(records, ("2.14.0", "2.15.0"), strict=True):
        machine = MACHINE.model_copy(update={"python": "3.11.9", "libraries": {"torch": version}})
        records[name] = records[name].model_copy(update={"machine": machine})
    facts = facts_of(plan, table(plan, records), records)
    assert facts["machine.software"] == "Python 3.11.9, torch 2.14.0; Python 3.11.9, torch 2.15.0"
    assert (facts["training.batch_size"], facts["machine.memory_bytes"]) == ("2 to 4", "8.00 GiB")
    assert "training.momentum" not in facts  # no run has another value than the default


def test_a_reduced_size_is_said_in_the_job_line_and_among_the_facts() -> None:
    plan = tiny_plan(replicates=1, reduced={"training.epochs": 1})
    plan = plan.model_copy(
        update={"study": plan.study.model_copy(update={"full": {"training.epochs": 8}})}
    )
    assert "reduced size" in job_of(plan, {})
    assert facts_of(plan, table(plan, {}), {})["reduced size"] == "training.epochs 1, not 8"
