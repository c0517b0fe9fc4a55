"""What the Snakemake workflow catalogue asks of a repository, in the environment in which it asks."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from study.base import strict_yaml
from tests.conftest import ROOT

(LEAST,) = re.findall(r'^min_version\("(.+)"\)$', (ROOT / "workflow" / "Snakefile").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment with the least Snakemake, snakefmt, and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    done = subprocess.run([*pip, f"snakemake=={LEAST}", "snakefmt"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no registry of packages: {(done.stderr.splitlines() or ['pip says nothing'])[-1]}")
    return folder / "bin"


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that git tracks, as they are here, and no other."""
    folder = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def said(program: Path, *arguments: str, cwd: Path) -> str:
    """What a program says, without this interpreter's packages; it succeeds."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment["PATH"] = f"{program.parent}{os.pathsep}{environment['PATH']}"
    done = subprocess.run([str(program), *arguments], cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.timeout(900)
@pytest.mark.xdist_group("catalogue")
class TestWithTheLeastSnakemakeAndSnakefmtAlone:
    def test_the_default_configuration_passes_the_lint(self, programs: Path, clone: Path) -> None:
        assert "your workflow is in a good condition" in said(programs / "snakemake", "--lint", cwd=clone)

    def test_the_workflow_is_formatted(self, programs: Path, clone: Path) -> None:
        files = [clone / "Snakefile", clone / "workflow" / "Snakefile", *(clone / "workflow" / "rules").glob("*.smk")]
        said(programs / "snakefmt", "--check", *map(str, files), cwd=clone)

    def test_a_dry_run_plans_the_default_study(self, programs: Path, clone: Path) -> None:
        arguments = ("--cores", "1", "--dry-run", "--config", "container=none")
        assert "measure" in said(programs / "snakemake", *arguments, cwd=clone)


def test_the_least_snakemake_is_one_number() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"snakemake>={LEAST},<10" in project["dependencies"]


def test_the_catalogue_finds_what_it_looks_for() -> None:
    """Its documentation names the files and the keys, and its search the words."""
    usage = strict_yaml.read_mapping(ROOT / ".snakemake-workflow-catalog.yml")["usage"]
    assert usage.keys() == {"mandatory-flags", "software-stack-deployment", "report"}
    assert usage["software-stack-deployment"].keys() == {"conda", "apptainer", "apptainer+conda"}
    assert (ROOT / "config" / "README.md").is_file()
    assert {"snakemake", "workflow"} <= set((ROOT / "README.md").read_text(encoding="utf-8").lower().split())
