"""The table of the records' fields: what differs between runs is seen there, whatever it is."""

from study.analysis.about import facts_of
from study.analysis.screen.job import job_of
from tests.conftest import tiny_plan
from tests.timings import table
from tests.unit.artifacts.test_records import MACHINE, make_record


def test_software_that_differs_between_runs_is_named_with_both_versions_and_numbers_with_their_range() -> (
    None
):
    plan = tiny_plan(factors={"training.batch_size": [2, 4]}, replicates=1)
    records = {run.name: make_record(plan, place) for place, run in enumerate(plan.runs)}
    for name, version in zip(records, ("2.14.0", "2.15.0"), strict=True):
        machine = MACHINE.model_copy(update={"python": "3.11.9", "libraries": {"torch": version}})
        records[name] = records[name].model_copy(update={"machine": machine})
    facts = facts_of(plan.study, table(plan, records), records)
    assert facts["machine.software"] == "Python 3.11.9, torch 2.14.0; Python 3.11.9, torch 2.15.0"
    assert (facts["training.batch_size"], facts["machine.memory_bytes"]) == ("2 to 4", "8.00 GiB")
    assert "training.momentum" not in facts  # no run has another value than the default


def test_a_reduced_size_is_said_in_the_job_line_and_among_the_facts() -> None:
    plan = tiny_plan(replicates=1, reduced={"training.epochs": 1})
    plan = plan.model_copy(
        update={"study": plan.study.model_copy(update={"full": {"training.epochs": 8}})}
    )
    assert "reduced size" in job_of(plan, {})
    assert facts_of(plan.study, table(plan, {}), {})["reduced size"] == "training.epochs 1, not 8"
