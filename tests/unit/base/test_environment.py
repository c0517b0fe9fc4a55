"""Environments that are made from locks, and the first start by a Python that has nothing."""

import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from study.base import environment
from study.base.environment import Environment, enter
from study.base.errors import StudyError
from tests.conftest import ROOT
from tests.errors import refused

LOCK = "tqdm==1.0 \\\n    --hash=sha256:0\ntorch==2.15.0 \\\n    --hash=sha256:1\n"


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """An environment whose commands are noted, and succeed."""
    (tmp_path / "some.lock").write_text(LOCK, encoding="utf-8")
    return Environment(tmp_path / "env", tmp_path / "tools")


def noted(monkeypatch: pytest.MonkeyPatch, fails: str = "") -> list[list[str]]:
    commands: list[list[str]] = []

    def run(command: list[Any], **_: Any) -> SimpleNamespace:
        commands.append([str(word) for word in command])
        return SimpleNamespace(
            returncode=int(bool(fails) and fails in commands[-1][0]), stdout='["/site"]'
        )

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def planted_uv(there: Environment) -> None:
    """Let uv count as brought."""
    (there.tools / "bin").mkdir(parents=True)
    (there.tools / "bin" / "uv").touch()


def test_nothing_is_installed_without_a_checksum_and_what_holds_is_known(
    there: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.make()
    lock = there.folder.parent / "some.lock"
    commands = noted(monkeypatch)
    with pytest.raises(StudyError, match="pip could not bring uv"):
        there.install(lock)
    planted_uv(there)
    there.install(lock)
    installs = [command for command in commands if "install" in command]
    assert [Path(command[0]).name for command in installs] == ["python", "uv"]
    assert all("--require-hashes" in command for command in installs)
    assert there.holds(lock)
    lock.write_text(LOCK + "new==1\n", encoding="utf-8")
    assert not there.holds(lock)


def test_where_uv_fails_the_line_says_how_to_name_a_mirror(
    there: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.make()
    planted_uv(there)
    noted(monkeypatch, fails="uv")
    with pytest.raises(StudyError, match="UV_INDEX_URL"):
        there.install(there.folder.parent / "some.lock")


def test_a_python_without_ensurepip_makes_an_environment_that_its_own_pip_fills(
    there: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    there.make()
    assert there.maker == sys.executable
    assert subprocess.run([there.python, "-m", "pip"], capture_output=True).returncode != 0
    assert there._pip() == [sys.executable, "-m", "pip", "--python", str(there.python)]


def test_the_installed_torch_comes_after_all_that_the_environment_has_itself(
    there: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.make()
    planted_uv(there)
    commands = noted(monkeypatch)
    monkeypatch.setattr(environment, "check_installed_torch", lambda python: None)
    there.install(there.folder.parent / "some.lock", installed_torch=True)
    asked = Path([command for command in commands if "install" in command][-1][-1]).read_text(
        encoding="utf-8"
    )
    assert "tqdm==1.0" in asked
    assert "torch" not in asked
    monkeypatch.undo()
    done = subprocess.run(
        [there.python, "-c", "import sys; print(sys.path)"], capture_output=True, text=True
    )
    assert there.takes_installed_torch
    assert "site-packages" in done.stdout


@pytest.mark.parametrize("version", [None, "2.8.0"])
def test_an_installed_torch_that_is_missing_or_too_old_is_refused_before_any_work(
    version: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if version:
        (tmp_path / "torch").mkdir()
        (tmp_path / "torch" / "__init__.py").touch()
        (tmp_path / "torch" / "version.py").write_text(
            f"__version__ = '{version}'\n", encoding="utf-8"
        )
    venv.create(tmp_path / "bare", with_pip=False)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with refused("--torch", "installed"):
        environment.check_installed_torch(str(tmp_path / "bare" / "bin" / "python"))


def bare_start(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """What a Python without packages says in a copy of the checkout, with no environment but a
    planted one."""
    if not (folder / "study").exists():
        shutil.copytree(
            ROOT / "study", folder / "study", ignore=shutil.ignore_patterns("__pycache__")
        )
        shutil.copy(ROOT / "requirements-host.lock", folder)
        venv.create(folder / "bare", with_pip=False)
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    command = [str(folder / "bare" / "bin" / "python"), "-m", "study", *words]
    return subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("words", "told"),
    [(["plan", "quickstart"], "make host"), (["start", "--torch", "installed"], "has no torch")],
)
def test_a_python_that_has_nothing_is_told_in_one_line_what_to_do(
    words: list[str], told: str, tmp_path: Path
) -> None:
    done = bare_start(tmp_path, *words)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: ")
    assert told in done.stderr


def test_every_verb_goes_on_in_the_environment_that_a_start_has_made(tmp_path: Path) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho went on: $*\n", encoding="utf-8")
    python.chmod(0o755)
    lock = (ROOT / "requirements-host.lock").read_bytes()
    (tmp_path / ".venv" / ".requirements-host.lock.sha256").write_text(
        sha256(lock).hexdigest(), encoding="utf-8"
    )
    assert bare_start(tmp_path, "report").stdout == "went on: -m study report\n"


def test_where_everything_is_there_a_start_goes_on_here() -> None:
    enter(["start"])
