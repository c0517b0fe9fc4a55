"""What tests of packages of a registry share: an environment of their own, or the reason why there is none."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

UV = ROOT / ".uv" / "bin" / "uv"


def _done(*command: str) -> subprocess.CompletedProcess[str]:
    variables = os.environ | {"UV_COMPILE_BYTECODE": "0"}  # a part of it is imported, and once
    return subprocess.run(command, capture_output=True, text=True, env=variables)


def environment(folder: Path, *packages: str) -> Path:
    """Return the folder of programs of a new environment that holds these packages and nothing else.

    uv makes it where the Makefile got uv, in a third of the time, and pip where uv fails. Skip the test, with
    the reason, where no registry gives the packages.
    """
    python = str(folder / "bin" / "python")
    if UV.exists() and _done(str(UV), "venv", "--quiet", "--python", sys.executable, str(folder)).returncode == 0:
        uv = (str(UV), "pip", "install", "--quiet", "--no-cache", "--system-certs", "--python", python)
        if _done(*uv, *packages).returncode == 0:
            return folder / "bin"
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    done = _done(python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", *packages)
    if done.returncode:
        pytest.skip(f"no registry of packages: {(done.stderr.splitlines() or ['pip says nothing'])[-1]}")
    return folder / "bin"


@pytest.fixture(scope="session")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that git tracks, as they are here, and no other."""
    folder = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def said(program: Path, *arguments: str, cwd: Path, **variables: str) -> str:
    """What a program says, without this interpreter's packages; it succeeds."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")} | variables
    own["PATH"] = f"{program.parent}{os.pathsep}{own['PATH']}"
    done = subprocess.run([str(program), *arguments], cwd=cwd, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
