"""A block's file is an index of its records: it changes with them, and can be made from them at any
time."""

import json
import os
import time
from pathlib import Path

import pytest

from study.artifacts.block import Block, blocks_of, expected_seconds, find_block
from study.artifacts.layout import Results
from study.artifacts.plan import Plan, write_plans
from study.base.errors import StudyError
from tests.conftest import tiny_plan
from tests.unit.artifacts.test_records import write_records


def planned(**changes: object) -> Plan:
    """Three settings in two blocks."""
    return tiny_plan(**({"factors": {"training.batch_size": [2, 4, 8]}, "replicates": 2} | changes))


@pytest.fixture
def files(tmp_path: Path) -> Results:
    """A study with every record, and the files of its blocks."""
    plan, files = planned(), Results(tmp_path)
    write_plans([plan], tmp_path)
    write_records(plan, files.records("tiny"))
    for block in blocks_of(plan, files):
        block.write(files)
    return files


def texts(files: Results) -> dict[str, str]:
    return {path.name: path.read_text() for path in files.blocks("tiny").iterdir()}


def names(blocks: list[Block]) -> list[list[str]]:
    return [[run.name for run in block.runs] for block in blocks]


def test_an_index_that_was_deleted_or_damaged_comes_back_from_the_records_byte_for_byte(
    files: Results,
) -> None:
    before = texts(files)
    first, second = sorted(files.blocks("tiny").iterdir())
    first.unlink()
    second.write_text("{")
    for block in blocks_of(planned(), files):
        assert block.missing(files) == []
        assert block.outdated == (files.block("tiny", block.name) == second)
        block.write(files)
    assert texts(files) == before


def test_a_block_is_found_by_its_name_although_its_file_was_just_deleted(files: Results) -> None:
    """As by Snakemake, which is told to make everything again, where the plan has a further level
    by now."""
    more = planned(factors={"training.batch_size": [2, 4, 8, 10]})
    gone = blocks_of(planned(), files)[0]
    files.block("tiny", gone.name).unlink()
    found = find_block(more, gone.name, files)
    assert {run.file for run in found.runs} == {run.file for run in gone.runs}
    with pytest.raises(StudyError, match="plans no block '1-00000000'; allowed: "):
        find_block(more, "1-00000000", files)


def test_an_index_is_outdated_once_a_record_says_something_else_whatever_its_time(
    files: Results,
) -> None:
    paths = sorted(files.blocks("tiny").iterdir())
    records = [one["record"] for one in json.loads(paths[0].read_text())["runs"]]
    for record in records:
        os.utime(files.record("tiny", record), (time.time() + 10,) * 2)
    assert not any(block.outdated for block in blocks_of(planned(), files))
    files.record("tiny", records[0]).write_text("edited")
    os.utime(files.record("tiny", records[0]), (time.time() + 10,) * 2)
    found = blocks_of(planned(), files)
    assert [block.outdated for block in found] == [block.name == paths[0].stem for block in found]


def test_an_index_goes_with_the_one_that_names_the_same_records(files: Results) -> None:
    before = texts(files)
    name, text = next(iter(before.items()))
    gone = files.record("tiny", json.loads(text)["runs"][0]["record"])
    content = gone.read_bytes()
    gone.unlink()
    for kept in (None, content):
        if kept:
            gone.write_bytes(kept)
        for block in blocks_of(planned(), files):
            if not (block.missing(files) or files.block("tiny", block.name).exists()):
                block.write(files)
    assert name not in texts(files)
    assert len(texts(files)) == 3


def test_the_expected_time_of_a_run_is_its_process_and_the_pause_after_it(files: Results) -> None:
    """Each planted run takes 2 s, and they begin a minute apart. A damaged record tells no time."""
    plan = planned()
    assert expected_seconds("tiny", files) == {run.key: 60.0 for run in plan.runs}
    files.record("tiny", plan.runs[0].file).write_text("{")
    for block in blocks_of(plan, files):
        block.write(files)
    assert expected_seconds("tiny", files).keys() == {run.key for run in plan.runs}
