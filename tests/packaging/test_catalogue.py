"""What the Snakemake workflow catalogue asks of a repository, in the environment in which it
asks."""

import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from study.base import strict_yaml
from tests.conftest import ROOT
from tests.packaging.conftest import environment, said
from tests.workflow.conftest import copy_checkout

pytestmark = pytest.mark.thorough

(LEAST,) = re.findall(
    r'^min_version\("(.+)"\)$', (ROOT / "workflow" / "Snakefile").read_text(), re.MULTILINE
)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment with the least Snakemake and nothing else."""
    return environment(tmp_path_factory.mktemp("environment"), f"snakemake=={LEAST}")


@pytest.fixture(scope="module")
def clone(tracked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of its own: a plan is written there, and other tests must find the tracked files
    alone."""
    return shutil.copytree(tracked, tmp_path_factory.mktemp("catalogue") / "clone")


@pytest.mark.timeout(900)
@pytest.mark.xdist_group("catalogue")
class TestWithTheLeastSnakemakeAlone:
    def test_the_default_configuration_passes_the_lint(self, programs: Path, clone: Path) -> None:
        assert "your workflow is in a good condition" in said(
            programs / "snakemake", "--lint", cwd=clone
        )

    def test_a_dry_run_plans_the_default_study(self, programs: Path, clone: Path) -> None:
        arguments = ("--cores", "1", "--dry-run", "--config", "container=none")
        # the study has a ladder: its runs are known once this machine's length is
        assert "checkpoint length" in said(programs / "snakemake", *arguments, cwd=clone)


def test_a_start_with_the_least_snakemake_makes_the_page(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """All other packages are those of these tests, with the newest Snakemake among them."""
    folder = tmp_path_factory.mktemp("least")
    programs = environment(folder, f"snakemake=={LEAST}")
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    checkout = copy_checkout(tmp_path / "checkout")
    checkout.interpreter, checkout.forked = str(programs / "python"), False
    checkout.good()
    assert checkout.page()
    assert "nothing is left to do" in checkout.good()


@pytest.mark.gate
def test_the_least_snakemake_is_one_number() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"snakemake>={LEAST},<10" in project["dependencies"]


ADDRESS = "https://github.com/someone/training-study"
TAG = "v0.3.0"
DECLARED = f'github("someone/training-study", path="workflow/Snakefile", tag="{TAG}")'


@pytest.fixture(scope="module")
def tagged(tracked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose tag has the tracked files, and whose branch has lost its configuration
    since."""
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
def deployed(tagged: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that snakedeploy made. The repository has then the files of the tag, as that of a
    user has."""
    programs = environment(tmp_path_factory.mktemp("environment"), "snakedeploy==0.17.1")
    home = tmp_path_factory.mktemp("home")
    git = {
        "GIT_CONFIG_KEY_0": f"url.file://{tagged}.insteadOf",
        "GIT_CONFIG_VALUE_0": ADDRESS,
        "GIT_CONFIG_COUNT": "1",
    }
    said(
        programs / "snakedeploy",
        "deploy-workflow",
        ADDRESS,
        "my-studies",
        "--tag",
        TAG,
        cwd=home,
        **git,
    )
    subprocess.run(["git", "checkout", "--quiet", TAG], cwd=tagged, check=True)
    return home / "my-studies"


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("snakedeploy")
class TestAFolderOfSnakedeploys:
    def test_a_dry_run_there_plans_the_folders_own_studies(
        self, deployed: Path, tagged: Path
    ) -> None:
        """The package is that of the repository, as after `pip install --editable`: no test asks
        the address's host."""
        snakefile = deployed / "workflow" / "Snakefile"
        written = snakefile.read_text(encoding="utf-8")
        snakefile.write_text(
            written.replace(DECLARED, repr(str(tagged / "workflow" / "Snakefile"))),
            encoding="utf-8",
        )
        default = deployed / "config" / "studies" / "quickstart.yaml"
        text = default.read_text(encoding="utf-8")
        title = strict_yaml.read_mapping(default)["title"]
        default.write_text(text.replace(title, "My own title"), encoding="utf-8")
        start = ("-m", "snakemake", "--cores", "1", "--dry-run", "--config", "container=none")
        words = said(Path(sys.executable), *start, cwd=deployed)
        assert "checkpoint length" in words
        assert not (deployed / "results").exists()
        assert not (tagged / "results").exists()
