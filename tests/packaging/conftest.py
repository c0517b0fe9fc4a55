"""What tests of packages of a registry share: an environment of their own, or the reason why there
is none."""

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.conftest import ROOT

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
UV = ROOT / ".uv" / "bin" / "uv"


def _done(*command: str) -> subprocess.CompletedProcess[str]:
    variables = os.environ | {"UV_COMPILE_BYTECODE": "0"}  # a part of it is imported, and once
    return subprocess.run(command, capture_output=True, text=True, env=variables)


def environment(folder: Path, *packages: str) -> Path:
    """Return the folder of programs of a new environment that holds these packages and nothing
    else.

    uv makes it where the Makefile got uv, in a third of the time, and pip where uv fails. Skip the
    test, with the reason, where no registry gives the packages.
    """
    python = str(folder / "bin" / "python")
    if (
        UV.exists()
        and _done(str(UV), "venv", "--quiet", "--python", sys.executable, str(folder)).returncode
        == 0
    ):
        uv = (
            str(UV),
            "pip",
            "install",
            "--quiet",
            "--no-cache",
            "--system-certs",
            "--python",
            python,
        )
        if _done(*uv, *packages).returncode == 0:
            return folder / "bin"
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    done = _done(
        python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", *packages
    )
    if done.returncode:
        pytest.skip(
            f"no registry of packages: {(done.stderr.splitlines() or ['pip says nothing'])[-1]}"
        )
    return folder / "bin"


@pytest.fixture(scope="session")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that git tracks, as they are here, and no other."""
    folder = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="session")
def wheel(tracked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy of the checkout: a build leaves its own folders beside the sources."""
    source, target = tmp_path_factory.mktemp("source") / "clone", tmp_path_factory.mktemp("wheel")
    shutil.copytree(tracked, source)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(target)]
    subprocess.run([*PIP, "wheel", str(source), *options], check=True)
    (found,) = target.iterdir()
    return found


def plant_torch(packages: Path) -> None:
    """Let the torch and torchvision of this interpreter count as installed in another folder of
    packages, by links."""
    waiting, known = ["torch", "torchvision"], set[str]()
    while waiting:
        name = waiting.pop()
        if name in known:
            continue
        known.add(name)
        with suppress(metadata.PackageNotFoundError):
            installed = metadata.distribution(name)
            asked = map(Requirement, installed.requires or [])
            waiting += [
                one.name for one in asked if not one.marker or one.marker.evaluate({"extra": "all"})
            ]
            for file in installed.files or []:
                # a folder that several packages share
                depth = 2 if file.parts[0] == "nvidia" else 1
                place = packages.joinpath(*file.parts[:depth])
                if ".." not in file.parts and not place.exists():
                    place.parent.mkdir(exist_ok=True)
                    place.symlink_to(
                        Path(str(installed.locate_file(""))).joinpath(*file.parts[:depth])
                    )


def said(program: Path, *arguments: str, cwd: Path, **variables: str) -> str:
    """What a program says, without this interpreter's packages; it succeeds."""
    own = {
        key: value for key, value in os.environ.items() if not key.startswith("PYTHON")
    } | variables
    own["PATH"] = f"{program.parent}{os.pathsep}{own['PATH']}"
    done = subprocess.run(
        [str(program), *arguments], cwd=cwd, env=own, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
