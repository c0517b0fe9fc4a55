"""A file appears whole or not at all, one that must stay is left alone, and the commit of a
checkout is known."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from study.base import files
from study.base.errors import StudyError
from study.base.files import (
    remove_unfinished,
    room_for,
    whole,
    write_if_changed,
    write_new,
    write_whole,
)

Write = Callable[[Path, str], None]
by_each_writer = pytest.mark.parametrize("write", [write_whole, write_if_changed, write_new])


@by_each_writer
def test_text_is_written_and_nothing_else(tmp_path: Path, write: Write) -> None:
    path = tmp_path / "new" / ("n" * 200 + ".json")
    write(path, "späth\n")
    assert path.read_bytes() == "späth\n".encode()
    assert list(path.parent.iterdir()) == [path]


@by_each_writer
def test_a_file_gets_the_mode_that_the_user_gives_to_new_files(
    tmp_path: Path, write: Write
) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path / "a", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_what_fails_half_way_leaves_the_earlier_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("earlier")
    with pytest.raises(ValueError, match="half way"), whole(path) as temporary:
        temporary.write_text("hal")
        assert path.read_text() == "earlier"
        raise ValueError("half way")
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("a.csv", "earlier")]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], capture_output=True
    ).returncode:
        pytest.skip("this user may not mount a small disk")
    yield folder
    subprocess.run(["umount", folder], check=True)


@by_each_writer
def test_a_full_disk_is_a_sentence_and_costs_no_earlier_file(
    small_disk: Path, write: Write
) -> None:
    (small_disk / "earlier").write_text("kept")
    with pytest.raises(StudyError) as caught:
        write(small_disk / "new.json", "x" * 100_000)
    assert str(caught.value) == (
        f"{small_disk}/new.json: cannot be written (No space left on device); every record that is "
        "there already is kept: make room, and start again"
    )
    assert [(path.name, path.read_text()) for path in small_disk.iterdir()] == [("earlier", "kept")]


def test_a_write_that_numpy_cut_off_is_a_sentence_too(small_disk: Path) -> None:
    with (
        pytest.raises(StudyError, match=r"data: cannot be written \(No space left"),
        room_for(small_disk / "data"),
    ):
        np.save(small_disk / "images.npy", np.zeros(100_000, np.uint8))
    with pytest.raises(ValueError, match="not its"), room_for(small_disk / "data"):
        raise ValueError("not its")


def test_an_unchanged_file_keeps_its_time_and_a_damaged_one_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_if_changed(path, "text")
    os.utime(path, ns=(5, 5))
    write_if_changed(path, "text")
    assert path.stat().st_mtime_ns == 5
    path.write_bytes(b"\xff\xfe")
    write_if_changed(path, "text")
    assert path.read_text() == "text"


def test_of_writers_of_a_new_file_exactly_one_succeeds(tmp_path: Path) -> None:
    def write(number: int) -> int | None:
        try:
            write_new(tmp_path / "a", str(number))
        except StudyError:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        (winner,) = [number for number in pool.map(write, range(8)) if number is not None]
    assert (tmp_path / "a").read_text() == str(winner)


def test_what_a_killed_process_was_writing_is_removed_and_what_a_living_one_writes_is_not(
    tmp_path: Path,
) -> None:
    code = (
        "import os, sys; from pathlib import Path; from study.base.files import whole\n"
        "with whole(Path(sys.argv[1])) as temporary: temporary.write_text('half'); "
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "deep" / "lost.json")], check=False)
    assert len(list(tmp_path.rglob("*.tmp"))) == 1
    with whole(tmp_path / "kept.json") as temporary:
        temporary.write_text("whole")
        remove_unfinished(tmp_path)
    assert list(tmp_path.rglob("*.tmp")) == []
    assert (tmp_path / "kept.json").read_text() == "whole"


def git(folder: Path, *arguments: str) -> str:
    own = ["-c", "user.name=n", "-c", "user.email=e"]
    return subprocess.run(
        ["git", "-C", str(folder), *own, *arguments], check=True, capture_output=True, text=True
    ).stdout


def test_the_commit_is_known_and_a_change_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert (files.git_commit(), files.git_is_changed()) == (None, None)
    git(tmp_path, "init")
    assert (files.git_commit(), files.git_is_changed()) == (None, None)  # no commit yet
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "--message", "first")
    assert (files.git_commit(), files.git_is_changed()) == (
        git(tmp_path, "rev-parse", "HEAD").strip(),
        False,
    )
    (tmp_path / "b").write_text("1")
    assert files.git_is_changed() is False
    (tmp_path / "a").write_text("2")
    assert files.git_is_changed() is True
    monkeypatch.setattr(files, "INSTALLED", tmp_path)  # an environment in a user's own repository
    assert (files.git_commit(), files.git_is_changed()) == (None, None)
