"""A start by a user without a name or a home, and in a folder whose files have names of Python's own modules."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from study.base import complete_user
from tests.conftest import ROOT

SHADOWS = ("random", "statistics", "secrets", "string", "calendar", "queue", "copy", "csv", "json", "logging", "shlex")
"""Python's own modules whose names a user's file may have."""
NOBODY = ["unshare", "--user", "--map-user=12345"]


def said(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """How a command ends in a folder, in an environment that has nothing else."""
    return subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": str(ROOT)} | environment, capture_output=True, text=True, check=False
    )


def test_empty_files_with_names_of_pythons_own_modules_change_nothing(tmp_path: Path) -> None:
    for name in SHADOWS:
        (tmp_path / f"{name}.py").touch()
    done = said(tmp_path, sys.executable, "-m", "study", "plan", "quickstart")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_a_module_of_the_users_folder_still_comes_before_an_installed_one(tmp_path: Path) -> None:
    (tmp_path / "yaml.py").write_text("raise SystemExit('mine')")
    assert said(tmp_path, sys.executable, "-m", "study", "plan", "quickstart").stderr == "mine\n"


@pytest.mark.parametrize("variables", [{}, {"HOME": ""}, {"HOME": "relative"}, {"HOME": "/proc"}, {"LC_ALL": "C"}])
def test_a_start_by_a_user_without_a_name_and_a_home_is_planned(tmp_path: Path, variables: dict[str, str]) -> None:
    if subprocess.run([*NOBODY, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody have a namespace of users")
    tmp_path.chmod(0o777)
    arguments = ["start", "--", "-n", "--snakefile", str(ROOT / "Snakefile"), "--profile", "none"]
    done = said(tmp_path, *NOBODY, sys.executable, "-m", "study", *arguments, PATH="/usr/bin:/bin", **variables)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_what_a_user_has_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USER", "me")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    complete_user()
    assert (os.environ["HOME"], os.environ["USER"], "XDG_CACHE_HOME" in os.environ) == (str(tmp_path), "me", False)


def test_a_user_whom_the_system_does_not_know_has_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("USER", "HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    complete_user()
    assert os.environ["USER"] == f"user-{os.getuid()}"
    assert Path(os.environ["HOME"]).is_dir()
