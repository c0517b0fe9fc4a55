"""What the mission names, each by its one command: a document's study from start to end, and
workflow/envs/study.yaml."""

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from replications.gpu_blog import figures
from study.artifacts.plan import Plan
from study.base.files import ROOT
from tests.workflow.conftest import Checkout, copy_checkout

LOCK = ROOT / "requirements.lock"
TINY = {
    "dataset.images": 40,
    "dataset.image_size": 32,
    "training.loop": "torch",
    "training.freeze_epochs": 0,
    "training.epochs": 1,
    "training.batch_size": [4, 8, 16],
    "loader.kind": "device",
    "replicates": 1,
    "model": {"name": "replications.gpu_lab.networks:small_net", "weights": "none"},
}
"""The blog's study with a small network on a few images."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout in which one command has measured the blog's study and made its report."""
    checkout = copy_checkout(tmp_path_factory.mktemp("mission") / "checkout")
    checkout.good("studies=[batch-size]", "devices=[cpu]", f"overrides={json.dumps(TINY)}")
    return checkout


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("mission")
class TestOneCommand:
    def test_measures_a_documents_study_whose_plan_has_its_claims(self, measured: Checkout) -> None:
        plan = Plan.read(measured.root / "results" / "batch-size" / "plan.json")
        assert [claim.kind for claim in plan.study.claims] == ["best", "shares", "ratio"]
        assert len(measured.records("batch-size")) == 3

    def test_draws_the_blogs_figure_under_its_own_name(
        self, measured: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert figures.main([str(measured.root / "results"), str(tmp_path / "blog")]) == 0
        assert [path.name for path in (tmp_path / "blog").iterdir()] == [
            "batch_size_performance.png"
        ]
        assert "GPU-batch-test.png" in capsys.readouterr().err  # there is no GPU in these results

    def test_plans_each_device_by_one_word(self, measured: Checkout) -> None:
        for device in ("cpu", "cuda"):
            done = measured.python("study", "plan", "speedup", "--device", device)
            assert done.returncode == 0, done.stderr
            rows = [line for line in done.stdout.splitlines() if f"-{device}-r" in line]
            assert len(rows) == 6


def test_make_hands_results_and_output_on() -> None:
    command = ["make", "--dry-run", "blog-figures", "RESULTS=mine", "OUTPUT=theirs"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "-m replications.gpu_blog.figures mine theirs" in done.stdout.splitlines()[-1]


CONDA = ROOT / "workflow" / "envs" / "study.yaml"


def pip_part() -> list[str]:
    """The words for pip in the file for conda, which calls pip in that file's folder."""
    listed = yaml.safe_load(CONDA.read_text(encoding="utf-8"))["dependencies"]
    (words,) = [part["pip"] for part in listed if isinstance(part, dict)]
    return [word for line in words for word in line.split()]


def test_the_pip_part_of_the_file_for_conda_is_the_lock_which_this_environment_holds() -> None:
    assert pip_part() == ["-r", f"../../{LOCK.name}"]
    pinned = [
        Requirement(line.split(" \\")[0])
        for line in LOCK.read_text().splitlines()
        if line[:1].isalnum()
    ]
    wanted = [one for one in pinned if one.marker is None or one.marker.evaluate()]
    assert len(wanted) > 50
    for one in wanted:
        assert version(one.name) in one.specifier, one


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_the_pip_part_of_the_file_for_conda_installs_into_an_empty_environment_and_starts(
    tmp_path: Path,
) -> None:
    uv = shutil.which("uv", path=f"{ROOT / '.uv' / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}")
    if uv is None:
        pytest.skip("uv is not here: `make env` brings it")
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    command = [
        uv,
        "pip",
        "install",
        "--quiet",
        "--system-certs",
        "--python",
        str(python),
        *pip_part(),
    ]
    done = subprocess.run(command, cwd=CONDA.parent, capture_output=True, text=True)
    if done.returncode and any(
        word in done.stderr for word in ("dns error", "Failed to fetch", "error sending request")
    ):
        pytest.skip(f"the registry cannot be reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    started = subprocess.run(
        [python, "-m", "study", "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert started.returncode == 0, started.stderr
