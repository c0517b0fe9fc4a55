"""A stamp stands for a record: it changes with it, and can be made from it at any time."""

import os
from pathlib import Path

import pytest

from study.artifacts.layout import Results
from study.artifacts.session import remove_deferred_stamps, restamp, stamp_as_deferred, write_stamp

RECORD = "bs4-r1.0a1b2c3d.json"


@pytest.fixture
def files(tmp_path: Path) -> Results:
    """A study with one record and its telemetry, and the record's stamp."""
    files = Results(tmp_path)
    for path in (files.record("tiny", RECORD), files.telemetry("tiny", RECORD)):
        path.parent.mkdir(parents=True)
        path.write_text("measured")
    restamp("tiny", [RECORD], files)
    return files


def test_a_stamp_that_was_deleted_is_made_from_its_record(files: Results) -> None:
    stamp = files.stamp("tiny", RECORD)
    before = stamp.read_text()
    stamp.unlink()
    restamp("tiny", [RECORD], files)
    assert stamp.read_text() == before


@pytest.mark.parametrize("edited", ["record", "telemetry"])
def test_a_stamp_keeps_its_time_until_its_record_or_telemetry_changes(files: Results, edited: str) -> None:
    stamp = files.stamp("tiny", RECORD)
    os.utime(stamp, (1, 1))
    write_stamp("tiny", RECORD, files)
    assert stamp.stat().st_mtime == 1
    getattr(files, edited)("tiny", RECORD).write_text("edited")
    write_stamp("tiny", RECORD, files)
    assert stamp.stat().st_mtime > 1


def test_the_stamp_of_a_record_that_was_moved_is_removed_and_that_of_a_run_that_is_left_stays(files: Results) -> None:
    stamp_as_deferred("tiny", "left", files)
    files.record("tiny", RECORD).unlink()
    restamp("tiny", [RECORD, "left"], files)
    assert [path.name for path in files.stamps("tiny").iterdir()] == ["left"]
    remove_deferred_stamps("tiny", files)
    assert list(files.stamps("tiny").iterdir()) == []
