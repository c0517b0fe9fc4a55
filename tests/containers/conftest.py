"""A real Docker engine, and both images built once for all tests of this folder."""

import json
import os
import pwd
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from study.artifacts.prepared import Image
from study.host.engine import base
from study.host.engine.engine_choice import engine
from tests.conftest import ROOT
from tests.workflow.conftest import Checkout, copy_checkout

VARIABLE = "STUDY_TEST_BASE_IMAGE"
ODD = 'a, "copy": of 研究\'s'


@dataclass(frozen=True)
class Built:
    """Both images as the pipeline described them, and the base they were built on."""

    cpu: Image
    cuda: Image
    base: str

    @property
    def selection(self) -> list[str]:
        """The configuration that takes these images without building."""
        return [
            "container=docker",
            f"images={json.dumps({'cpu': self.cpu.id, 'cuda': self.cuda.id})}",
        ]


@pytest.fixture(scope="session")
def base_image() -> str:
    """The base image that .ci/run made; without it every test here skips, and says how to have
    it."""
    name = os.environ.get(VARIABLE)
    if name is None:
        pytest.skip(
            f"{VARIABLE} names no base image: `.ci/docker start`, then export "
            f"{VARIABLE}=$(.ci/docker base)"
        )
    while (ROOT / ".ci/engine/building").exists():
        time.sleep(1)
    assert engine("docker").why_not() is None, "an engine was promised and does not answer"
    return name


@pytest.fixture(scope="session")
def built(base_image: str, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build both targets through Snakemake, as `make images` does."""
    checkout = copy_checkout(tmp_path_factory.mktemp("images") / ODD)
    checkout.forked = False
    root = checkout.root
    certificates = ROOT / "docker" / "certificates"
    assert not certificates.exists() or (root / "docker" / "certificates").exists()
    targets = ["results/images/cpu.json", "results/images/cuda.json"]
    config = ["container=docker", f"base_image={base_image}"]
    done = checkout.python("snakemake", "--cores", "1", *targets, "--config", *config)
    assert done.returncode == 0, done.stdout + done.stderr
    cpu, cuda = (Image.read(root / target) for target in targets)
    return Built(cpu, cuda, base_image)


@pytest.fixture(scope="class")
def contained(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy of the project for the tests of a class, in a folder whose name is hard to mount."""
    checkout = copy_checkout(tmp_path_factory.mktemp("contained") / ODD)
    checkout.forked = False
    return checkout


SOCKET = Path("/var/run/docker.sock")
SYSTEM_PYTHON = "/usr/bin/python3.11"
"""Debian's, of the version that the tests' packages are built for."""


@pytest.fixture
def anothers(built: Built) -> Iterator[Checkout]:
    """A copy of the project that belongs to a user who is not root, and may use the engine. That
    user starts it."""
    if os.getuid():
        pytest.skip("only root can start a pipeline as another user")
    nobody = pwd.getpwnam("nobody")
    caller: dict[str, Any] = {
        "user": nobody.pw_uid,
        "group": nobody.pw_gid,
        "extra_groups": [SOCKET.stat().st_gid],
    }
    packages = {"PYTHONPATH": sysconfig.get_path("purelib")}
    # The tests' own interpreter may lie in root's home, where no other user can enter.
    for interpreter in (sys.executable, SYSTEM_PYTHON):
        with suppress(OSError, subprocess.CalledProcessError):
            command = [interpreter, "-c", "import snakemake, pandas, pydantic_core"]
            subprocess.run(
                command,
                cwd="/",
                env=os.environ | packages,
                check=True,
                capture_output=True,
                **caller,
            )
            break
    else:
        pytest.skip("no interpreter that another user can start has the packages of these tests")
    with TemporaryDirectory() as folder:
        checkout = copy_checkout(Path(folder).resolve() / ODD)
        # A step of a pipeline starts the `python` of the PATH.
        (checkout.root.parent / "bin").mkdir()
        (checkout.root.parent / "bin" / "python").symlink_to(interpreter)
        variables = {
            "HOME": folder,
            "PATH": f"{folder}/bin{os.pathsep}{os.environ['PATH']}",
        } | packages
        checkout.caller, checkout.interpreter, checkout.variables = caller, interpreter, variables
        for path in (Path(folder), Path(checkout.temporary.name), *Path(folder).rglob("*")):
            os.chown(path, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
        yield checkout


def left_over() -> list[str]:
    """Names of the containers of any launcher, running or not."""
    listed = base.ask(
        "docker", "ps", "--all", "--filter", "label=study.launcher", "--format", "{{.Names}}"
    )
    return listed.split()


def scratch_folders(root: Path) -> list[Path]:
    """What launchers have not removed yet."""
    return list((root / "results").glob(".scratch-*"))
