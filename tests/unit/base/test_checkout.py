"""The commit that a record names."""

import subprocess
from pathlib import Path

import pytest

from study.base import files


def git(folder: Path, *arguments: str) -> str:
    own = ["-c", "user.name=n", "-c", "user.email=e"]
    return subprocess.run(
        ["git", "-C", str(folder), *own, *arguments], check=True, capture_output=True, text=True
    ).stdout


def test_the_commit_is_known_only_in_a_checkout_and_a_change_of_a_tracked_file_is_seen(
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
    assert (files.git_commit(), files.git_is_changed()) == (git(tmp_path, "rev-parse", "HEAD").strip(), False)
    (tmp_path / "b").write_text("1")
    assert files.git_is_changed() is False
    (tmp_path / "a").write_text("2")
    assert files.git_is_changed() is True
