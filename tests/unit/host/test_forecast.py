"""What a start says before its runs and at each run."""

from pathlib import Path

from study.artifacts.block import blocks_of
from study.artifacts.layout import Results
from study.artifacts.plan import Plan
from study.base.files import write_new
from study.host.plan import forecast
from tests.conftest import tiny_plan
from tests.unit.artifacts.test_records import make_record, write_records
from tests.unit.host.test_engines import BUILT


def planned(**changes: object) -> Plan:
    """Two settings in three blocks."""
    return tiny_plan(**({"replicates": 3} | changes))


def test_a_start_says_what_it_will_do_by_study_and_device_and_counts_a_reason_once(tmp_path: Path) -> None:
    factors = {"device": ["cpu", "cuda"], "training.batch_size": [4, 8]}
    plan, files = planned(factors=factors, curve=None), Results(tmp_path)
    assert forecast.describe([plan], None, files) == [
        "tiny on cpu: 6 runs pending in 3 blocks, 0 done",
        "tiny on cuda: 6 runs left out: no GPU in this test",
        "runs execute on the host (asked for)",
        "expected time: not known until the first block is done",
    ]
    first = blocks_of(plan, files)[0]
    for run in first.runs:
        write_new(files.record("tiny", run.file), make_record(plan, plan.runs.index(run)).model_dump_json(indent=1))
    first.write(files)
    told = forecast.describe([plan], 30, files)
    assert told[0] == "tiny on cpu: 4 runs pending in 2 blocks, 2 done"
    assert told[-1].startswith("expected time: about ")
    assert told[-1].endswith(", from earlier runs with the same settings (time budget: 30 min)")


def test_a_dry_run_names_each_run_of_a_block_with_its_setting_its_device_and_its_image(tmp_path: Path) -> None:
    plan = planned()
    contained = plan.model_copy(update={"engine": "docker", "images": {"cpu": BUILT}})
    block = blocks_of(plan, Results(tmp_path))[0]
    lines = [f"    {run.name} ({run.setting.label}): cpu, " for run in block.runs]
    head = "tiny, block 1 of 3: 2 runs, one after the other"
    assert forecast.listed(plan, block) == [head, *(f"{line}on the host" for line in lines)]
    assert forecast.listed(contained, block) == [head, *(f"{line}in study:cpu-1" for line in lines)]


def test_a_block_that_was_broken_off_is_pending_as_a_whole(tmp_path: Path) -> None:
    plan, files = planned(), Results(tmp_path)
    write_records(plan, files.records("tiny"))
    files.record("tiny", plan.runs[0].file).unlink()
    assert forecast.pending(plan, files) == plan.runs[:2]
    assert forecast.summary(plan, files) == ["tiny on cpu: 2 runs pending in 1 block, 4 done"]
