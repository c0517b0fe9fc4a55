"""A folder that snakedeploy makes of a tag. The address is one of a host, and git takes a clone on this disk for it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from study.base import strict_yaml
from tests.packaging.conftest import environment, said

pytestmark = pytest.mark.thorough

ADDRESS = "https://github.com/someone/training-study"
TAG = "v0.2.0"
DECLARED = f'github("someone/training-study", path="workflow/Snakefile", tag="{TAG}")'


@pytest.fixture(scope="module")
def clone(tracked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose tag has the tracked files, and whose branch has lost its configuration since."""
    folder = shutil.copytree(tracked, tmp_path_factory.mktemp("repository") / "clone")
    git = ["git", "-c", "user.name=test", "-c", "user.email=test", "-c", "commit.gpgsign=false"]
    for words in (
        ["init", "--quiet"],
        ["add", "--all", "--force"],
        ["commit", "--quiet", "--message", "all"],
        ["tag", TAG],
        ["rm", "--quiet", "-r", "config"],
        ["commit", "--quiet", "--message", "no configuration"],
    ):
        subprocess.run([*git, *words], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def deployed(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that snakedeploy made. The clone has then the files of the tag, as that of a user has."""
    programs = environment(tmp_path_factory.mktemp("environment"), "snakedeploy==0.17.1")
    home = tmp_path_factory.mktemp("home")
    git = {"GIT_CONFIG_KEY_0": f"url.file://{clone}.insteadOf", "GIT_CONFIG_VALUE_0": ADDRESS, "GIT_CONFIG_COUNT": "1"}
    said(programs / "snakedeploy", "deploy-workflow", ADDRESS, "my-studies", "--tag", TAG, cwd=home, **git)
    subprocess.run(["git", "checkout", "--quiet", TAG], cwd=clone, check=True)
    return home / "my-studies"


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("snakedeploy")
class TestAFolderOfSnakedeploys:
    def test_a_dry_run_there_plans_the_folders_own_studies(self, deployed: Path, clone: Path) -> None:
        """The package is that of the clone, as after `pip install --editable`: no test asks the host of the address."""
        snakefile = deployed / "workflow" / "Snakefile"
        written = snakefile.read_text(encoding="utf-8")
        snakefile.write_text(written.replace(DECLARED, repr(str(clone / "workflow" / "Snakefile"))), encoding="utf-8")
        default = deployed / "config" / "studies" / "quickstart.yaml"
        text = default.read_text(encoding="utf-8")
        title = strict_yaml.read_mapping(default)["title"]
        default.write_text(text.replace(title, "My own title"), encoding="utf-8")
        words = said(
            Path(sys.executable), "-m", "snakemake", "--cores", "1", "--dry-run", "--config", "container=none",
            cwd=deployed,
        )  # fmt: skip
        assert "measure" in words
        assert "My own title" in (deployed / "results" / "quickstart" / "plan.json").read_text(encoding="utf-8")
        assert not (clone / "results").exists()
