"""The wheel: what it holds, and what works where it is installed without a checkout."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import study
from study.artifacts.plan import Plan, own_command
from study.base import strict_yaml
from tests.conftest import ROOT, UNWATCHED
from tests.examples import EXAMPLE, STUDIES
from tests.packaging.conftest import PIP

pytestmark = pytest.mark.thorough

FILES = ("requirements.lock", "requirements-uv.lock")
FOLDERS = ("config", "docker", "extras", "profiles", "replications", "workflow")
"""What a start needs beside the package."""
QUICK = ["container=none", "warm_up_run=false", "quiet_wait_seconds=0"]
LITTLE = {
    "epochs: 4": "epochs: 1",
    "images: 1280": "images: 640",
    "[32, 64, 128]": "[64, 128]",
    "[cpu, cuda]": "[cpu]",
    "replicates: 3": f"replicates: 1\nevidence: {json.dumps(UNWATCHED)}",
    "contrast: device\n": "",
}
"""What makes a first study one of seconds."""


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel is installed. The dependencies are this interpreter's."""
    folder = tmp_path_factory.mktemp("installed")
    subprocess.run(
        [*PIP, "install", "--no-deps", "--no-index", "--target", str(folder), str(wheel)],
        check=True,
    )
    return folder


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A copy of the committed example's smaller study, without what is computed from its
    records."""
    folder = tmp_path / "results" / "photographs-speedup"
    for name in ("records", "telemetry", "weights"):
        shutil.copytree(EXAMPLE / "photographs-speedup" / name, folder / name)
    shutil.copy2(EXAMPLE / "photographs-speedup" / "plan.json", folder)
    return folder.parent


def execute(installed: Path, command: list[str], cwd: Path) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"PYTHONPATH": str(installed)}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


def say(installed: Path, cwd: Path, *arguments: str) -> str:
    """What the installed command prints; it succeeds."""
    done = execute(installed, [str(installed / "bin" / "study"), *arguments], cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def below(*folders: str) -> set[str]:
    """The paths of the files of the checkout below these folders."""
    files = {
        path
        for each in folders
        for path in (ROOT / each).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    return {
        path.relative_to(ROOT).as_posix()
        for path in files
        if not {"certificates", "tests"} & {*path.parts}
    }


def test_the_wheel_holds_the_package_and_what_a_start_needs_beside_them_and_nothing_else(
    wheel: Path,
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    home = {f"study_home/{name}" for name in {*FILES, *below(*FOLDERS)}}
    assert held == below("study", "snakemake_logger_plugin_study") | home


def test_the_version_is_in_one_place(wheel: Path) -> None:
    citation = strict_yaml.read(ROOT / "CITATION.cff")
    assert wheel.name.startswith(f"training_study-{study.__version__}-")
    assert study.__version__ == citation["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\d.*)$", changelog, re.MULTILINE)
    assert newest and newest[1] == f"{study.__version__} ({citation['date-released']})"
    literals = re.findall(
        r'^version\b.*"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert literals == []


def test_the_public_interface_reads_the_example_from_another_folder(
    installed: Path, tmp_path: Path
) -> None:
    program = f"""
import json, sys, study
results = study.open({str(EXAMPLE)!r})
one = results["photographs"]
one.figure("curve").savefig("curve.png")
print(json.dumps([study.__file__, results.studies, len(one.timings()), len(one.records()),
                  [group.best for group in one.analysis().groups], "torch" in sys.modules]))
"""
    done = execute(installed, [sys.executable, "-c", program], tmp_path)
    assert done.returncode == 0, done.stderr
    home = str(installed / "study" / "__init__.py")
    assert json.loads(done.stdout) == [home, list(STUDIES), 79, 75, ["32"] * 3, False]
    assert (tmp_path / "curve.png").stat().st_size > 10_000


def test_the_command_makes_a_report_from_records_anywhere(
    installed: Path, results: Path, tmp_path: Path
) -> None:
    say(installed, tmp_path, "analyse", "photographs-speedup", "--results", str(results))
    say(
        installed,
        tmp_path,
        "report",
        "--from-tables",
        "photographs-speedup",
        "--results",
        str(results),
    )
    page = (results / "report.html").read_text(encoding="utf-8")
    assert "4.2 times" in page  # CPU over GPU
    assert 'class="chart wide"' in page
    assert "<style>" in page


def test_a_first_study_is_written_measured_and_bundled_in_any_folder(
    installed: Path, tmp_path: Path
) -> None:
    written = execute(installed, [str(installed / "bin" / "study"), "new"], tmp_path)
    assert "To measure it: study start my.yaml" in written.stderr
    file = tmp_path / "my.yaml"
    text = file.read_text(encoding="utf-8")
    for usual, little in LITTLE.items():
        assert usual in text
        text = text.replace(usual, little)
    file.write_text(text, encoding="utf-8")
    assert "results/report.html" in say(
        installed, tmp_path, "start", "my.yaml", "--", "--config", *QUICK
    )
    say(installed, tmp_path, "bundle")
    with zipfile.ZipFile(tmp_path / "results.bundle.zip") as archive:
        assert {"config/studies/my.yaml", "my/plan.json"} <= {*archive.namelist()}
    command = Plan.read(tmp_path / "results" / "my" / "plan.json").start.again(
        "my", overrides={"replicates": 2}
    )
    # The checkout's own command, for the tests execute in a checkout.
    again = shlex.split(command.replace(own_command(), "study", 1))
    assert again[:5] == ["study", "start", "my.yaml", "--", "--config"]
    done = execute(installed, [str(installed / "bin" / again[0]), *again[1:]], tmp_path)
    assert "2 runs pending in 1 block" in done.stderr
    assert len([*(tmp_path / "results" / "my" / "records").glob("*.json")]) == 4


def test_a_published_study_is_planned_and_an_image_can_be_built_without_a_checkout(
    installed: Path, tmp_path: Path
) -> None:
    assert "lab-workers" in say(installed, tmp_path, "plan", "lab-workers", "--reduced")
    program = (
        "from study.host.engine import docker as d; assert d.DOCKERFILE.is_file() and "
        "d.LOCK.is_file()"
    )
    assert (
        execute(
            installed, [sys.executable, "-c", f"{program} and d.INSTALLER.is_file()"], tmp_path
        ).returncode
        == 0
    )
    assert not [*tmp_path.iterdir()]
