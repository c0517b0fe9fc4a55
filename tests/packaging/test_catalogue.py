"""What the Snakemake workflow catalogue asks of a repository, in the environment in which it asks."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.packaging.conftest import environment, said

pytestmark = pytest.mark.thorough

(LEAST,) = re.findall(r'^min_version\("(.+)"\)$', (ROOT / "workflow" / "Snakefile").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment with the least Snakemake and nothing else."""
    return environment(tmp_path_factory.mktemp("environment"), f"snakemake=={LEAST}")


@pytest.fixture(scope="module")
def clone(tracked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of its own: a plan is written there, and other tests must find the tracked files alone."""
    return shutil.copytree(tracked, tmp_path_factory.mktemp("catalogue") / "clone")


@pytest.mark.timeout(900)
@pytest.mark.xdist_group("catalogue")
class TestWithTheLeastSnakemakeAlone:
    def test_the_default_configuration_passes_the_lint(self, programs: Path, clone: Path) -> None:
        assert "your workflow is in a good condition" in said(programs / "snakemake", "--lint", cwd=clone)

    def test_a_dry_run_plans_the_default_study(self, programs: Path, clone: Path) -> None:
        arguments = ("--cores", "1", "--dry-run", "--config", "container=none")
        assert "measure" in said(programs / "snakemake", *arguments, cwd=clone)


@pytest.mark.gate
def test_the_least_snakemake_is_one_number() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"snakemake>={LEAST},<10" in project["dependencies"]
