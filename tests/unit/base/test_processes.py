import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from study.base import complete_user
from study.base.processes import oom_kills, oom_kills_of_the_group
from study.config import own_model
from tests.conftest import ROOT


def kernel(root: Path, files: dict[str, str]) -> Path:
    """Write what the kernel tells under ``root``: 9 kills on the machine, and ``files``."""
    for name, content in ({"proc/vmstat": "pgfault 1\noom_kill 9\n"} | files).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="ascii")
    return root


@pytest.mark.parametrize(
    ("groups", "counts"),
    [
        ("0::/user/run\n", {"user/run/memory.events": "oom 5\noom_kill 2\noom_group_kill 0\n"}),
        ("4:memory:/run\n0::/\n", {"memory/run/memory.oom_control": "under_oom 0\noom_kill 2\n"}),
        ("5:cpu,memory:/\n", {"memory/memory.oom_control": "oom_kill 2\n"}),
    ],
)
def test_a_kill_in_another_control_group_is_not_ours(
    tmp_path: Path, groups: str, counts: dict[str, str]
) -> None:
    counted = {f"sys/fs/cgroup/{name}": content for name, content in counts.items()}
    root = kernel(tmp_path, {"proc/self/cgroup": groups} | counted)
    assert (oom_kills(root), oom_kills_of_the_group(root)) == (9, 2)


@pytest.mark.parametrize("groups", ["0::/\n", "4:memory:/user/run\n3:cpuset:/\n", ""])
def test_where_no_group_is_counted_the_whole_machine_is(tmp_path: Path, groups: str) -> None:
    root = kernel(tmp_path, {"proc/self/cgroup": groups})
    assert oom_kills_of_the_group(root) == 9


def test_a_kernel_that_does_not_count_has_killed_none(tmp_path: Path) -> None:
    assert oom_kills_of_the_group(tmp_path) == 0


SHADOWS = [
    "random",
    "statistics",
    "secrets",
    "string",
    "calendar",
    "queue",
    "copy",
    "csv",
    "json",
    "logging",
    "shlex",
]
"""Python's own modules whose names a user's file may have."""
NOBODY = ["unshare", "--user", "--map-user=12345"]


def said(folder: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """How a command ends in a folder, in an environment that has nothing else."""
    return subprocess.run(
        command,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


STEP = (
    "import subprocess, sys; from pathlib import Path; from study.host.plan import workflow; "
    f"workflow.use_this_checkout(Path({str(ROOT)!r})); "
    "sys.exit(subprocess.call([sys.executable, '-m', 'study', 'plan', 'quickstart']))"
)
"""Starts a step as a rule does."""


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (SHADOWS, ["-m", "study", "plan", "quickstart"]),
        (
            [*SHADOWS, *["types", "functools", "contextlib", "enum", "warnings", "os"]],
            ["-Pc", STEP],
        ),
    ],
)
def test_empty_files_with_names_of_pythons_own_modules_change_nothing(
    names: Sequence[str], words: list[str], tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / f"{name}.py").touch()
    done = said(tmp_path, sys.executable, *words)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    (tmp_path / "nets.py").touch()
    assert own_model.sources("nets:net", tmp_path) == [tmp_path / "nets.py"]


@pytest.mark.parametrize("words", [["-m", "study", "plan", "quickstart"], ["-Pc", STEP]])
def test_a_module_of_the_users_folder_still_comes_before_an_installed_one(
    words: list[str], tmp_path: Path
) -> None:
    (tmp_path / "yaml.py").write_text("raise SystemExit('mine')")
    assert said(tmp_path, sys.executable, *words).stderr == "mine\n"


@pytest.mark.parametrize("variables", [{}, {"HOME": "relative", "LC_ALL": "C"}])
def test_a_start_by_a_user_without_a_name_and_a_home_is_planned(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    if subprocess.run([*NOBODY, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody have a namespace of users")
    tmp_path.chmod(0o777)
    command = [
        *NOBODY,
        sys.executable,
        *["-m", "study", "start", "--", "-n", "--profile", "none", "--snakefile"],
    ]
    variables = variables | {"PATH": "/usr/bin:/bin"}
    done = said(tmp_path, *command, str(ROOT / "workflow" / "Snakefile"), **variables)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


def test_what_a_user_has_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USER", "me")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    complete_user()
    assert (os.environ["HOME"], os.environ["USER"]) == (str(tmp_path), "me")
    assert "XDG_CACHE_HOME" not in os.environ
